"""What a model is given: the images of a video and, for a camera that stands still, its background and ruler.

`check_observation` and `check_frames` check what a caller gives. A wrong type, shape or range raises `InputError` with
a one-sentence message.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scalor.errors import InputError


@dataclass(frozen=True)
class Observation:
    """Images, and what is known of the scene behind them.

    The first dimensions are those of the images that are observed together: [] for one image, [T] for a video, [B, T]
    for a batch of videos. Indexing applies to them.

    Examples
    --------
    >>> video = Observation(torch.rand(2, 10, 3, 64, 64))
    >>> video[:, :5].image.shape
    torch.Size([2, 5, 3, 64, 64])
    """

    image: Float[Tensor, "*batch 3 H W"]
    """Colours in [0, 1]."""
    still: Float[Tensor, "*batch 3 H W"] | None = None
    """Colours of the empty scene behind each image, in [0, 1]; None unless the camera stands still."""
    ruler: Float[Tensor, "*batch H"] | None = None
    """Size of objects at each row of each image, in multiples of the typical size; None unless the camera stands
    still."""

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image, pixels."""
        return self.image.shape[-2], self.image.shape[-1]

    @property
    def values_per_clip(self) -> int:
        """Number of input values of one clip: 3 for each pixel; with background and ruler 7."""
        channels = 3 + (0 if self.still is None else 3) + (0 if self.ruler is None else 1)
        return self.image[0].numel() // 3 * channels

    def __len__(self) -> int:
        return len(self.image)

    def __getitem__(self, index: Any) -> "Observation":
        """Return a part; `index` applies to the dimensions before those of an image."""
        return self.map(lambda part: part[index])

    def map(self, change: Callable[[Tensor], Tensor]) -> "Observation":
        """Apply a function to each tensor."""
        image, still, ruler = self.image, self.still, self.ruler
        return Observation(
            change(image), None if still is None else change(still), None if ruler is None else change(ruler)
        )

    def to(self, device: torch.device | str) -> "Observation":
        """Move all tensors to a device."""
        return self.map(lambda part: part.to(device))

    def unbind(self, dim: int = 0) -> "list[Observation]":
        """Split along one of the dimensions before those of an image."""
        count = self.image.shape[dim]
        return [self[(slice(None),) * dim + (at,)] for at in range(count)]

    def time_first(self) -> "Observation":
        """Return [T, B] instead of [B, T].

        The memory layout of a frame then does not depend on the number of frames.
        """
        return self.map(lambda part: part.transpose(0, 1).contiguous())

    @staticmethod
    def stack(images: "Sequence[Observation]") -> "Observation":
        """Stack observations along a new first dimension."""

        def column(name: str) -> Tensor | None:
            parts = [getattr(one, name) for one in images]
            return None if parts[0] is None else torch.stack(parts)

        return Observation(torch.stack([one.image for one in images]), column("still"), column("ruler"))


def check_observation(frames: object, cell: tuple[int, int], minimum: int = 2, still: bool = False) -> Observation:
    """Return frames as an observation with a batch dimension, [B, T].

    Parameters
    ----------
    frames
        An `Observation`, or a numpy array or torch tensor of floats in [0, 1]: [T, 3, H, W] or [B, T, 3, H, W].
    cell
        Height and width of a cell, pixels. The frame's height and width must be multiples of them.
    minimum
        Smallest allowed number of frames.
    still
        The model needs the background and the ruler of a camera that stands still. Otherwise they are left out.
    """
    image = check_frames(frames, cell, minimum)
    if not still:
        return Observation(image)
    if not isinstance(frames, Observation) or frames.still is None or frames.ruler is None:
        raise InputError(
            "frames come without a background: these weights are for a camera that stands still, so give an "
            "Observation with image, still and ruler, or track a video file with scalor.track(path)."
        )
    behind, ruler = frames.still.float(), frames.ruler.float()
    if frames.image.ndim == 4:
        behind, ruler = behind[None], ruler[None]
    if behind.shape != image.shape or ruler.shape != image.shape[:2] + image.shape[3:4]:
        raise InputError(
            f"frames has images {list(image.shape)}, still {list(behind.shape)} and ruler {list(ruler.shape)}: give a "
            "background of the same shape for each image, and a size for each of its rows."
        )
    check_range("frames' still", behind)
    low, high = map(float, torch.aminmax(ruler))
    if not (low > 0 and math.isfinite(high)):
        raise InputError(f"frames' ruler ranges from {low:g} to {high:g}: sizes must be positive and finite.")
    return Observation(image, behind, ruler)


