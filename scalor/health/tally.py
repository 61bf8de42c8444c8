"""Running medians in constant memory."""

import numpy as np
from jaxtyping import Float

FINENESS = 16
"""Bins per octave. A median is accurate to about 2 %."""
OCTAVES = (-12, 20)
"""Exponents of the smallest and largest powers of two. Numbers beyond them are clipped to this range."""


class Tally:
    """A histogram of positive numbers with logarithmic bins.

    >>> lengths = Tally()
    >>> lengths.add(np.array([3.0, 4.0, 50.0]))
    >>> round(lengths.median())
    4
    """

    def __init__(self) -> None:
        self.weight = np.zeros((OCTAVES[1] - OCTAVES[0]) * FINENESS + 1)

    def add(self, values: Float[np.ndarray, " N"], weights: Float[np.ndarray, " N"] | None = None) -> None:
        """Add numbers, each with weight 1 or with its own weight."""
        octave = np.log2(np.maximum(values, 2.0 ** OCTAVES[0]))
        bins = np.rint((octave - OCTAVES[0]) * FINENESS).astype(int).clip(0, len(self.weight) - 1)
        np.add.at(self.weight, bins, 1.0 if weights is None else weights)

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    def median(self) -> float | None:
        """Return the weighted median; None if nothing was added."""
        if self.total == 0:
            return None
        middle = int(np.searchsorted(np.cumsum(self.weight), self.total / 2))
        return float(2.0 ** (OCTAVES[0] + middle / FINENESS))
