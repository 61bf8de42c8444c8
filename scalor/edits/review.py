"""Places to look at when tracks are corrected: crossings of two tracks, and places where a track is doubtful."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Float

from scalor.errors import InputError
from scalor.tracks import Tracks

REST = 5
"""Frames apart for which two tracks may be away from each other within one crossing."""
JUMP_SIDES, JUMP_STEPS = 1.0, 5.0
"""A step is a jump if it is longer than this many object sizes plus this many median steps of the track, per frame."""
SIZE_RATIO = 1.8
"""Factor by which the area of a box changes from one frame to the next in a jump of size."""
LOW_CONFIDENCE = 0.5
BORDER = 0.5
"""A box is at the border if it is closer to it than this share of its own size."""

Kind = Literal["begins inside", "ends inside", "jump", "size", "gap", "low confidence"]


@dataclass(frozen=True)
class Crossing:
    """A stretch of frames in which two tracks are near each other: a place where their ids may have been swapped."""

    a: int
    b: int
    first: int
    last: int
    frame: int
    """Frame in which they are nearest."""
    distance_px: float
    """Distance of the centres in that frame."""


@dataclass(frozen=True)
class Doubt:
    """A place where a track may be wrong."""

    kind: Kind
    id: int
    first: int
    last: int
    sentence: str


def crossings(tracks: Tracks, near: float = 1.0, after: int = 0) -> list[Crossing]:
    """Return the places where two tracks are near each other, in order of time.

    Parameters
    ----------
    tracks : Tracks
        Tracks of one clip.
    near : float, default 1
        Two tracks are near if the distance of their centres is at most this many object sizes. The size of a pair of
        boxes is the mean of the square roots of their areas.
    after : int, default 0
        Leave out crossings whose nearest frame comes before this one.

    Returns
    -------
    list of Crossing
        The next crossing is the first one: `crossings(tracks, after=frame + 1)[0]`.

    Examples
    --------
    >>> for crossing in crossings(tracks):
    ...     print(crossing.frame, crossing.a, crossing.b)
    20 1 2
    """
    if not near > 0:
        raise InputError(f"near is {near}: give a number of object sizes above 0.")
    if not len(tracks):
        return []
    pairs: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
    order = np.argsort(tracks.frame, kind="stable")
    frames, starts = np.unique(tracks.frame[order], return_index=True)
    centre, side = tracks.centre, sides(tracks)
    for frame, rows in zip(frames.tolist(), np.split(order, starts[1:]), strict=True):
        between = np.linalg.norm(centre[rows, None] - centre[rows], axis=-1)
        close = between <= near * (side[rows, None] + side[rows]) / 2
        for i, j in np.argwhere(np.triu(close, 1)):
            a, b = sorted((int(tracks.id[rows[i]]), int(tracks.id[rows[j]])))
            pairs[a, b].append((frame, float(between[i, j])))
    position = {frame: place for place, frame in enumerate(frames.tolist())}
    found = []
    for (a, b), seen in pairs.items():
        cuts = [i for i, (one, two) in enumerate(pairwise(seen), 1) if position[two[0]] - position[one[0]] > REST + 1]
        for start, stop in pairwise([0, *cuts, len(seen)]):
            frame, distance = min(seen[start:stop], key=lambda place: place[1])
            found.append(Crossing(a, b, seen[start][0], seen[stop - 1][0], frame, distance))
    found.sort(key=lambda one: (one.frame, one.a, one.b))
    return [one for one in found if one.frame >= after]


def doubtful_places(tracks: Tracks, confidence: float = LOW_CONFIDENCE, after: int = 0) -> list[Doubt]:
    """Return the places where a track may be wrong, in order of time.

    A track is doubtful where it begins or ends inside the picture while the video goes on, where its position or its
    size jumps, where frames are missing, and where its confidence is below `confidence`.

    Parameters
    ----------
    tracks : Tracks
        Tracks of one clip. The first and last frame with a box count as the ends of the video.
    confidence : float, default 0.5
        Confidence below which a box is doubtful.
    after : int, default 0
        Leave out places that begin before this frame.

    Returns
    -------
    list of Doubt
        Sorted by first frame and id. The next place is the first one: `doubtful_places(tracks, after=frame + 1)[0]`.

    Examples
    --------
    >>> for doubt in doubtful_places(apply(tracks, [Delete(3, first=30)])):
    ...     print(doubt.first, doubt.sentence)
    29 track 3 ends inside the picture.
    """
    if not len(tracks):
        return []
    frames = np.unique(tracks.frame)
    step = int(np.diff(frames).min()) if len(frames) > 1 else 1
    order = np.lexsort((tracks.frame, tracks.id))
    ids, starts = np.unique(tracks.id[order], return_index=True)
    found: list[Doubt] = []
    for number, rows in zip(ids.tolist(), np.split(order, starts[1:]), strict=True):
        found += _ends(tracks, number, rows, (int(frames[0]), int(frames[-1])))
        found += _jumps(tracks, number, rows, step)
        found += _unsure(tracks, number, rows, confidence)
    found.sort(key=lambda doubt: (doubt.first, doubt.id))
    return [doubt for doubt in found if doubt.first >= after]


def _ends(tracks: Tracks, number: int, rows: np.ndarray, span: tuple[int, int]) -> list[Doubt]:
    """Return the doubts about the first and the last box of a track."""
    first, last = int(tracks.frame[rows[0]]), int(tracks.frame[rows[-1]])
    found = []
    if first > span[0] and not _at_border(tracks, rows[0]):
        found.append(Doubt("begins inside", number, first, first, f"track {number} begins inside the picture."))
    if last < span[1] and not _at_border(tracks, rows[-1]):
        found.append(Doubt("ends inside", number, last, last, f"track {number} ends inside the picture."))
    return found


def _at_border(tracks: Tracks, row: int) -> bool:
    """Return whether a box is at the border of the picture."""
    x0, y0, x1, y1 = tracks.box[row]
    height, width = tracks.size
    across, down = BORDER * (x1 - x0), BORDER * (y1 - y0)
    return bool(x0 <= across or y0 <= down or x1 >= width - across or y1 >= height - down)


def _jumps(tracks: Tracks, number: int, rows: np.ndarray, step: int) -> list[Doubt]:
    """Return the jumps of position and size and the gaps of a track."""
    frame, side = tracks.frame[rows], sides(tracks)[rows]
    gaps = np.diff(frame) / step
    moved = np.linalg.norm(np.diff(tracks.centre[rows], axis=0), axis=1) / gaps
    limit = JUMP_SIDES * (side[1:] + side[:-1]) / 2 + JUMP_STEPS * (np.median(moved) if len(moved) else 0.0)
    ratio = (np.maximum(side[1:], side[:-1]) / np.maximum(np.minimum(side[1:], side[:-1]), 1e-9)) ** 2
    found = []
    for place, (start, end) in enumerate(pairwise(frame.tolist())):
        if moved[place] > limit[place]:
            text = f"track {number} jumps by {moved[place] * gaps[place]:.0f} px."
            found.append(Doubt("jump", number, start, end, text))
        if ratio[place] > SIZE_RATIO and gaps[place] == 1:
            found.append(Doubt("size", number, start, end, f"the box of track {number} changes its size at once."))
        if gaps[place] > 1:
            missing = round(gaps[place]) - 1
            found.append(Doubt("gap", number, start, end, f"track {number} has no box in {missing} frames."))
    return found


def _unsure(tracks: Tracks, number: int, rows: np.ndarray, confidence: float) -> list[Doubt]:
    """Return the runs of low confidence of a track."""
    low = np.concatenate([[False], tracks.confidence[rows] < confidence, [False]])
    starts, stops = np.flatnonzero(low[1:] & ~low[:-1]), np.flatnonzero(low[:-1] & ~low[1:])
    found = []
    for start, stop in zip(starts, stops, strict=True):
        first, last = int(tracks.frame[rows[start]]), int(tracks.frame[rows[stop - 1]])
        lowest = float(tracks.confidence[rows[start:stop]].min())
        text = f"the confidence of track {number} is {lowest:.2f} at its lowest."
        found.append(Doubt("low confidence", number, first, last, text))
    return found


def sides(tracks: Tracks) -> Float[np.ndarray, " N"]:
    """Return the square root of the area of each box, in pixels."""
    extent = np.maximum(tracks.box[:, 2:] - tracks.box[:, :2], 0)
    side: np.ndarray = np.sqrt(extent[:, 0] * extent[:, 1])
    return side
