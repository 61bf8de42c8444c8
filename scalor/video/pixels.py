"""Pixels: convert every kind to uint8 RGB, resize pictures for a model, amplify faint differences.

Transparent pixels are composited over black. Pixels of more than 8 bits are scaled by the range of their values.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Num, UInt8
from torch.nn.functional import interpolate

from scalor.errors import InputError
from scalor.video.sources import Picture

PERCENTILES = (0.1, 99.9)
"""Percentiles of the values that become black and white. A few hot or dead camera pixels do not change them."""
PIXELS_A_PICTURE = 65_536
"""Number of pixels drawn at random from each picture to measure levels: enough for the percentiles, yet quick."""


def over_black(picture: UInt8[np.ndarray, "H W 4"]) -> UInt8[np.ndarray, "H W 3"]:
    """Composite a picture with an alpha channel over black."""
    alpha = picture[..., 3:].astype(np.uint16)
    return ((picture[..., :3] * alpha + 127) // 255).astype(np.uint8)


@dataclass(frozen=True)
class Levels:
    """The values that become black and white. All pictures of a video share them; otherwise it would flicker."""

    black: float
    white: float

    def apply(self, values: Num[np.ndarray, "H W"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return a grey picture; NaN becomes black."""
        scaled = (values.astype(np.float32) - self.black) / (self.white - self.black)
        grey = (np.nan_to_num(scaled.clip(0, 1)) * 255 + 0.5).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)


def measure_levels(pictures: Iterable[Num[np.ndarray, "H W"]], name: str) -> Levels:
    """Return the levels at `PERCENTILES` of the finite values of several pictures, from a random sample of pixels."""
    random = np.random.default_rng(0)
    chosen = []
    for picture in pictures:
        values = picture[np.isfinite(picture)].astype(np.float32)
        if len(values):
            chosen.append(values[random.integers(len(values), size=PIXELS_A_PICTURE)])
    if not chosen:
        raise InputError(f"{name} holds no finite values: give pictures with numbers in them.")
    black, white = np.percentile(np.concatenate(chosen), PERCENTILES)
    return Levels(float(black), float(white) if white > black else float(black) + 1)


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
