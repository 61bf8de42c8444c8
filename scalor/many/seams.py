"""Seams: join the tracks of overlapping stretches of a video, so that an object keeps its id across them.

Two stretches share some frames. Two tracks are one object if their boxes agree in at least half of the shared frames of
the shorter one. Tracks are assigned so that the number of frames in which they agree is largest (Hungarian algorithm).
Before the seam, in the middle of the shared frames, rows come from the earlier stretch, after it from the later one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from scalor.boxes import box_ious
from scalor.tracks import Tracks, join_tracks

AGREEMENT_IOU = 0.5
"""Smallest intersection over union of two boxes that agree."""
AGREEMENT_SHARE = 0.5
"""Smallest share of the shorter track's shared frames in which the boxes of one object agree."""


@dataclass(frozen=True)
class Joined:
    """The tracks of a whole video, from its stretches."""

    tracks: Tracks
    origin: Int[np.ndarray, "N 2"]
    """The stretch of each row, and its row in it."""
    continued: tuple[int, ...]
    """For each seam, the number of objects that keep their id across it."""


def join_stretches(parts: Sequence[Tracks], seams: Sequence[float]) -> Joined:
    """Join the tracks of overlapping stretches.

    Parameters
    ----------
    parts
        The tracks of each stretch, in the order of the video, with the numbers and times of its frames.
    seams
        The times between them in seconds; rows at such a time or later come from the later stretch.
    """
    assert len(parts) == len(seams) + 1
    borders = [-np.inf, *seams, np.inf]
    whole_ids = [parts[0].id]
    used, continued = int(parts[0].id.max(initial=0)), []
    for before, now in pairwise(parts):
        pairs = same_objects(before, now)
        of_before = dict(zip(before.id.tolist(), whole_ids[-1].tolist(), strict=True))
        known = {there: of_before[here] for here, there in pairs.items()}
        for number in np.unique(now.id).tolist():
            if number not in known:
                used += 1
                known[number] = used
        whole_ids.append(np.array([known[number] for number in now.id.tolist()], int))
        continued.append(len(pairs))
    chosen, origin = [], []
    for place, (part, ids) in enumerate(zip(parts, whole_ids, strict=True)):
        rows = np.flatnonzero((part.seconds >= borders[place]) & (part.seconds < borders[place + 1]))
        chosen.append(replace(part.select(rows), id=ids[rows], masks=None))
        origin.append(np.stack([np.full(len(rows), place), rows], 1))
    kept, source = np.concatenate([one.id for one in chosen]), np.concatenate(origin)
    frames = np.concatenate([one.frame for one in chosen])
    ids = numbered(kept)
    order = np.lexsort((ids, frames))
    tracks = join_tracks([replace(one, id=part) for one, part in zip(chosen, split(ids, chosen), strict=True)])
    _, first = np.unique(tracks.id, return_index=True)
    discovered = np.zeros(len(tracks), bool)
    discovered[first] = True
    return Joined(replace(tracks, discovered=discovered), source[order], tuple(continued))


def numbered(ids: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """Return ids from 1 on, in the order in which they first appear."""
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    numbers: np.ndarray = np.argsort(np.argsort(first))[place] + 1
    return numbers


def split(ids: Int[np.ndarray, " N"], parts: Sequence[Tracks]) -> list[Int[np.ndarray, " K"]]:
    """Return the ids of each part."""
    return np.split(ids, np.cumsum([len(part) for part in parts])[:-1])


def same_objects(before: Tracks, now: Tracks) -> dict[int, int]:
    """Return the ids of objects that two stretches share: those of the later one, by those of the earlier one."""
    shared = np.intersect1d(before.frame, now.frame)
    here, there = (part.select(np.isin(part.frame, shared)) for part in (before, now))
    ids, rows = np.unique(here.id, return_inverse=True)
    other_ids, columns = np.unique(there.id, return_inverse=True)
    agree: Float[np.ndarray, "N M"] = np.zeros((len(ids), len(other_ids)))
    for frame in shared:
        one, other = np.flatnonzero(here.frame == frame), np.flatnonzero(there.frame == frame)
        near = box_ious(here.box[one], there.box[other]) >= AGREEMENT_IOU
        agree[np.ix_(rows[one], columns[other])] += near
    lengths = np.minimum(np.bincount(rows, minlength=len(ids))[:, None], np.bincount(columns, minlength=len(other_ids)))
    agree[agree < AGREEMENT_SHARE * lengths] = 0
    return {
        int(ids[row]): int(other_ids[column])
        for row, column in zip(*linear_sum_assignment(agree, maximize=True), strict=True)
        if agree[row, column] > 0
    }
