"""Every breakage of `python -m benchmarks.mutations` breaks a line that is there."""

from pathlib import Path

import pytest

from benchmarks import mutations
from benchmarks.mutations import MUTATIONS, Mutation, broken, main

ROOT = Path(__file__).parent.parent.parent


def test_there_are_sixty_and_each_is_another() -> None:
    assert len({one.name for one in MUTATIONS}) == len(MUTATIONS) >= 60


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_a_breakage_changes_one_line_that_is_there_and_has_tests(mutation: Mutation) -> None:
    text = (ROOT / "scalor" / mutation.file).read_text()
    assert text.count(mutation.old) == 1
    assert broken(text, mutation) != text
    for name in mutation.tests.split():
        assert (ROOT / "tests" / name).exists(), name


def test_a_breakage_of_a_line_that_is_gone_is_refused() -> None:
    with pytest.raises(ValueError, match="write the mutation anew"):
        broken("x = 1", Mutation("boxes.py", "y = 1", "y = 2", "evaluation"))


def test_caught_and_survived_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One breakage that its test sees, and one that a test of something else cannot see."""
    seen = Mutation("__init__.py", '    "track",\n]', "]", "test_api.py::test_nothing_public_is_forgotten")
    unseen = Mutation("boxes.py", "union > 0, union, 1.0", "union > 0, union, 2.0", "test_signals.py")
    monkeypatch.setattr(mutations, "MUTATIONS", (seen, unseen))
    assert main([]) == 0
    table = capsys.readouterr().out
    assert "1 of 2 caught" in table
