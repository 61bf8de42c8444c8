"""SCALOR: find, follow, separate and forecast every object in a video, with no labels.

>>> tracks = scalor.track("walkers.mp4", weights="runs/walkers")  # after `scalor fit walkers.mp4`
>>> model = scalor.load("shapes-md")
>>> tracks = model.track(frames)  # [T, 3, H, W] in [0, 1]
>>> tracks.to_csv("tracks.csv")
"""

from typing import Any

from scalor import systems
from scalor.checkpoint import load, save
from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.errors import InputError
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Model
from scalor.pipeline import track
from scalor.presets import get_preset
from scalor.tracks import Tracks

__version__ = "0.1.0"
__all__ = [
    "SCALOR",
    "Config",
    "InputError",
    "Model",
    "ModelConfig",
    "SceneConfig",
    "Tracks",
    "TrainConfig",
    "build",
    "get_preset",
    "load",
    "save",
    "track",
]


def build(preset: str) -> Any:
    """An untrained model by the name of its preset: a `SCALOR`, or whatever system the preset is of."""
    return systems.build(get_preset(preset).model)