def check_image(frame: object, cell: tuple[int, int], still: bool = False) -> Observation:
    """Return one image of a stream, an `Observation` or [3, H, W], as [1], after the checks of `check_observation`."""
    if isinstance(frame, Observation):
        one = frame.map(lambda part: part[None])
        check_shape_of_one(frame.image)
    else:
        one = check_shape_of_one(frame)[None]
    return check_observation(one, cell, 1, still)[:, 0]


def check_shape_of_one(frame: object) -> Any:
    """Return a frame if it is an array of three dimensions."""
    if not isinstance(frame, np.ndarray | Tensor):
        raise InputError(f"frame is a {type(frame).__name__}: give a numpy array or a torch tensor [3, H, W].")
    if frame.ndim != 3:
        raise InputError(f"frame has shape {list(frame.shape)}: give one frame, [3, H, W].")
    return frame


def check_frames(frames: object, cell: tuple[int, int], minimum: int = 2) -> Float[Tensor, "B T 3 H W"]:
    """Return the images of frames as a float tensor with a batch dimension; for the parameters see above."""
    if isinstance(frames, Observation):
        frames = frames.image
    if isinstance(frames, np.ndarray):
        if frames.dtype.kind not in "fiub":
            raise InputError(f"frames has type {frames.dtype}: give numbers, floats in [0, 1].")
        plain = frames.astype(np.float32) if frames.dtype.kind == "f" else frames
        frames = torch.from_numpy(np.ascontiguousarray(plain))
    if not isinstance(frames, Tensor):
        raise InputError(f"frames is a {type(frames).__name__}: give a numpy array or a torch tensor.")
    if not frames.is_floating_point():
        raise InputError(
            f"frames has type {frames.dtype}: give floats in [0, 1], for example 8-bit values divided by 255."
        )
    if frames.ndim not in (4, 5) or frames.shape[-3] != 3:
        raise InputError(
            f"frames has shape {list(frames.shape)}: give [T, 3, H, W] or [B, T, 3, H, W], colour before height."
        )
    batch = frames.float() if frames.ndim == 5 else frames.float()[None]
    if batch.shape[0] == 0 or batch.shape[1] < minimum:
        raise InputError(
            f"frames has shape {list(frames.shape)}: it needs at least {minimum} "
            f"frame{'s' if minimum > 1 else ''} to work on."
        )
    for axis, size, side in zip(("height", "width"), batch.shape[-2:], cell, strict=True):
        if size == 0 or size % side:
            raise InputError(
                f"frames has shape {list(frames.shape)}: the {axis} {size} must be a multiple of the model's "
                f"{side} px cells, for example {max(1, round(size / side)) * side}."
            )
    check_range("frames", batch)
    return batch


def check_range(name: str, colours: Tensor) -> None:
    """Raise InputError unless all values lie in [0, 1]."""
    low, high = map(float, torch.aminmax(colours))  # NaN if any pixel is NaN
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{name} holds NaN or infinite pixels: replace them, for example with numpy.nan_to_num.")
    if low < 0 or high > 1:
        raise InputError(
            f"{name} ranges from {low:g} to {high:g}: pixels must lie in [0, 1]; divide 8-bit values by 255."
        )
