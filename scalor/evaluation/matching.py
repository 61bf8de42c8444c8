"""Matching in one frame: pairs of ground truth and predictions, and the gates that a match must pass.

N true objects, M predictions. Boxes are x0, y0, x1, y1 in pixels and are clipped to the view before any IoU. Centres
are those of the whole, unclipped objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from scalor.boxes import box_ious, centre_distances, clip_boxes
from scalor.data.clip import Truth
from scalor.errors import InputError
from scalor.tracks import Tracks

NEAR_VIEW = 0.3
"""Largest distance outside the view, in object sizes, at which the centre of a prediction may lie for it to count."""


@dataclass(frozen=True)
class Gate:
    """Condition for matching a prediction to a true object: largest centre distance or smallest box IoU."""

    name: str
    kind: Literal["distance", "diagonal", "iou"]
    threshold: float
    """A distance in pixels, a distance in diagonals of the true box, or an IoU, depending on `kind`."""

    def cost(
        self,
        true_box: Float[np.ndarray, "N 4"],
        pred_box: Float[np.ndarray, "M 4"],
        true_centre: Float[np.ndarray, "N 2"],
        pred_centre: Float[np.ndarray, "M 2"],
    ) -> Float[np.ndarray, "N M"]:
        """Return the distances in pixels, or 1 - IoU; infinite where a pair does not pass the gate."""
        if self.kind == "iou":
            overlap = box_ious(true_box, pred_box)
            return np.where(overlap >= self.threshold, 1 - overlap, np.inf)
        away = centre_distances(true_centre, pred_centre)
        return np.where(away <= self.reach(true_box), away, np.inf)

    def similarity(
        self,
        true_box: Float[np.ndarray, "N 4"],
        pred_box: Float[np.ndarray, "M 4"],
        true_centre: Float[np.ndarray, "N 2"],
        pred_centre: Float[np.ndarray, "M 2"],
    ) -> Float[np.ndarray, "N M"]:
        """Return similarities in [0, 1], whether or not a pair passes the gate.

        The similarity is IoU, or max(0, 1 - distance / (2 reach)) for a distance gate. The latter is 0.5 at the gate,
        as IoU is at the usual gate of 0.5, and 0 at twice the gate.
        """
        if self.kind == "iou":
            return box_ious(true_box, pred_box)
        alike: np.ndarray = 1 - centre_distances(true_centre, pred_centre) / (2 * self.reach(true_box))
        return np.where(alike > 0, alike, 0.0)

    def reach(self, true_box: Float[np.ndarray, "N 4"]) -> Float[np.ndarray, "N 1"]:
        """Return the largest distance of a prediction from each true object under a distance gate, in pixels."""
        if self.kind == "distance":
            return np.full((len(true_box), 1), self.threshold)
        width, height = true_box[:, 2] - true_box[:, 0], true_box[:, 3] - true_box[:, 1]
        reach: np.ndarray = self.threshold * np.hypot(width, height)[:, None]
        return reach


def paper_gate(size: float) -> Gate:
    """Return the gate of the SCALOR paper (section 5.1): centres at most two object sizes apart, which is loose."""
    return Gate("paper", "distance", 2 * size)


def strict_gate(size: float) -> Gate:
    """Return the strict gate: centres at most half an object size apart."""
    return Gate("strict", "distance", 0.5 * size)


def iou_gate() -> Gate:
    """Return the IoU gate: boxes with an IoU of at least 0.5."""
    return Gate("iou", "iou", 0.5)


def diagonal_gate() -> Gate:
    """Return the gate for objects of different sizes: centres at most half the diagonal of the true box apart."""
    return Gate("centre", "diagonal", 0.5)


@dataclass(frozen=True)
class FramePair:
    """Ground truth and predictions of one frame, the input of every metric."""

    true_id: Int[np.ndarray, " N"]
    true_box: Float[np.ndarray, "N 4"]
    """Boxes clipped to the view. `pred_box` is clipped as well."""
    true_centre: Float[np.ndarray, "N 2"]
    ignored: Bool[np.ndarray, " N"]
    """True objects that need not be found. A prediction that matches one, and no other object, is dropped."""
    pred_id: Int[np.ndarray, " M"]
    pred_box: Float[np.ndarray, "M 4"]
    pred_centre: Float[np.ndarray, "M 2"]

    def select(self, true: Shaped[np.ndarray, "..."], pred: Shaped[np.ndarray, "..."]) -> "FramePair":
        """Return some of the true objects and some of the predictions, by mask or by row indices."""
        return FramePair(
            self.true_id[true],
            self.true_box[true],
            self.true_centre[true],
            self.ignored[true],
            self.pred_id[pred],
            self.pred_box[pred],
            self.pred_centre[pred],
        )

    def cost(self, gate: Gate) -> Float[np.ndarray, "N M"]:
        """Return the matching cost under a gate."""
        return gate.cost(self.true_box, self.pred_box, self.true_centre, self.pred_centre)

    def similarity(self, gate: Gate) -> Float[np.ndarray, "N M"]:
        """Return the similarity under a gate."""
        return gate.similarity(self.true_box, self.pred_box, self.true_centre, self.pred_centre)


def predictions(tracks: Tracks, size: float, minimum_presence: float = 0.5) -> Tracks:
    """Return the rows that count as predictions: sufficient presence, and a centre in the view or near it."""
    margin = NEAR_VIEW * size
    height, width = tracks.size
    x, y = tracks.centre[:, 0], tracks.centre[:, 1]
    near = (x >= -margin) & (x <= width + margin) & (y >= -margin) & (y <= height + margin)
    return tracks.select((tracks.confidence > minimum_presence) & near)


def pair_up(
    tracks: Tracks, truth: Truth, size: float, minimum_visible: float = 0.2, minimum_presence: float = 0.5
) -> list[list[FramePair]]:
    """Pair ground truth with predictions.

    Parameters
    ----------
    tracks : Tracks
        Predictions for exactly these clips, numbered from 0.
    truth : Truth
        Ground truth of the clips.
    size : float
        Size of an object in pixels.
    minimum_visible : float
        Visible share from which an object in view counts. Below it, the object is ignored. With 0, every object in view
        counts, even one that is completely occluded (the plain count).
    minimum_presence : float
        Presence above which a row of the tracks counts.

    Returns
    -------
    list of list of FramePair
        One list per clip, with one entry per frame.
    """
    clips, frames, slots = truth.id.shape
    _check(tracks, clips, frames, (int(truth.owner.shape[2]), int(truth.owner.shape[3])))
    found = predictions(tracks, size, minimum_presence)
    order = np.lexsort((found.id, found.frame, found.clip))
    pred_id, pred_box, pred_centre = found.id[order], found.box[order], found.centre[order]
    pred_start = _starts(found.clip[order] * frames + found.frame[order], clips * frames)

    flat_id = _array(truth.id).reshape(-1)
    rows = np.flatnonzero(flat_id >= 0)
    true_id = flat_id[rows]
    true_box = _array(truth.box).reshape(-1, 4)[rows]
    true_centre = _array(truth.centre).reshape(-1, 2)[rows]
    ignored = _array(truth.visible).reshape(-1)[rows] < minimum_visible
    true_start = _starts(rows // slots, clips * frames)

    true_box, pred_box = clip_boxes(true_box, tracks.size), clip_boxes(pred_box, tracks.size)
    pairs = []
    for i in range(clips * frames):
        t, p = slice(true_start[i], true_start[i + 1]), slice(pred_start[i], pred_start[i + 1])
        pairs.append(
            FramePair(true_id[t], true_box[t], true_centre[t], ignored[t], pred_id[p], pred_box[p], pred_centre[p])
        )
    return [pairs[clip * frames : (clip + 1) * frames] for clip in range(clips)]


def dense_ids(ids: Sequence[Int[np.ndarray, " _"]]) -> list[Int[np.ndarray, " _"]]:
    """Renumber the identities of a sequence of frames as 0, 1, 2, ..., so that they can index arrays."""
    together = np.concatenate([*ids, np.zeros(0, dtype=np.int64)])
    dense = np.unique(together, return_inverse=True)[1].reshape(-1)
    ends = np.cumsum([len(i) for i in ids], dtype=np.int64).tolist()
    return [dense[end - len(i) : end] for i, end in zip(ids, ends, strict=True)]


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().cpu().numpy()
    return array


def _starts(group: Int[np.ndarray, " K"], groups: int) -> Int[np.ndarray, " _"]:
    """Return the first row of each group in the sorted array `group`, followed by the end of the last group."""
    return np.searchsorted(group, np.arange(groups + 1))


def _check(tracks: Tracks, clips: int, frames: int, view: tuple[int, int]) -> None:
    """Raise an InputError if the tracks do not fit the ground truth."""
    if tracks.size != view:
        raise InputError(f"tracks.size is {tracks.size} and the truth's frames are {view}: they must agree.")
    for name, rows, bound in (("clip", tracks.clip, clips), ("frame", tracks.frame, frames)):
        if len(rows) and not 0 <= rows.min() <= rows.max() < bound:
            raise InputError(
                f"tracks.{name} runs from {rows.min()} to {rows.max()} and the truth has {bound} of them: "
                "give the tracks of exactly these clips, numbered from 0."
            )
    keys = np.stack([tracks.clip, tracks.frame, tracks.id])
    keys = keys[:, np.lexsort(keys)]
    if (keys[:, 1:] == keys[:, :-1]).all(0).any():
        raise InputError("tracks.id: an id appears twice in one frame; an object has one row per frame.")
