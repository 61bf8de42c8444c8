"""Scenes of one version are always the same, so that the version in a checkpoint stands for all constants of drawing.

If a change of the code changes these figures, raise `SCENE_VERSION` and add a column with the figures of the new
version. Print them with `python -m tests.data.test_version`.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from scalor.config import SCENE_VERSION, SceneConfig
from scalor.data.footage import Frames
from scalor.data.scenes import Scenes
from tests.data.test_mnist import fake_digits

SCENES = {
    "shapes": SceneConfig(frame=(32, 48), objects=(3, 6), size=7.0),
    "textures": SceneConfig(objects=(20, 24), background=True),
    "births": SceneConfig(objects=(2, 4), births=(0, 4), steer=True),
    "digits": SceneConfig(kind="mnist", objects=(3, 6), size=14.0, digits=(1, 3, 4)),
    "composed": SceneConfig(kind="composed", length=8, objects=(0, 12), size=18.0),
    "footage": SceneConfig(kind="footage", frame=(8, 12), length=4, zoom=1.3),
}
FIGURES: dict[int, dict[str, tuple[float, float, float]]] = {
    1: {
        "shapes": (0.0288856058434052, 0.0192406829136034, 18.8770627542709),
        "textures": (0.373195942123059, 0.163690136815619, 30.2959049718455),
        "births": (0.0258147868538929, 0.0175684097764912, 32.8024508946110),
        "digits": (0.0163503163627974, 0.0108238816241656, 29.4298018875221),
        "composed": (0.553645549053885, 0.368671375122204, 34.5169270833333),
        "footage": (0.499035483844763, 0.285199944995343, 0.0),
    },
}
"""Mean of the pixels, mean of their squares, and mean of the boxes, by version and scene."""


def figures(name: str, folder: Path) -> tuple[float, float, float]:
    """Return three numbers that change with everything that a scene shows."""
    config = SCENES[name]
    if name == "footage":
        write_footage(folder / "footage.npz")
        config = SceneConfig(**{**vars(config), "footage": str(folder / "footage.npz")})
    digits = fake_digits() if name == "digits" else None
    clip = Scenes(config, 5, digits=digits).clips(0, 16)
    pixels, boxes = clip.frames[:, :, :3].double(), clip.truth.box.double()
    return float(pixels.mean()), float(pixels.square().mean()), float(boxes.mean()) if boxes.numel() else 0.0


def write_footage(path: Path) -> None:
    """Write 30 frames of noise with spots anywhere."""
    random = np.random.default_rng(0)
    frames = random.integers(0, 256, (30, 3, 24, 32), dtype=np.uint8)
    spots = np.stack([random.integers(0, most, 40) for most in (30, 24, 32)], 1)
    starts, epochs = np.array([0, 12]), np.zeros(2, int)
    Frames(frames, random.integers(0, 256, (1, 3, 24, 32), dtype=np.uint8), starts, epochs, spots).save(path)


@pytest.mark.parametrize("name", SCENES)
def test_the_scenes_of_a_version_never_change(name: str, tmp_path: Path) -> None:
    assert figures(name, tmp_path) == pytest.approx(FIGURES[SCENE_VERSION][name], rel=1e-5)


def test_a_change_of_a_drawing_constant_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalor.data.scenes.JITTER", 0.11)
    assert figures("shapes", tmp_path) != pytest.approx(FIGURES[SCENE_VERSION]["shapes"], rel=1e-5)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for scene in SCENES:
        print(f'"{scene}": {figures(scene, Path("."))},')
