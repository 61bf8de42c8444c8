"""Change of resolution: `resize` to any size, and `downsample` by a whole factor."""

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8, UInt16
from torch.nn.functional import interpolate

from scalor.video.pixels import Picture


def scaled_size(size: tuple[int, int], scale: float, stretch: float = 1.0) -> tuple[int, int]:
    """Return height and width in whole pixels: both multiplied by `scale`, the width also by `stretch`."""
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale * stretch))


def resize(picture: Picture, size: tuple[int, int]) -> UInt8[np.ndarray, "h w 3"]:
    """Return the picture reduced or enlarged to (height, width), bilinearly with antialiasing."""
    if picture.shape[:2] == size:
        return picture
    pixels = torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)[None]
    resized = interpolate(pixels, size, mode="bilinear", antialias=True, align_corners=False)
    result: np.ndarray = resized[0].permute(1, 2, 0).numpy()
    return result


def downsample(values: Float[np.ndarray, "3 H W"], factor: int) -> Float[np.ndarray, "3 h w"]:
    """Return the means of squares of `factor` pixels; incomplete squares at the right and bottom are cut off."""
    height, width = (side // factor * factor for side in values.shape[1:])
    parts = [values[:, y:height:factor, x:width:factor] for y in range(factor) for x in range(factor)]
    # Frames often have their channels last in memory, which would make all later steps slow.
    return np.ascontiguousarray(sum(parts[1:], parts[0]) / len(parts))


def downsample_mask(mask: Bool[np.ndarray, "H W"], factor: int) -> Bool[np.ndarray, "h w"]:
    """Return a mask of squares of `factor` pixels, true if at least half of their pixels are true.

    Incomplete squares at the right and bottom are cut off.
    """
    if factor == 1:
        return mask
    height, width = (side // factor * factor for side in mask.shape)
    cut = mask[:height, :width].view(np.uint8)
    rows = _sum_of([cut[first::factor] for first in range(factor)])
    squares = _sum_of([rows[:, first::factor] for first in range(factor)])
    half: np.ndarray = squares * 2 >= factor * factor
    return half


def _sum_of(parts: list[UInt8[np.ndarray, "h w"]] | list[UInt16[np.ndarray, "h w"]]) -> UInt16[np.ndarray, "h w"]:
    """Return the sum of small integer arrays as uint16."""
    total = parts[0].astype(np.uint16)
    for part in parts[1:]:
        total += part
    return total
