"""All of SCALOR's presets so small that a training takes a tenth of a second, still as different as they are."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from scalor.config import Config, SceneConfig
from scalor.presets import PRESETS
from scalor.reproduce.catalogue import Cell, choose
from scalor.reproduce.results import Order

STEPS = 4


def small_scene(scene: SceneConfig) -> SceneConfig:
    length = 6 if scene.length == 10 else 8
    return replace(scene, frame=(32, 32), objects=(1, 1 + scene.objects[0] % 4), length=length)


def small(config: Config) -> Config:
    sizes = {"slots": 4, "proposals": 2, "glimpse": 8, "what_dim": 4}
    widths = {"feature_dim": 8, "tracker_dim": 8, "prior_dim": 8}
    model = replace(config.model, frame=(32, 32), grid=(4, 4), **sizes, **widths)
    rare = {"save_every": 100, "evaluate_clips": 1}
    train = replace(config.train, steps=STEPS, batch=1, lengths=((0, 1), (2, 2)), cooldown=0, **rare)
    return Config(model, small_scene(config.scene), small_scene(config.test), train)


def shrink_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, make in list(PRESETS.items()):
        if make().system == "scalor":
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


def order(folder: Path, **changes: Any) -> Order:
    given = {"clips": 1, "nll_samples": 1, "runs": folder / "runs", "results": folder / "results"}
    return Order(**{**given, "device": torch.device("cpu"), **changes})


def cell(table: str, setting: str, seed: int = 0) -> Cell:
    (one,) = choose([table], [setting], [seed])
    return one
