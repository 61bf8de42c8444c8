"""SCALOR: find, track, segment and forecast the objects of a video, without labels.

>>> import scalor
>>> tracks = scalor.track("walkers.mp4")
>>> model = scalor.load("shapes-md")
>>> tracks = model.track(frames)  # [T, 3, H, W] in [0, 1]
>>> tracks.to_csv("tracks.csv")

Names are imported when they are first used, so `import scalor` itself is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalor.checkpoint import load, save
    from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
    from scalor.errors import InputError
    from scalor.model.scalor import SCALOR
    from scalor.nn.interface import Model
    from scalor.pipeline import track
    from scalor.presets import build, get_preset
    from scalor.tracks import Tracks, read_tracks

__version__ = "0.2.0"
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
    "read_tracks",
    "save",
    "track",
]

MODULES = {
    "SCALOR": "scalor.model.scalor",
    "Config": "scalor.config",
    "InputError": "scalor.errors",
    "Model": "scalor.nn.interface",
    "ModelConfig": "scalor.config",
    "SceneConfig": "scalor.config",
    "Tracks": "scalor.tracks",
    "TrainConfig": "scalor.config",
    "build": "scalor.presets",
    "get_preset": "scalor.presets",
    "load": "scalor.checkpoint",
    "read_tracks": "scalor.tracks",
    "save": "scalor.checkpoint",
    "track": "scalor.pipeline",
}
"""The module that defines each public name."""


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module 'scalor' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *MODULES])
