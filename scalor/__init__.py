"""SCALOR: find, track, segment and forecast the objects of a video, without labels.

>>> import scalor
>>> tracks = scalor.track("walkers.mp4")  # no weights needed
>>> run = scalor.fit("walkers.mp4", minutes=10)
>>> model = scalor.load(run)
>>> tracks = model.track("walkers.mp4", masks=True)
>>> tracks.to_dataframe()
>>> future = model.predict("walkers.mp4", seconds=1)
>>> print(scalor.score(tracks, "gt.txt").table())

Names are imported when they are first used, so `import scalor` itself is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalor.checkpoint import save
    from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
    from scalor.errors import InputError
    from scalor.evaluation.score import score
    from scalor.fitting.fit import Fitted, fit
    from scalor.forecast import Prediction, predict
    from scalor.loaded import LoadedModel, load
    from scalor.model.scalor import SCALOR
    from scalor.nn.interface import Model
    from scalor.pipeline import track, track_to_folder
    from scalor.presets import build, get_preset, register_preset
    from scalor.registry import register_scenes
    from scalor.systems import System, register_system
    from scalor.tracks import Tracks, read_tracks

__version__ = "0.2.0"
__all__ = [
    "SCALOR",
    "Config",
    "Fitted",
    "InputError",
    "LoadedModel",
    "Model",
    "ModelConfig",
    "Prediction",
    "SceneConfig",
    "System",
    "Tracks",
    "TrainConfig",
    "build",
    "fit",
    "get_preset",
    "load",
    "predict",
    "read_tracks",
    "register_preset",
    "register_scenes",
    "register_system",
    "save",
    "score",
    "track",
    "track_to_folder",
]

MODULES = {
    "SCALOR": "scalor.model.scalor",
    "Config": "scalor.config",
    "Fitted": "scalor.fitting.fit",
    "InputError": "scalor.errors",
    "LoadedModel": "scalor.loaded",
    "Model": "scalor.nn.interface",
    "ModelConfig": "scalor.config",
    "Prediction": "scalor.forecast",
    "SceneConfig": "scalor.config",
    "System": "scalor.systems",
    "Tracks": "scalor.tracks",
    "TrainConfig": "scalor.config",
    "build": "scalor.presets",
    "fit": "scalor.fitting.fit",
    "get_preset": "scalor.presets",
    "load": "scalor.loaded",
    "predict": "scalor.forecast",
    "read_tracks": "scalor.tracks",
    "register_preset": "scalor.presets",
    "register_scenes": "scalor.registry",
    "register_system": "scalor.systems",
    "save": "scalor.checkpoint",
    "score": "scalor.evaluation.score",
    "track": "scalor.pipeline",
    "track_to_folder": "scalor.pipeline",
}
"""The module that defines each public name."""


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module 'scalor' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *MODULES])
