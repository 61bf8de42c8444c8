"""A run that the benchmark stops has really stopped; one that goes on in spite of the signal is no result."""

import signal
import sys
from pathlib import Path

import pytest

from benchmarks.several_ranks import run, run_and_stop

STEPS = 4
STARTS_A_CHILD = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', sys.argv[1]]))"
"""As torchrun does, and ends as the child does."""
TRAINS = """
import time
for step in range({steps}):
    open('log.jsonl', 'a').write('line\\n')
    time.sleep({pause})
{then}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def training(steps: int = STEPS, pause: float = 0.0, then: str = "") -> list[str]:
    """Return a command that writes a log as a training does."""
    return [sys.executable, "-c", STARTS_A_CHILD, TRAINS.format(steps=steps, pause=pause, then=then)]


def stopped(command: list[str], how: int) -> int:
    return run_and_stop(command, Path("log.jsonl"), 2, STEPS, how)[1]


def test_a_run_that_a_signal_ends_is_a_result() -> None:
    assert stopped(training(2, then="time.sleep(60)"), signal.SIGTERM) == 2


def test_a_signal_without_effect_is_told() -> None:
    with pytest.raises(RuntimeError, match="signal 0 had no effect: the run ended with code 0 at step 4 of 4"):
        stopped(training(pause=0.2), 0)


def test_a_run_that_a_signal_ends_after_its_last_step_is_told() -> None:
    with pytest.raises(RuntimeError, match=r"had no effect: the run ended with code \d+ at step 4 of 4"):
        stopped(training(then="time.sleep(60)"), signal.SIGTERM)


def test_a_run_that_ends_by_itself_too_early_is_told() -> None:
    with pytest.raises(RuntimeError, match="ended with code 3 before step 2"):
        stopped(training(1, then="raise SystemExit(3)"), signal.SIGTERM)
    with pytest.raises(RuntimeError, match="ended with code 3"):
        run(training(1, then="raise SystemExit(3)"))
