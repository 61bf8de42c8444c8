"""Every breakage of `python -m benchmarks.mutations` breaks a line that is there, and the program judges fairly."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks import mutations
from benchmarks.mutations import MUTATIONS, Mutation, broken, main

ROOT = Path(__file__).parent.parent.parent


def test_there_are_sixty_and_each_is_another() -> None:
    assert len({one.name for one in MUTATIONS}) == len(MUTATIONS) >= 60


def test_every_package_has_breakages() -> None:
    packages = {path.parent.name for path in (ROOT / "scalor").glob("*/__init__.py")}
    assert packages <= {one.file.split("/")[0] for one in MUTATIONS}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_a_breakage_changes_one_line_that_is_there_and_has_tests(mutation: Mutation) -> None:
    text = (ROOT / "scalor" / mutation.file).read_text()
    assert broken(text, mutation) != text
    for name in mutation.tests.split():
        assert (ROOT / "tests" / name).exists(), name


@pytest.mark.parametrize("text", ["x = 1", "y = 1\ny = 1"])
def test_a_line_that_is_gone_or_stands_twice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write the mutation again"):
        broken(text, Mutation("boxes.py", "y = 1", "y = 2", "evaluation"))


TOY = """
def double(x):
    return 2 * x

def label():
    return "twice"
"""
TOY_TESTS = """
from scalor import toy


def test_double():
    assert toy.double(3) == 6
"""

NAMED_BY_THE_CODE = """
import pytest
from scalor import toy


@pytest.mark.parametrize("times", [toy.double(1)])
def test_named(times):
    assert times == 2
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository of one file."""
    (tmp_path / "scalor").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "scalor" / "__init__.py").write_text("")
    (tmp_path / "scalor" / "toy.py").write_text(TOY)
    (tmp_path / "tests" / "test_toy.py").write_text(TOY_TESTS)
    (tmp_path / "tests" / "test_named.py").write_text(NAMED_BY_THE_CODE)
    (tmp_path / "tests" / "test_red.py").write_text("def test_red():\n    assert False\n")
    (tmp_path / "tests" / "test_slow.py").write_text("import time\n\ndef test_slow():\n    time.sleep(60)\n")
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    monkeypatch.setattr(mutations, "COPIED", ("scalor", "tests"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to load them takes ten times as long as the tests


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("old", "new", "tests", "said"),
    [
        ("2 * x", "3 * x", "test_toy.py", "caught"),
        ("2 * x", "3 * x", "test_named.py", "caught"),  # its name is another without the breakage
        ("def double(x)", "def double(x):::", "test_toy.py", "caught"),  # the file cannot be read
        ('"twice"', '"thrice"', "test_toy.py", "survived"),
        ("2 * x", "3 * x", "test_red.py", "not tested"),  # it fails without the breakage, too
        ("2 * x", "3 * x", "test_gone.py", "not tested"),
        ("2 * x", "3 * x", "test_slow.py", "too long"),
    ],
)
def test_a_breakage_is_caught_by_a_test_that_passes_without_it(
    old: str, new: str, tests: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutations, "MUTATIONS", (Mutation("toy.py", old, new, tests),))
    if said == "too long":
        monkeypatch.setattr(mutations, "LONGEST_S", 3)
    assert main([]) == (said == "not tested")
    printed = capsys.readouterr().out
    assert f"{old} -> {new}  {said}" in printed
    assert f"{int(said == 'caught')} of 1 caught" in printed
    assert said != "caught" or f"tests/{tests}" in printed


@pytest.mark.usefixtures("toy")
def test_the_json_holds_every_row_and_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Mutation("toy.py", "2 * x", "3 * x", "test_toy.py")
    monkeypatch.setattr(mutations, "MUTATIONS", (one,))
    assert main(["--json", str(tmp_path / "said.json")]) == 0
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["results"] == {"caught": 1}
    assert [(row["mutation"], row["by"]) for row in said["rows"]] == [(one.name, "tests/test_toy.py::test_double")]
    assert {"command", "commit", "date", "hardware"} <= set(said)


@pytest.mark.usefixtures("toy")
def test_going_on_tests_only_what_was_not_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    caught, survivor = (Mutation("toy.py", *change, "test_toy.py") for change in (("2 *", "3 *"), ("tw", "thr")))
    monkeypatch.setattr(mutations, "MUTATIONS", (caught, survivor))
    words = ["--json", str(tmp_path / "said.json")]
    main(words)
    first = json.loads((tmp_path / "said.json").read_text())["rows"]
    tests = tmp_path / "tests" / "test_toy.py"
    tests.write_text(tests.read_text() + '\n\ndef test_label():\n    assert toy.label() == "twice"\n')
    capsys.readouterr()
    main([*words, "--again"])
    assert caught.name not in capsys.readouterr().err
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["results"] == {"caught": 2}
    assert said["rows"][0] == first[0]
    assert [row["by"].split("::")[-1] for row in said["rows"]] == ["test_double", "test_label"]


def test_going_on_from_no_file_or_from_rows_without_a_commit_tests_all(tmp_path: Path) -> None:
    file = tmp_path / "said.json"
    assert mutations.earlier(file) == []
    row = mutations.Row(MUTATIONS[0].name, "caught", "tests/test_toy.py::test_double", 1.0, "01a8ac4")
    old = {name: value for name, value in asdict(row).items() if name != "commit"}
    file.write_text(json.dumps({"rows": [old, asdict(row)]}))
    assert mutations.earlier(file) == [row]
