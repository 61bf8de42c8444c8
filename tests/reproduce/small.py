"""All presets so small that a training takes a tenth of a second, still as different as they are."""

import gzip
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from scalor.config import Config, SceneConfig
from scalor.data.replay import PICTURE, TRACKS
from scalor.presets import PRESETS
from scalor.reproduce.catalogue import Cell, choose
from scalor.reproduce.results import Order

STEPS = 4


def small_scene(scene: SceneConfig) -> SceneConfig:
    length = 10 if scene.length == 10 else 12  # a remedy of the ablation trains on ten frames
    objects = (2, 2) if scene.kind == "balls" else (1, 1 + scene.objects[0] % 4)
    size = 8.0 if scene.kind == "balls" else scene.size  # larger ones would not fit
    return replace(scene, frame=(32, 32), objects=objects, length=length, size=size)


SIZES: dict[str, dict[str, Any]] = {
    "scalor": {
        "grid": (4, 4),
        "slots": 4,
        "proposals": 2,
        "glimpse": 8,
        "what_dim": 4,
        "feature_dim": 8,
        "tracker_dim": 8,
        "prior_dim": 8,
    },
    "sqair": {"slots": 2, "discoveries": 1, "particles": 2, "glimpse": 8, "what_dim": 4, "hidden_dim": 8},
    "vrnn": {"channels": (4, 4), "feature_dim": 8, "state_dim": 8, "latent_dim": 4},
    "vae": {"channels": (4, 4), "growth": (4, 4), "state_dim": 8, "latent_dim": 4},
}


def small(config: Config[Any]) -> Config[Any]:
    model = replace(config.model, frame=(32, 32), **SIZES[config.system])
    rare: dict[str, Any] = {"save_every": 100, "evaluate_clips": 1}
    train = replace(config.train, steps=STEPS, batch=1, lengths=((0, 1), (2, 2)), cooldown=0, **rare)
    return Config(model, small_scene(config.scene), small_scene(config.test), train)


def shrink_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, make in list(PRESETS.items()):
        monkeypatch.setitem(PRESETS, name, partial(small, make()))


def write_digits(folder: Path) -> None:
    """MNIST files of ten bars."""
    images = torch.zeros(10, 28, 28)
    for shift, image in enumerate(images):
        image[5:21, 3 + shift : 7 + shift] = 255
    for prefix in ("train", "t10k"):
        for kind, values in (("images-idx3", images), ("labels-idx1", torch.arange(10))):
            sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
            head = bytes((0, 0, 8, values.dim())) + sizes
            (folder / f"{prefix}-{kind}-ubyte").write_bytes(head + bytes(values.byte().flatten().tolist()))


def write_station(folder: Path) -> None:
    """A hall in which three walkers cross slowly, one of them late."""
    moments = [(20 * k, 1, 300 + 4 * k, 300 + 2 * k) for k in range(160)]
    moments += [(20 * k, 3, 320 + 4 * k, 330 + 2 * k) for k in range(160)]
    moments += [(20 * k, 2, 900 - 4 * k, 500) for k in range(150, 160)]
    home = folder / "grand_central"
    home.mkdir()
    text = "".join(f"{frame},{walker},{x},{y}\n" for frame, walker, x, y in moments)
    (home / TRACKS).write_bytes(gzip.compress(text.encode()))
    Image.new("RGB", (720, 480), (90, 100, 110)).save(home / PICTURE)


def order(folder: Path, **changes: Any) -> Order:
    given = {"clips": 1, "nll_samples": 1, "runs": folder / "runs", "results": folder / "results"}
    return Order(**{**given, "device": torch.device("cpu"), **changes})


def cell(table: str, setting: str, seed: int = 0) -> Cell:
    (one,) = choose([table], [setting], [seed])
    return one
