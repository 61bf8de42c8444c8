"""docs/own_video.md and the README's part on it: commands and Python run in the order of the page, only shorter."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalor.cli.main import main
from scalor.outputs import FILES
from scalor.video import write_video

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "own_video.md").read_text()
COMMANDS = re.findall(r"^(scalor .*)$", PAGE, re.M)
IN_SHORT = re.findall(r"^(scalor \w+ walkers.mp4[^#\n]*)", (ROOT / "README.md").read_text(), re.M)
SMALLER = {
    "fit": ["--steps", "4", "--train.batch", "2", "--device", "cpu"],
}


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a video of two walking boxes, the same as a TIFF stack, and where they really are."""
    monkeypatch.chdir(tmp_path)
    frames = np.repeat(np.random.default_rng(0).integers(90, 110, (1, 96, 128, 3)), 30, 0)
    truth = []
    for t in range(30):
        for number, (top, left) in enumerate(((10, 2 * t), (52, 100 - 2 * t)), 1):
            frames[t, top : top + 34, left : left + 14] = (240, 40, 40)
            truth.append(f"{t + 1},{number},{left},{top},14,34,1\n")
    write_video("walkers.mp4", frames.astype(np.uint8), 10)
    pages = [Image.fromarray(frame) for frame in frames.mean(-1).astype(np.uint8)]
    pages[0].save("cells.tif", save_all=True, append_images=pages[1:])
    Path("gt.txt").write_text("".join(truth))


def run(commands: list[str]) -> list[str]:
    """Their names, after all of them ran."""
    names = []
    for command in commands:
        words = shlex.split(command)[1:]
        assert main([*words, *SMALLER.get(words[0], [])]) == 0, command
        names.append(words[0])
    return names


def test_the_commands_of_the_readme(workshop: None) -> None:
    assert run(IN_SHORT) == ["track", "fit", "predict"]


def test_the_way_from_an_mp4_to_a_plot(workshop: None) -> None:
    assert run(COMMANDS) == ["track", "track", "track", "score", "fit", "track", "predict"]
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(code, {})
    assert Path("paths.png").stat().st_size > 1000


def test_the_page_names_every_file_that_is_written() -> None:
    assert [name for name in FILES if f"`{name}`" not in PAGE and f"`{name}/`" not in PAGE] == []
