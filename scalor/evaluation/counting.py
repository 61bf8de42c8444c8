"""Counting metrics: the error of the number of objects, and the numbers of discoveries and propagations.

The count error is the paper's CountMAE (section 5.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from scalor.evaluation.tracking import FrameMatch, ratio
from scalor.tracks import Tracks


@dataclass(frozen=True)
class CountErrors:
    """Relative count errors over frames with at least one counted object. The sum of two covers the clips of both."""

    error: float = 0.0
    """Sum over frames of |predicted - true| / true."""
    frames: int = 0
    """Number of frames with at least one counted object."""

    def __add__(self, other: "CountErrors") -> "CountErrors":
        return CountErrors(self.error + other.error, self.frames + other.frames)

    @property
    def mae(self) -> float:
        """Mean relative error over frames; nan if no frame shows an object."""
        return ratio(self.error, self.frames)


def count_errors(matches: Sequence[FrameMatch]) -> CountErrors:
    """Return the count errors of one clip.

    The report passes the matches of the paper gate, from which predictions on ignored objects have been removed.
    """
    true = np.array([len(m.pair.true_id) for m in matches], dtype=np.int64)
    pred = np.array([len(m.pair.pred_id) for m in matches], dtype=np.int64)
    shown = true > 0
    return CountErrors(float((np.abs(pred - true)[shown] / true[shown]).sum()), int(shown.sum()))


@dataclass(frozen=True)
class BirthCounts:
    """Counts of discoveries and propagations over all rows of tracks, of any presence.

    The sum of two covers the clips of both.
    """

    clips: int = 0
    """Number of clips."""
    discovered: int = 0
    """Number of rows of objects discovered in that frame, the first frame included."""
    later: int = 0
    """Number of rows in all frames but the first of a clip."""
    propagated: int = 0
    """Number of rows in `later` of objects propagated from the previous frame."""

    def __add__(self, other: "BirthCounts") -> "BirthCounts":
        return BirthCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def propagation_rate(self) -> float:
        """Share of the objects after the first frame that were propagated, not discovered."""
        return ratio(self.propagated, self.later)

    @property
    def discoveries_per_clip(self) -> float:
        """Mean number of discoveries in a clip."""
        return ratio(self.discovered, self.clips)


def birth_counts(tracks: Tracks, clips: int) -> BirthCounts:
    """Count discoveries and propagations.

    `clips` is the number of clips. It is a parameter because a clip without any object has no row in `tracks`.
    """
    later = tracks.frame > 0
    return BirthCounts(
        clips=clips,
        discovered=int(tracks.discovered.sum()),
        later=int(later.sum()),
        propagated=int((later & ~tracks.discovered).sum()),
    )
