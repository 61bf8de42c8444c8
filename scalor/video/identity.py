"""Identities over long times: what a model saw frame by frame, tidied up.

A model that follows every object by itself loses who is who when they meet: two of its objects may stay on one for
good, one of them often on a part of it, and one that was hidden for a second gets a new id. Here doubles go, and what
is left is followed by a Kalman filter, which goes on while an object is hidden. The model's own ids only say who is
older: as a reason to link they made things worse. Lengths are in sizes of an object. The numbers were chosen on the
first 477 frames of PETS 2009 S2L1, view 1, after prototypes had been compared on the others too (docs/log.md); those of
`linking` are as good here.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from scalor.evaluation.matching import box_ious
from scalor.linking import Detections, Habits, Linker
from scalor.tracks import Tracks

SAME_PLACE = 0.4
"""Boxes with at least this intersection over union show one object;"""
INSIDE = 0.7
"""and so do those that share at least this much of the smaller one."""
HABITS = Habits(patience=20, reported=4, proof=4, size_rate=0.3, shrink_rate=0.1)
PREDICTED_PRESENCE = 0.3
"""Of an object that was predicted and not seen: less than models ask of one that they follow."""


class Identities:
    """Gives the tracks of one video, frame after frame, lasting ids, in memory that does not grow."""

    def __init__(self, object_size: tuple[float, float], view: tuple[int, int, int, int]) -> None:
        """`object_size`: typical height and width; `view`: x0, y0, x1, y1 of what is seen; pixels of the video."""
        x0, y0, x1, y1 = view
        self.corner = np.array([x0, y0, x0, y0])
        self.linker = Linker(object_size, (y1 - y0, x1 - x0), HABITS)

    def step(self, tracks: Tracks) -> Tracks:
        """The next frame, in pixels of the video, without doubles."""
        self.linker.step(Detections(tracks.box - self.corner, np.zeros((len(tracks), 3))))
        told = self.linker.reported()
        row = told.detection  # -1 for what is predicted
        return Tracks(
            clip=np.zeros(len(row), int),
            frame=np.full(len(row), self.linker.frames - 1),
            id=told.id,
            box=told.box + self.corner,
            presence=np.append(tracks.presence, PREDICTED_PRESENCE)[row],
            discovered=told.new,
            size=tracks.size,
            masks=None if tracks.masks is None else chosen(tracks.masks, row),
        )


def without_doubles(tracks: Tracks, usual: Float[np.ndarray, "N 2"]) -> Tracks:
    """The tracks of a frame, the older first: of those that show one object the oldest, with the box that is closest to
    the `usual` width and height at its place, and with the pixels of all."""
    shown = shown_objects(tracks.box)
    first = np.flatnonzero(shown == np.arange(len(tracks)))
    unusual = np.abs(np.log((tracks.box[:, 2:] - tracks.box[:, :2]).clip(min=1) / usual)).sum(1)
    best = [np.where(shown == row, unusual, np.inf).argmin() for row in first]
    kept = replace(tracks.select(first), box=tracks.box[np.array(best, int)])
    if tracks.masks is None or len(first) == 0:
        return kept
    return replace(kept, masks=np.stack([tracks.masks[shown == row].any(0) for row in first]))


def shown_objects(box: Float[np.ndarray, "N 4"]) -> Int[np.ndarray, " N"]:
    """For each box, the oldest first, the row of the object that it shows: its own, or an older one at its place."""
    overlap = box_ious(box, box)
    area = (box[:, 2:] - box[:, :2]).prod(1)
    shared = overlap * (area[:, None] + area) / (1 + overlap)
    together = (overlap >= SAME_PLACE) | (shared > INSIDE * np.minimum(area[:, None], area))
    shown = np.arange(len(box))
    for row in range(len(box)):
        older = np.flatnonzero(together[row, :row] & (shown[:row] == np.arange(row)))
        if len(older):
            shown[row] = older[overlap[row, older].argmax()]
    return shown


def chosen(masks: Bool[np.ndarray, "N H W"], row: Int[np.ndarray, " K"]) -> Bool[np.ndarray, "K H W"]:
    """The masks of these rows, an empty one for a row of -1."""
    nothing = np.zeros((1, *masks.shape[1:]), bool)
    masks_of_rows: np.ndarray = np.concatenate([masks, nothing])[row]
    return masks_of_rows
