"""Pixel values: `Picture`, transparency, grey values of more than 8 bits, and contrast against a background.

Pixels of every kind become uint8 RGB: transparent ones are composited over black, and those of more than 8 bits are
scaled by the range of their values.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Num, UInt8

from scalor.errors import InputError

Picture = UInt8[np.ndarray, "H W 3"]
LEVEL_PERCENTILES = (0.1, 99.9)
"""Percentiles of the values that become black and white. A few hot or dead camera pixels do not change them."""
PIXELS_PER_SAMPLE = 65_536
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

    def apply(self, values: Num[np.ndarray, "H W"] | Num[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return an 8-bit picture of grey or RGB values; NaN becomes black."""
        scaled = (values.astype(np.float32) - self.black) / (self.white - self.black)
        levels: np.ndarray = (np.nan_to_num(scaled.clip(0, 1)) * 255 + 0.5).astype(np.uint8)
        return np.repeat(levels[..., None], 3, axis=2) if levels.ndim == 2 else levels


def measure_levels(pictures: Iterable[Num[np.ndarray, "..."]], name: str) -> Levels:
    """Return the levels at `LEVEL_PERCENTILES` of the finite values of pictures, from a random sample of pixels."""
    random = np.random.default_rng(0)
    chosen = []
    for picture in pictures:
        values = picture[np.isfinite(picture)].astype(np.float32)
        if len(values):
            chosen.append(values[random.integers(len(values), size=PIXELS_PER_SAMPLE)])
    if not chosen:
        raise InputError(f"{name} holds no finite values: give pictures with numbers in them.")
    black, white = np.percentile(np.concatenate(chosen), LEVEL_PERCENTILES)
    return Levels(float(black), float(white) if white > black else float(black) + 1)


def amplify_difference(picture: Picture, background: Picture, contrast: float) -> Picture:
    """Return the picture with its difference from the background multiplied by `contrast`."""
    if contrast == 1:
        return picture
    stronger: np.ndarray = background + contrast * (picture.astype(np.float32) - background)
    return stronger.round().clip(0, 255).astype(np.uint8)
