"""`load`: trained models with methods for whole videos.

>>> model = scalor.load("any")
>>> tracks = model.track("ants.mp4", masks=True)
>>> future = model.predict("ants.mp4", seconds=2)
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from scalor import checkpoint
from scalor.checkpoint import StrPath
from scalor.config import FPS
from scalor.data.observation import Observation
from scalor.forecast import Prediction, predict
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Model, Tracker
from scalor.pipeline import track
from scalor.tracks import Tracks

if TYPE_CHECKING:
    Base: TypeAlias = SCALOR
else:
    Base = object


class LoadedModel(Base):
    """A trained model that also takes whole videos, as files or arrays of plain frames.

    It is an instance of its system's class, too: `load` returns a `SCALOR`, unless the weights are of another system.

    Examples
    --------
    >>> model = scalor.load("any")
    >>> tracks = model.track("ants.mp4")
    """

    slots_given: int | None = None
    """The number of slots that `load` was asked for."""
    system_class: type[Model]
    """The class of the system that the weights are of."""

    def __reduce__(self) -> tuple[Any, ...]:
        return empty_model, (self.system_class,), self.__dict__.copy()

    def track(self, frames: object, masks: bool = False, **options: Any) -> Tracks:
        """Track all objects of a video.

        Frames of floats with colours first ([T, 3, H, W] or batches [B, T, 3, H, W]) go to the model as they are,
        unless it is for a camera that stands still. Everything else is tracked as by `scalor.track`, which computes the
        background and the scale from the video itself.

        Parameters
        ----------
        frames : str, Path, array or Observation
            A video as for `scalor.track`: a path, uint8, or floats in [0, 1], of shape [T, H, W, 3] or [T, 3, H, W].
        masks : bool, default False
            Also return the visible mask of every object.
        **options
            For videos: the parameters of `scalor.track` besides `weights` and `device`, such as `start` and `fps`.

        Returns
        -------
        Tracks
            One row for each object and frame.

        Examples
        --------
        >>> model = scalor.load("shapes-md")
        >>> tracks = model.track(frames)  # [T, 3, H, W] in [0, 1]
        >>> tracks = scalor.load("any").track("ants.mp4", start=10)
        """
        if not options and isinstance(self, Tracker) and self._takes(frames):
            return super().track(frames, masks)
        options.setdefault("slots", self.slots_given)
        options.setdefault("quiet", not isinstance(frames, str | Path))
        return track(cast(Any, frames), cast(Model, self), masks=masks, **options)

    def predict(
        self, video: object, seconds: float = 1.0, sample: bool = False, fps: float = FPS, **options: Any
    ) -> Prediction:
        """Generate the continuation of a video; see `scalor.predict`.

        Parameters
        ----------
        video : str, Path or array
            As for `scalor.track`.
        seconds : float, default 1
            How much to generate.
        sample : bool, default False
            Draw one of the possible futures at random. By default, the most likely one is returned.
        fps : float, default 10
            Frames per second of images and arrays, which hold no times.
        **options
            The other parameters of `scalor.predict` besides `weights` and `device`, such as `at` and `observe`.

        Returns
        -------
        Prediction
            The observed and generated frames and their tracks.

        Examples
        --------
        >>> future = scalor.load("any").predict("ants.mp4", seconds=2)
        """
        options.setdefault("slots", self.slots_given)
        return predict(cast(Any, video), cast(Model, self), seconds, sample, fps=fps, **options)

    def _takes(self, frames: object) -> bool:
        """Return whether frames go to the model as they are."""
        if isinstance(frames, Observation):
            return True
        if getattr(self.config, "still", False):
            return False
        floats = frames.is_floating_point() if isinstance(frames, Tensor) else np.asarray(frames).dtype.kind == "f"
        shape = tuple(getattr(frames, "shape", ()))
        return floats and not (len(shape) == 4 and shape[-1] == 3 != shape[1])


@cache
def loaded_class(system: type[Model]) -> type[LoadedModel]:
    """Return a system's class with the methods of `LoadedModel`."""
    names = {"__doc__": system.__doc__, "__module__": __name__, "system_class": system}
    return cast(type[LoadedModel], type(system.__name__, (LoadedModel, system), names))


def empty_model(system: type[Model]) -> LoadedModel:
    """Return a model without parameters, to unpickle into."""
    made = loaded_class(system)
    return made.__new__(made)


def load(name_or_path: StrPath, device: str | torch.device = "cpu", slots: int | None = None) -> LoadedModel:
    """Load a trained model.

    Parameters
    ----------
    name_or_path : str or Path
        A shipped name such as `any` or `shapes-md`, a run folder, or a checkpoint file.
    device : str or torch.device, default "cpu"
        Where to put the model: `cpu`, `cuda`, `cuda:1`, or `auto` (the GPU if there is one, otherwise the CPU).
    slots : int, optional
        The largest number of objects tracked at once. No weight depends on it. Default: as in training; for a video
        that is tracked by universal or fitted weights, by what the video shows.

    Returns
    -------
    LoadedModel
        The model in evaluation mode: a `SCALOR`, or a model of the system that the weights belong to.

    Raises
    ------
    InputError
        If the weights are not found or cannot be read, if the device is not available, or if `slots` is given for a
        system that has none.

    Examples
    --------
    >>> model = scalor.load("shapes-md")
    >>> tracks = model.track(frames)  # [T, 3, H, W] in [0, 1]
    >>> model = scalor.load("runs/mine", device="auto", slots=64)
    """
    model = checkpoint.load(name_or_path, device, slots)
    model.__class__ = loaded_class(type(model))
    loaded = cast(LoadedModel, model)
    loaded.slots_given = slots
    return loaded
