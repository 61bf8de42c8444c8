"""A small trained run, small videos, and a way to call the command line as a shell does."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import scalor
from scalor.cli.main import main
from scalor.cli.overrides import apply
from scalor.data.scenes import Scenes
from scalor.model import glimpses
from scalor.presets import get_preset
from scalor.video import write_video
from scalor.visual import save_png
from tests.edits.drawn import write_tracked_scene

TINY = [
    *("--model.slots", "4", "--model.proposals", "2", "--model.glimpse", "8", "--model.what_dim", "4"),
    *("--model.feature_dim", "8", "--model.tracker_dim", "8", "--model.prior_dim", "8"),
    *("--scene.objects", "[2, 3]", "--scene.length", "4", "--test.objects", "[2, 3]", "--test.length", "7"),
    *("--train.steps", "4", "--train.batch", "2", "--train.lengths", "[[0, 1], [2, 2]]", "--train.save_every", "2"),
]


@dataclass(frozen=True)
class Spoken:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """All of stdout is one JSON document, and strictly JSON."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        assert self.code == 0, self.err
        return json.loads(self.out, parse_constant=refuse)

    @property
    def complaint(self) -> str:
        """The one line of a refusal, as a terminal shows it: a progress bar may have been there and be gone."""
        assert (self.code, self.out) == (2, "")
        shown = [line.split("\r")[-1] for line in self.err.rstrip("\n").split("\n")]
        (line,) = [line for line in shown if not line.startswith("warning: ")]
        assert line.startswith("scalor: ")
        assert line.endswith(".")
        assert "Traceback" not in self.err
        return line.removeprefix("scalor: ")


Say = Callable[..., Spoken]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def call(*words: object) -> Spoken:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Spoken(code, *capsys.readouterr())

    return call


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default folders land in a place of the test's own; TensorBoard takes seconds to import and is not tested here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model with the config of the tiny run and a seed that sees objects."""
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    config = apply(get_preset("shapes-tiny"), TINY)
    torch.manual_seed(297)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            glimpses.GlimpseDecoder, "start_masks", lambda *_: None
        )  # so that it shows objects without a training
        model = scalor.SCALOR(config.model)
    scalor.save(model, path, config)
    return path


@pytest.fixture(scope="session")
def frames() -> np.ndarray:
    """An unseen clip as 8-bit frames [T, H, W, 3]."""
    scene = get_preset("shapes-tiny").test
    clip = Scenes(scene, 0, "test").clips(5, 1, 6).frames[0]
    picture: np.ndarray = (clip.permute(0, 2, 3, 1) * 255).round().byte().numpy()
    return picture


@pytest.fixture(scope="session")
def videos(frames: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same six frames of 32x32 pixels in every form."""
    folder = tmp_path_factory.mktemp("videos")
    write_video(folder / "clip.mp4", frames, fps=6)
    np.save(folder / "clip.npy", frames)
    (folder / "pictures").mkdir()
    for t, frame in enumerate(frames):
        save_png(folder / "pictures" / f"{t}.png", frame)
    return {"mp4": folder / "clip.mp4", "npy": folder / "clip.npy", "png": folder / "pictures"}


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a drawn scene of three discs and its tracks, written once."""
    return write_tracked_scene(tmp_path_factory.mktemp("drawn"))


@pytest.fixture
def tracked(drawn: Path, tmp_path: Path) -> Path:
    """The result folder of the drawn scene, which the test may change."""
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    return tmp_path / "tracked"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, to see that nothing changed."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
