"""Prepare pictures for a model: resize them and amplify faint differences from the background."""

import numpy as np
import torch
from jaxtyping import UInt8
from torch.nn.functional import interpolate

from scalor.video.sources import Picture


def shrunken_size(size: tuple[int, int], scale: float, stretch: float = 1.0) -> tuple[int, int]:
    """Return height and width in whole pixels: both multiplied by `scale`, the width also by `stretch`."""
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale * stretch))


def shrink(picture: Picture, size: tuple[int, int]) -> UInt8[np.ndarray, "h w 3"]:
    """Return the picture resized to (height, width) with antialiasing; it may also be enlarged."""
    if picture.shape[:2] == size:
        return picture
    pixels = torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)[None]
    resized = interpolate(pixels, size, mode="bilinear", antialias=True, align_corners=False)
    shrunken: np.ndarray = resized[0].permute(1, 2, 0).numpy()
    return shrunken


def amplify_difference(picture: Picture, still: Picture, contrast: float) -> Picture:
    """Return the picture with its difference from the background `still` multiplied by `contrast`."""
    if contrast == 1:
        return picture
    stronger: np.ndarray = still + contrast * (picture.astype(np.float32) - still)
    return stronger.round().clip(0, 255).astype(np.uint8)
