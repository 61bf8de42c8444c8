"""`TrackedFrame`: a frame of the video with its tracks, the input of every writer of results."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int, UInt8

from scalor.tracks import Tracks


@dataclass(frozen=True)
class TrackedFrame:
    """One frame of the video with its tracks. As in result files, ids count from 1 and 0 is the background."""

    picture: UInt8[np.ndarray, "H W 3"]
    seconds: float
    index: int
    """Number of the frame in the original video, from 0."""
    tracks: Tracks

    @cached_property
    def owner(self) -> Int[np.ndarray, "H W"]:
        """For each pixel, the row of `tracks` that is visible there, counted from 1; 0 for the background.

        Where masks overlap, the later row is on top. It belongs to the newer object.
        """
        owner = np.zeros(self.tracks.size, np.int32)
        if self.tracks.masks is not None:
            for row, mask in enumerate(self.tracks.masks, start=1):
                inside = extent(mask)
                owner[inside][mask[inside]] = row
        return owner

    @property
    def labels(self) -> Int[np.ndarray, "H W"]:
        """For each pixel, the id of the object that is visible there; 0 for the background."""
        labels: np.ndarray = np.concatenate([[0], self.tracks.id])[self.owner]
        return labels


def extent(mask: Bool[np.ndarray, "H W"]) -> tuple[slice, slice]:
    """Return the smallest range of rows and of columns that contains all of a mask."""
    rows = np.flatnonzero(mask.any(axis=1))
    if not len(rows):
        return slice(0, 0), slice(0, 0)
    inside = slice(int(rows[0]), int(rows[-1]) + 1)
    columns = np.flatnonzero(mask[inside].any(axis=0))
    return inside, slice(int(columns[0]), int(columns[-1]) + 1)
