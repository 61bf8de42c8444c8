"""Options of a fit, and the record of a fit whose settings are chosen and whose training frames are saved."""

import math
import os
from dataclasses import dataclass

from scalor.boxes import check_object_size
from scalor.checkpoint import StrPath
from scalor.config import Config
from scalor.errors import InputError, require
from scalor.tracking.video_view import VideoView


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What the user may choose. None means that it is chosen from the videos."""

    minutes: float | None = None
    """Time of a refinement, preparation included."""
    steps: int | None = None
    """Number of optimiser steps, instead of `minutes`."""
    weights: StrPath | None = None
    """Universal weights to start from; None for `any`."""
    scratch: bool = False
    """Train from random weights."""
    object_size: tuple[float, float] | None = None
    """Typical height and width of an object, pixels of the video."""
    scale: float | None = None
    """With `scratch`: pixels of the model's frames per pixel of the video."""
    stride: int | None = None
    """Learn from every n-th frame."""

    def __post_init__(self) -> None:
        for name in ("minutes", "scale"):
            value = getattr(self, name)
            require(value is None or 0 < value < math.inf, name, value, "give a number above 0")
        for name in ("steps", "stride"):
            value = getattr(self, name)
            require(value is None or value >= 1, name, value, "give a whole number from 1")
        if self.object_size is not None:
            check_object_size(self.object_size)
        if self.scratch and self.minutes is not None:
            raise InputError(f"--minutes is {self.minutes:g}: give --steps instead, which --scratch needs.")
        if not self.scratch and self.scale is not None:
            raise InputError(
                f"--scale is {self.scale}: universal weights see objects at their own scale; give --object-size "
                "instead, or train from scratch with --scratch."
            )

    @property
    def start(self) -> str:
        """Name of the universal weights to start from."""
        return os.fspath(self.weights or "any")


@dataclass(frozen=True)
class PreparedTraining:
    """A training that is ready to start."""

    config: Config
    views: list[VideoView]
    """What was measured in each video. Settings that the user does not give are chosen from the first one."""
    frames: int
    """Number of frames kept for training."""
    seconds: float | None = None
    """Time left for training, which decides the number of steps. None if that is chosen already."""
