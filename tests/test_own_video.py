"""docs/own_video.md: its commands and its Python run in the order in which they are told, only shorter."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from scalor.cli.main import main
from scalor.outputs import FILES
from scalor.video import write_video

PAGE = (Path(__file__).parent.parent / "docs" / "own_video.md").read_text()
COMMANDS = [line.strip() for line in PAGE.splitlines() if re.match(r"scalor (fit|track|predict)", line)]
COMMANDS += re.findall(r"`(scalor (?:score|track)[^`]*)`", PAGE)
SMALLER = {
    "fit": [
        *("--steps", "4", "--train.batch", "2", "--model.glimpse", "8", "--model.feature_dim", "8", "--device", "cpu"),
        *("--model.what_dim", "4", "--model.tracker_dim", "8", "--model.prior_dim", "8"),
    ],
}


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a video of two walking boxes, and where they really are."""
    monkeypatch.chdir(tmp_path)
    frames = np.repeat(np.random.default_rng(0).integers(90, 110, (1, 96, 128, 3)), 30, 0)
    truth = []
    for t in range(30):
        for number, (top, left) in enumerate(((10, 2 * t), (52, 100 - 2 * t)), 1):
            frames[t, top : top + 34, left : left + 14] = (240, 40, 40)
            truth.append(f"{t + 1},{number},{left},{top},14,34,1\n")
    write_video("walkers.mp4", frames.astype(np.uint8), 10)
    Path("gt.txt").write_text("".join(truth))


def test_the_way_from_an_mp4_to_a_plot(workshop: None) -> None:
    assert [command.split()[1] for command in COMMANDS] == ["fit", "track", "predict", "score", "track"]
    for command in COMMANDS:
        words = shlex.split(command)[1:]
        assert main([*words, *SMALLER.get(words[0], [])]) == 0, command
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(code, {})
    assert Path("paths.png").stat().st_size > 1000


def test_every_file_that_is_written_is_told_of() -> None:
    assert all(f"`{name}`" in PAGE for name in FILES)
