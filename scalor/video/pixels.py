"""Pixels of every kind become uint8 RGB: transparent ones over black, deep ones by the range of their values."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Num, UInt8

from scalor.errors import InputError

PERCENTILES = (0.1, 99.9)
"""What becomes black and what becomes white. A few hot or dead pixels of a camera do not decide."""
PIXELS_A_PICTURE = 65_536
"""Chosen at random to measure levels: enough for the percentiles, little enough to be quick."""


def over_black(picture: UInt8[np.ndarray, "H W 4"]) -> UInt8[np.ndarray, "H W 3"]:
    """RGB of a picture with an alpha channel, laid over black."""
    alpha = picture[..., 3:].astype(np.uint16)
    return ((picture[..., :3] * alpha + 127) // 255).astype(np.uint8)


@dataclass(frozen=True)
class Levels:
    """The values that become black and white: the same for all pictures of a video, or it would flicker."""

    black: float
    white: float

    def apply(self, values: Num[np.ndarray, "H W"]) -> UInt8[np.ndarray, "H W 3"]:
        """Grey, with what is not a number in black."""
        scaled = (values.astype(np.float32) - self.black) / (self.white - self.black)
        grey = (np.nan_to_num(scaled.clip(0, 1)) * 255 + 0.5).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)


def measure_levels(pictures: Iterable[Num[np.ndarray, "H W"]], name: str) -> Levels:
    """Levels at percentiles of all the values of some pictures."""
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
