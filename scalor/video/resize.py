"""Pictures as a model sees them: of another size, and with faint things made stronger."""

import numpy as np
import torch
from jaxtyping import UInt8
from torch.nn.functional import interpolate

from scalor.video.sources import Picture


def shrunken_size(size: tuple[int, int], scale: float, stretch: float = 1.0) -> tuple[int, int]:
    """Height and width in whole pixels, the width `stretch` times more than the height."""
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale * stretch))


def shrink(picture: Picture, size: tuple[int, int]) -> UInt8[np.ndarray, "h w 3"]:
    """The picture at another height and width, without the jags of pixels left out. It may also grow."""
    if picture.shape[:2] == size:
        return picture
    pixels = torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)[None]
    resized = interpolate(pixels, size, mode="bilinear", antialias=True, align_corners=False)
    shrunken: np.ndarray = resized[0].permute(1, 2, 0).numpy()
    return shrunken


def strengthen(picture: Picture, still: Picture, contrast: float) -> Picture:
    """The picture with its difference from the still scene so many times as strong."""
    if contrast == 1:
        return picture
    stronger: np.ndarray = still + contrast * (picture.astype(np.float32) - still)
    return stronger.round().clip(0, 255).astype(np.uint8)
