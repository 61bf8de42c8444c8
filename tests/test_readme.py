"""The commands and the Python of the README and of docs/research.md run as they are printed, only shorter."""

import re
import shlex
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest
import torch

import scalor
from scalor import checkpoint
from scalor.cli.main import main
from scalor.data.scenes import Scenes
from scalor.presets import get_preset
from scalor.video import write_video

ROOT = Path(__file__).parent.parent
PAGES = [(ROOT / name).read_text() for name in ("README.md", "docs/research.md")]
COMMANDS = [
    line.split("#")[0].strip()
    for page in PAGES
    for line in page.splitlines()
    if re.match(r"scalor \w+", line) and "walkers.mp4" not in line
]
"""Those on one's own video are run by `test_own_video.py`."""
SMALLER = {
    "train": ["--train.steps", "2", "--train.lengths", "[[0,1],[1,2]]", "--train.batch", "1", "--clips", "1"],
    "evaluate": ["--clips", "1"],
    "reproduce": ["--clips", "1", "--seeds", "0"],
}


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the user's video, its tracks and its truth, and the run that the README trains first."""
    monkeypatch.chdir(tmp_path)
    frames = Scenes(get_preset("shapes-md").test, 0, "test").clips(0, 1, 3).frames[0]
    write_video("video.mp4", (frames.permute(0, 2, 3, 1).numpy() * 255).astype(np.uint8), 10)
    (tmp_path / "gt.txt").write_text("1,1,2,2,6,6,1\n")
    (tmp_path / "runs").mkdir()
    scalor.save(scalor.build("shapes-tiny"), tmp_path / "runs" / "shapes-tiny.safetensors")
    return tmp_path


def pretend_to_train(preset: str, runs: Path) -> None:
    """As if it had been trained to the end."""
    config, file = get_preset(preset), runs / f"{preset}-seed0" / checkpoint.MODEL_FILE
    file.parent.mkdir()
    origin = checkpoint.provenance(config, config.train.steps, torch.device("cpu"))
    checkpoint.write(file, scalor.build(preset).state_dict(), config, origin)


def test_the_pages_show_every_command() -> None:
    shown = {command.split()[1] for command in COMMANDS}
    assert shown == {"train", "evaluate", "generate", "track", "score", "info", "pack", "presets", "reproduce"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_pages_runs(command: str, workshop: Path) -> None:
    words = shlex.split(command)[1:]
    words = ["runs/shapes-tiny.safetensors" if word == "runs/shapes-tiny" else word for word in words]
    if words[0] == "score":
        (workshop / "tracked").mkdir()
        (workshop / "tracked" / "tracks.csv").write_text("frame,id,x0,y0,x1,y1,confidence\n0,1,2,2,8,8,0.9\n")
    if words[0] == "reproduce":
        for preset in ("shapes-md", "shapes-hd"):
            pretend_to_train(preset, workshop / "runs")
    assert main([*words, *SMALLER.get(words[0], [])]) == 0


def test_the_python_of_the_pages_runs(workshop: Path) -> None:
    for page in PAGES:
        (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
        frames = Scenes(get_preset("shapes-md").test, 0, "test").clips(0, 1, 5).frames[0]
        names: dict[str, Any] = {"frames": frames, "camera": iter(frames[:2])}
        exec(code, names)
        assert (workshop / "tracks.csv").exists()
    assert names["drawn"].frames.shape[1] == 20


def test_the_readme_fits_on_a_screen() -> None:
    assert len(PAGES[0].splitlines()) < 75


def test_the_picture_of_the_floors_is_up_to_date() -> None:
    drawn = run_path(str(ROOT / "docs" / "floors.py"))
    names = {name for floor in drawn["floors"]() for name in floor}
    assert names == set(drawn["texts"]()), "every package has a row in the table of docs/architecture.md"
    assert drawn["picture"]() == drawn["PICTURE"].read_text(), "run python docs/floors.py"


def test_the_list_of_files_is_up_to_date() -> None:
    made = run_path(str(ROOT / "docs" / "file_tree.py"))
    assert made["page"]() == (ROOT / "docs" / "architecture.md").read_text(), "run python docs/file_tree.py"
