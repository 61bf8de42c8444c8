"""How many objects: the error of the count, and how objects came to be known (found anew or followed)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from scalor.evaluation.tracking import FrameMatch, ratio
from scalor.tracks import Tracks


@dataclass(frozen=True)
class CountErrors:
    """Relative count errors over frames that show at least one counted object; add two to join clips."""

    error: float = 0.0
    """Sum over frames of |predicted - true| / true."""
    frames: int = 0

    def __add__(self, other: "CountErrors") -> "CountErrors":
        return CountErrors(self.error + other.error, self.frames + other.frames)

    @property
    def mae(self) -> float:
        """The mean over frames; nan when no frame shows an object."""
        return ratio(self.error, self.frames)


def count_errors(matches: Sequence[FrameMatch]) -> CountErrors:
    """Of one clip. The report hands in the paper gate's matches: predictions on ignored objects are gone."""
    true = np.array([len(m.pair.true_id) for m in matches], dtype=np.int64)
    pred = np.array([len(m.pair.pred_id) for m in matches], dtype=np.int64)
    shown = true > 0
    return CountErrors(float((np.abs(pred - true)[shown] / true[shown]).sum()), int(shown.sum()))


@dataclass(frozen=True)
class BirthCounts:
    """Discoveries and propagations over all rows of tracks, of any presence; add two to join clips."""

    clips: int = 0
    discovered: int = 0
    """Rows that were found in their own frame, the first frame's included."""
    later: int = 0
    """Rows in any frame but a clip's first."""
    propagated: int = 0
    """Those of `later` that were followed from the frame before."""

    def __add__(self, other: "BirthCounts") -> "BirthCounts":
        return BirthCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def propagation_rate(self) -> float:
        """Share of the objects alive after the first frame that were followed rather than found anew."""
        return ratio(self.propagated, self.later)

    @property
    def discoveries_per_clip(self) -> float:
        return ratio(self.discovered, self.clips)


def birth_counts(tracks: Tracks, clips: int) -> BirthCounts:
    """`clips` is given because a clip in which nothing was found has no row."""
    later = tracks.frame > 0
    return BirthCounts(
        clips=clips,
        discovered=int(tracks.discovered.sum()),
        later=int(later.sum()),
        propagated=int((later & ~tracks.discovered).sum()),
    )
