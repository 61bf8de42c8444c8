"""Closed standard streams, signals and names that are not UTF-8: commands end as they should."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scalor.cli.main import main

from .conftest import Say

CLOSED = """
import os, sys
from scalor.cli.main import main
code = main(["presets"])
with open("opened", "w") as file:
    file.write("mine")
print("not into the file", flush=True)
os.write(2, b"not into the file")
sys.exit(code)
"""
STOPPED = """
import os, sys
from scalor.cli.main import main

def stop(event, arguments):
    global waiting
    if waiting and event == "open" and ".partial" in str(arguments[0]):
        waiting = False
        os.kill(os.getpid(), int(sys.argv[1]))

waiting = True
sys.addaudithook(stop)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("closed", ["1", "2", "1 2", "0 1 2"])
def test_closed_streams_are_no_error(closed: str, tmp_path: Path) -> None:
    closing = " ".join(f"{number}>&-" for number in closed.split())
    words = ["sh", "-c", f'"$@" {closing}', "sh", sys.executable, "-c", CLOSED]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True).returncode == 0
    assert (tmp_path / "opened").read_text() == "mine"


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_leaves_no_hidden_file_of_predict(
    which: signal.Signals, tmp_path: Path, videos: dict[str, Path]
) -> None:
    words = ["predict", str(videos["npy"]), "--out", "out", "--device", "cpu"]
    run = [sys.executable, "-c", STOPPED, str(int(which)), *words]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 128 + which, done
    assert done.stderr.splitlines()[-1].endswith("scalor: stopped; no half-written file is left.")
    assert list((tmp_path / "out").iterdir()) == []


def test_names_that_are_not_utf8_are_names_as_any_other(say: Say, tmp_path: Path, videos: dict[str, Path]) -> None:
    video, out = tmp_path / os.fsdecode(b"bad\xff.npy"), tmp_path / os.fsdecode(b"out\xfe")
    video.write_bytes(videos["npy"].read_bytes())
    words = ["track", video, "--weights", "classical-colour", "--object-size", "9x9", "--out", out]
    assert say(*words).code == 0
    assert {"report.html", "tracks.csv", "results.json"} <= {path.name for path in out.iterdir()}
    assert say(*words).code == 0


def test_pictures_narrower_than_any_object_can_be_tracked(say: Say, tmp_path: Path) -> None:
    np.save(tmp_path / "thin.npy", np.random.default_rng(0).integers(0, 255, (4, 48, 1, 3), np.uint8))
    said = say("track", "thin.npy", "--device", "cpu")
    assert said.code == 0, said


def test_names_with_escapes_cannot_command_the_terminal(
    say: Say, tmp_path: Path, weights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = tmp_path / "\x1b[31mred\u202eevil.safetensors"
    done = say("pack", weights, "--out", name)
    assert "\\x1b[31mred\\u202eevil" in done.out
    assert "\x1b" not in done.out
    assert main(["track", str(tmp_path / "\x1b[31m\nnothing")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "\\x1b[31m\\nnothing" in line
