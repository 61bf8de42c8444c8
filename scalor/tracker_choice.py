"""The choice of a tracker for a video: trained weights, a loaded model, or a classical tracker.

Classical trackers have names such as `classical-colour`, which are given in place of weights.
"""

import copy
import os
from dataclasses import dataclass, replace
from typing import Any

import torch

from scalor import checkpoint, fingerprints
from scalor.boxes import check_object_size
from scalor.checkpoint import StrPath
from scalor.classical.tracker import PREFIX, ClassicalTracker, named
from scalor.config import Config, SceneConfig
from scalor.errors import InputError, require, shown
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Model, Tracker
from scalor.still.still_background import StillBackground
from scalor.tracking.follow import Streaming
from scalor.tracking.video_view import VideoView, is_universal, slots_for

SLOTS_PER_PROPOSAL = 3
"""Slots per proposal of universal weights: slots / SLOTS_PER_PROPOSAL objects or more may appear in a frame after the
first."""
MOTION = PREFIX + "motion"
"""Name of the classical tracker that measures object sizes itself if they are not given."""


@dataclass(frozen=True)
class TrackerChoice:
    """The options of a run, checked before the video is read."""

    weights: StrPath | Model
    """A shipped name, a run folder, a checkpoint file, the name of a classical tracker, or a loaded model."""
    object_size: tuple[float, float] | None = None
    """Typical height and width of an object, pixels of the video; None to measure it."""
    slots: int | None = None
    """Largest number of objects at once; None to choose it by what the video shows."""
    masks: bool = False
    raw: bool = False
    device: str | torch.device = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Model | str | os.PathLike):
            raise InputError(f"weights is {shown(self.weights)}: give a name, a run folder, a file or a loaded model.")
        require(self.slots is None or self.slots >= 1, "slots", self.slots, "give a whole number from 1")
        if self.object_size is not None:
            check_object_size(self.object_size)
        if self.classical:
            self._check_classical()
        elif self.object_size is not None and self.scene.kind != "composed":
            raise InputError(
                f"weights is {self.name!r}: the size of the objects was fixed in training, so leave --object-size out, "
                "or choose a classical tracker, such as --weights classical-colour."
            )

    @property
    def name(self) -> str:
        """The weights as text."""
        return type(self.weights).__name__ if isinstance(self.weights, Model) else os.fspath(self.weights)

    @property
    def fingerprint(self) -> str:
        """A text that differs for other weights."""
        if self.classical:
            return self.name
        if isinstance(self.weights, Model):
            return f"{fingerprints.of_tensors(self.weights.state_dict())} {self.weights.config}"
        saved = checkpoint.read(checkpoint.find(self.weights))
        return f"{fingerprints.of_tensors(saved.weights)} {saved.config}"

    @property
    def classical(self) -> bool:
        """Whether a classical tracker is chosen."""
        return is_classical(self.weights)

    @property
    def scene(self) -> SceneConfig:
        """The scenes that the weights were trained on."""
        return SceneConfig() if self.classical else config_of(self.weights).scene

    @property
    def stride(self) -> int:
        """The stride that the weights were fitted with."""
        return self.scene.stride

    @property
    def still(self) -> bool:
        """Whether the tracker needs a camera that stands still."""
        if self.classical:
            return self.weights == MOTION
        return bool(getattr(config_of(self.weights).model, "still", False))

    def load(self, view: VideoView) -> Streaming:
        """Return the tracker for a video."""
        if not self.classical:
            return load_for(view, self.weights, self.device, self.slots)
        found, background = view.found, view.background
        if self.weights != MOTION:
            assert self.object_size is not None  # checked above
            return named(self.name, self.object_size)
        if found is None or background is None:
            raise InputError(
                f"{view.video.name} shows nothing that moves: choose another part of it with --start, --end or "
                "--region."
            )
        tracker: ClassicalTracker = named(self.name, self.object_size or found.object_size)
        return replace(tracker, scene=StillBackground(background.epochs), test=found.test)

    def _check_classical(self) -> None:
        """Raise InputError for options that a classical tracker does not support, and for an unknown name."""
        for option in ("slots", "masks"):
            if getattr(self, option):
                raise InputError(f"weights is {self.name!r}: it has no {option}, so leave --{option} out.")
        if self.raw:
            raise InputError(
                f"weights is {self.name!r}: a classical tracker has no post-processing to skip, so leave --raw out."
            )
        if self.object_size is None and self.weights != MOTION:
            raise InputError(
                f"weights is {self.name!r}: it needs the size of the objects, for example --object-size 9x9; or "
                f"choose --weights {MOTION}, which measures it."
            )
        named(self.name, self.object_size or (1.0, 1.0))


def is_classical(weights: object) -> bool:
    """Return whether weights are the name of a classical tracker."""
    return isinstance(weights, str) and weights.startswith(PREFIX)


def config_of(weights: StrPath | Model) -> Config[Any]:
    """Return the config of the run that weights or a loaded model are of."""
    if not isinstance(weights, Model):
        return checkpoint.read(checkpoint.find(weights)).config
    return weights.run or Config(weights.config, SceneConfig(), SceneConfig())


def load_for(
    view: VideoView, weights: StrPath | Model, device: str | torch.device = "auto", slots: int | None = None
) -> Tracker:
    """Return a model with enough slots, and enough proposals per frame, for the objects of a video.

    See `load_sized` for the parameters.
    """
    model = load_sized(view, weights, device, slots)
    if isinstance(model, SCALOR) and is_universal(config_of(weights).scene):
        model.set_proposals(max(model.config.proposals, model.config.slots // SLOTS_PER_PROPOSAL))
    return model


def load_sized(
    view: VideoView, weights: StrPath | Model, device: str | torch.device = "auto", slots: int | None = None
) -> Tracker:
    """Return a model with enough slots for the objects of a video.

    A loaded model is not changed: the result is a copy of it that shares its parameters and stays on its device.

    Parameters
    ----------
    view : VideoView
        The video, as returned by `look_at`.
    weights : str, Path or Model
        A shipped name, a run folder, a checkpoint file, or a loaded model.
    device : str or torch.device, default "auto"
        Where to put weights that are loaded here.
    slots : int, optional
        The largest number of objects at once. By default it follows from the video.
    """
    name = type(weights).__name__ if isinstance(weights, Model) else os.fspath(weights)
    loaded = copy.copy(weights) if isinstance(weights, Model) else checkpoint.load(weights, device)
    model = checkpoint.as_tracker(loaded, name)
    config = config_of(weights)
    slots = slots or slots_for(view, config.model, config.scene)
    if slots is not None:
        model.config = checkpoint.with_slots(model.config, slots, name)
    return model
