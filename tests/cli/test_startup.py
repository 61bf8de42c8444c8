"""`import scalor` and `scalor --help` are quick and load no heavy library; versions, and hints for mistyped words."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import scalor

from .conftest import Say

ROOT = Path(scalor.__file__).parent.parent
HEAVY = "{'torch', 'scipy', 'av', 'cv2'} & set(sys.modules)"
MOST_SECONDS = 0.3
"""Most CPU seconds that a start may take."""
RUNS = 4
"""The quickest of so many runs counts."""
STARTS = {
    "import scalor": "import sys, scalor",
    "scalor --help": "import sys; from scalor.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass",
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_loads_nothing_heavy_and_is_quick(name: str) -> None:
    code = f"{STARTS[name]}\nprint(sorted({HEAVY}), file=sys.stderr)"
    seconds = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.stderr.strip() == "[]"
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if seconds[-1] < MOST_SECONDS:
            break
    assert min(seconds) < MOST_SECONDS


def test_the_version_is_that_of_the_package(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        say("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"scalor {scalor.__version__} (commit ")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["trakc", "a.mp4"], "command is 'trakc': there is no such command; did you mean track."),
        (["zzz"], "command is 'zzz': there is no such command; see `scalor --help`."),
        (
            ["track", "a.mp4", "--strid", "2"],
            "argument '--strid' is unknown; did you mean --stride (`scalor track --help` lists all).",
        ),
        (["track", "a.mp4", "--qqq"], "argument '--qqq' is unknown; see `scalor track --help`."),
        (
            ["train", "shapes-tiny", "--train.batc", "2"],
            "override is --train.batc: there is no such setting; did you mean --train.batch.",
        ),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest_one(words: list[str], complaint: str, say: Say) -> None:
    assert say(*words).complaint == complaint


@pytest.mark.parametrize("command", ["train", "fit"])
def test_the_help_is_short_and_the_whole_help_lists_every_setting(
    command: str, say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = []
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            say(command, option)
        pages.append(capsys.readouterr().out)
    short, whole = pages
    assert "--model.slots" not in short
    assert "--help-all" in short
    assert len(short.splitlines()) < 60
    assert "--model.slots 32" in whole
    assert "--train.batch 16" in whole
