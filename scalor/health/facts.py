"""Facts of a tracking run: the raw counts and running medians from which its health is judged."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

BINS_PER_OCTAVE = 16
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
        self.weight = np.zeros((OCTAVES[1] - OCTAVES[0]) * BINS_PER_OCTAVE + 1)

    def add(self, values: Float[np.ndarray, " N"], weights: Float[np.ndarray, " N"] | None = None) -> None:
        """Add numbers, each with weight 1 or with its own weight."""
        octave = np.log2(np.maximum(values, 2.0 ** OCTAVES[0]))
        bins = np.rint((octave - OCTAVES[0]) * BINS_PER_OCTAVE).astype(int).clip(0, len(self.weight) - 1)
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
        return float(2.0 ** (OCTAVES[0] + middle / BINS_PER_OCTAVE))


@dataclass(frozen=True)
class Facts:
    """Counts and shares of a tracking run.

    Shares lie between 0 and 1, and are None where their denominator is zero. Sizes are height and width in pixels.
    """

    frames: int
    """Number of tracked frames."""
    seconds: float
    """Duration from the first to the last tracked frame."""
    rows: int
    """Number of boxes in all frames."""
    moving_frames: int
    """Number of frames that contain foreground, specks not counted."""
    unseen_frames: int
    """Number of frames that contain foreground but no box."""
    foreground: float
    """Mean share of the picture that differs from the background."""
    most_foreground: float
    """Largest share of the picture that differs from the background in any frame."""
    explained: float | None
    """Share of the foreground that lies inside boxes."""
    empty: float | None
    """Share of the boxes that contain hardly any foreground."""
    fill: float | None
    """Median over boxes of the share of foreground in the box."""
    pairs: int
    """Number of isolated boxes, whose foreground touches no other box and not the border."""
    fitting: float | None
    """Share of the isolated boxes that fit their foreground."""
    doubles: float | None
    """Share of the boxes that duplicate another box."""
    object_size: tuple[float, float] | None
    """Typical object size that the tracker works with, given or learned."""
    box_size: tuple[float, float] | None
    """Median size of the boxes."""
    blob_size: tuple[float, float] | None
    """Median size of the connected components of the foreground."""
    size_limits: tuple[float, float] | None
    """Smallest and largest side of a box that the tracker can report, in pixels."""
    ids: int
    """Number of different ids."""
    entered: int
    """Number of ids that began at the border, or at the start of the video."""
    appeared: int
    """Number of ids that began in the middle of the picture."""
    replaced: int
    """Number of ids that began where another id had just ended."""
    jumps: int
    """Number of steps in which an id moved implausibly far."""
    steps: int
    """Number of steps of ids from one frame to the next, jumps included."""
    life: float | None
    """Median lifetime of an id, in seconds."""
    crossing: float | None
    """Seconds that an object of median speed needs to cross the view."""
    light_steps: int
    """Number of sudden changes of the light of the whole picture."""
    dropped: int
    """Number of detections for which no slot was left."""
    dropping_frames: int
    """Number of frames in which detections were dropped."""

    @property
    def objects(self) -> float:
        """Mean number of boxes in a frame."""
        return self.rows / max(self.frames, 1)

    @property
    def ids_per_object(self) -> float | None:
        """Estimated number of ids per object; None where there are no objects.

        An object has one id, and one more whenever an id begins in the middle of the picture, replaces another id or
        jumps. The number of objects is the number of ids that entered, but at least the mean number of boxes a frame.
        """
        objects = max(self.entered, self.objects)
        return 1 + (self.appeared + self.replaced + self.jumps) / objects if objects else None
