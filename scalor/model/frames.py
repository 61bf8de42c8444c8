"""Checks of the caller's frames. A wrong type, shape or range raises `InputError` with a one-sentence message."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scalor.errors import InputError


def check_frames(
    frames: object, cell: tuple[int, int], minimum: int = 2, channels: int = 3
) -> Float[Tensor, "B T C H W"]:
    """Return the frames as a float tensor with a batch dimension.

    Parameters
    ----------
    frames
        Numpy array or torch tensor of floats in [0, 1], [T, C, H, W] or [B, T, C, H, W].
    cell
        Height and width of a cell, pixels. The frame's height and width must be multiples of them.
    minimum
        Smallest allowed number of frames.
    channels
        Required number of channels C: 3 for colours. With 7, channels 0 to 2 are the frame's colours, channels 3 to 5
        those of the background, and channel 6 is the size of objects at each row, in units of `scalor.boxes.FULL`
        typical sizes.
    """
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
    if frames.ndim not in (4, 5) or frames.shape[-3] != channels:
        behind = " (a frame, the still scene behind it, and how large objects are)" if channels > 3 else ""
        raise InputError(
            f"frames has shape {list(frames.shape)}: give [T, {channels}, H, W] or [B, T, {channels}, H, W], colour "
            f"before height{behind}."
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
    low, high = map(float, torch.aminmax(batch))  # NaN if any pixel is NaN
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError("frames holds NaN or infinite pixels: replace them, for example with numpy.nan_to_num.")
    if low < 0 or high > 1:
        raise InputError(
            f"frames ranges from {low:g} to {high:g}: pixels must lie in [0, 1]; divide 8-bit values by 255."
        )
    return batch


def check_frame(frame: object, cell: tuple[int, int], channels: int = 3) -> Float[Tensor, "1 C H W"]:
    """Return one frame [C, H, W] of a stream with a batch dimension, after the checks of `check_frames`."""
    if not isinstance(frame, np.ndarray | Tensor):
        raise InputError(f"frame is a {type(frame).__name__}: give a numpy array or a torch tensor [3, H, W].")
    if frame.ndim != 3:
        raise InputError(f"frame has shape {list(frame.shape)}: give one frame, [3, H, W].")
    return check_frames(frame[None], cell, 1, channels)[:, 0]
