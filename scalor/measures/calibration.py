"""From pixels to millimetres: a known scale, or two points a known length apart."""

import math
from dataclasses import dataclass

from scalor.errors import InputError

LEAST_SCALE, MOST_SCALE = 1e-12, 1e12
"""Millimetres that a pixel may show: far less than an atom, far more than the way to the moon."""


@dataclass(frozen=True)
class Calibration:
    """Scale of the picture. Without one, lengths stay in pixels.

    The scale must be the same everywhere: a camera that looks straight at a plane.

    Examples
    --------
    >>> Calibration.from_points((40, 50), (640, 50), length_mm=72)
    Calibration(mm_per_pixel=0.12)
    """

    mm_per_pixel: float | None = None

    def __post_init__(self) -> None:
        scale = self.mm_per_pixel
        if scale is not None and not (isinstance(scale, int | float) and LEAST_SCALE <= scale <= MOST_SCALE):
            raise InputError(
                f"mm_per_pixel is {scale!r}: give the millimetres that a pixel shows, from {LEAST_SCALE:g} to "
                f"{MOST_SCALE:g}."
            )

    @classmethod
    def from_points(cls, first: tuple[float, float], second: tuple[float, float], length_mm: float) -> "Calibration":
        """Return the scale at which two points of the picture, in pixels, are `length_mm` apart."""
        distance = math.dist(first, second)
        if not 0 < distance < math.inf:
            raise InputError(f"the points {first} and {second} are {distance:g} px apart: give two different points.")
        if not 0 < length_mm < math.inf:
            raise InputError(f"the known length is {length_mm:g} mm: give a length above 0.")
        return cls(length_mm / distance)

    @property
    def unit(self) -> str:
        """Unit of lengths, for column names: "mm", or "px" without a scale."""
        return "px" if self.mm_per_pixel is None else "mm"

    @property
    def scale(self) -> float:
        """Length of a pixel in `unit`."""
        return 1.0 if self.mm_per_pixel is None else float(self.mm_per_pixel)
