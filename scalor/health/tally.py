"""Medians of a stream of numbers, in memory that does not grow."""

import numpy as np
from jaxtyping import Float

FINENESS = 16
"""Bins an octave: a median is right to about two hundredths of itself."""
OCTAVES = (-12, 20)
"""Numbers below and above these powers of two are counted as the least and the largest."""


class Tally:
    """A histogram of positive numbers, in bins that grow with them.

    >>> lengths = Tally()
    >>> lengths.add(np.array([3.0, 4.0, 50.0]))
    >>> round(lengths.median())
    4
    """

    def __init__(self) -> None:
        self.weight = np.zeros((OCTAVES[1] - OCTAVES[0]) * FINENESS + 1)

    def add(self, values: Float[np.ndarray, " N"], weights: Float[np.ndarray, " N"] | None = None) -> None:
        """Count some numbers, each once or with its weight."""
        octave = np.log2(np.maximum(values, 2.0 ** OCTAVES[0]))
        bins = np.rint((octave - OCTAVES[0]) * FINENESS).astype(int).clip(0, len(self.weight) - 1)
        np.add.at(self.weight, bins, 1.0 if weights is None else weights)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.weight.sum())

    def median(self) -> float | None:
        """The number with half of the weight below it; none when nothing was counted."""
        if self.total == 0:
            return None
        middle = int(np.searchsorted(np.cumsum(self.weight), self.total / 2))
        return float(2.0 ** (OCTAVES[0] + middle / FINENESS))
