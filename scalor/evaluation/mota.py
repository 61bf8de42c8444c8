"""CLEAR-MOT (Bernardin and Stiefelhagen 2008), identity measures (Ristani et al. 2016) and counting metrics.

`match_sequence` matches predictions to true objects in every frame of a clip; all other functions only count. Counts
are added over clips before any ratio is taken. A ratio whose denominator is zero is nan: there was nothing to measure.

Ignored objects are handled here, once for all metrics. In every frame, the counted objects are matched first (earlier
correspondences before new ones). The remaining predictions are then matched one to one to the ignored objects. Ignored
objects and the predictions matched to them are removed, and CLEAR, identity, HOTA and counting use only the rest. So a
prediction that is matched to a counted object is never dropped, and two predictions on one ignored object leave one
false positive.

The counting metrics are the error of the number of objects (the paper's CountMAE, section 5.1) and the numbers of
discoveries and propagations.

N true objects and M predictions in a frame.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from scalor.boxes import assign
from scalor.evaluation.matching import FramePair, Gate, dense_ids
from scalor.tracks import Tracks

MOSTLY_TRACKED = 0.8
"""Share of its frames from which an identity is mostly tracked."""
MOSTLY_LOST = 0.2
"""Share of its frames below which an identity is mostly lost."""


@dataclass(frozen=True)
class FrameMatch:
    """One frame after matching. Ignored objects, and predictions matched to them, have been removed."""

    pair: FramePair
    cost: Float[np.ndarray, "N M"]
    """Matching cost of the gate; infinite where a pair does not pass it."""
    partner: Int[np.ndarray, " N"]
    """Index of the prediction matched to each true object, -1 for a miss."""


def match_sequence(sequence: Sequence[FramePair], gate: Gate) -> list[FrameMatch]:
    """Match predictions to true objects through one clip.

    An object keeps the prediction it last had while that passes the gate, however long ago the match was (as in
    py-motmetrics). The other objects are assigned at the least total cost.

    If two objects last had the same prediction, the object of the more recent match keeps it. py-motmetrics takes the
    first in the list; here, the order of the objects does not matter.
    """
    true_ids, pred_ids = dense_ids([f.true_id for f in sequence]), dense_ids([f.pred_id for f in sequence])
    had = np.full(_count(true_ids), -1, dtype=np.int64)  # the prediction an object last had
    when = np.full(_count(true_ids), -1, dtype=np.int64)  # the frame of that match
    column = np.full(_count(pred_ids) + 1, -1, dtype=np.int64)  # the last entry, index -1, stands for "had none"
    matches = []
    for t, (pair, true_id, pred_id) in enumerate(zip(sequence, true_ids, pred_ids, strict=True)):
        cost = pair.cost(gate)
        counted = np.flatnonzero(~pair.ignored)
        objects = true_id[counted]
        column[pred_id] = np.arange(len(pred_id))
        partner = _correspond(cost[counted], column[had[objects]], when[objects])
        column[pred_id] = -1
        matched = partner >= 0
        had[objects[matched]] = pred_id[partner[matched]]
        when[objects[matched]] = t
        matches.append(_without_ignored(pair, cost, counted, partner))
    return matches


def _count(dense: list[Int[np.ndarray, " _"]]) -> int:
    """Return the number of identities."""
    return max((int(ids.max()) + 1 for ids in dense if len(ids)), default=0)


def _correspond(
    cost: Float[np.ndarray, "N M"], previous: Int[np.ndarray, " N"], when: Int[np.ndarray, " N"]
) -> Int[np.ndarray, " N"]:
    """Match the predictions of one frame to the counted objects.

    `previous` is the column of the prediction that an object last had, -1 if that is not in this frame. `when` is the
    frame of that match.
    """
    partner = np.full(len(cost), -1, dtype=np.int64)
    if not cost.size:
        return partner
    kept = ((previous >= 0) & np.isfinite(cost[np.arange(len(cost)), previous])).nonzero()[0]
    kept = kept[np.argsort(when[kept])]
    holder = np.full(cost.shape[1], -1, dtype=np.int64)
    holder[previous[kept]] = kept  # if several objects claim a column, the last one written stays: the most recent
    held = (holder >= 0).nonzero()[0]
    partner[holder[held]] = held
    free_rows, free_columns = (partner < 0).nonzero()[0], (holder < 0).nonzero()[0]
    if len(free_rows) and len(free_columns):
        new = assign(cost[free_rows[:, None], free_columns])
        partner[free_rows] = np.where(new >= 0, free_columns[new], -1)
    return partner


def _without_ignored(
    pair: FramePair,
    cost: Float[np.ndarray, "N M"],
    counted: Int[np.ndarray, " _"],
    partner: Int[np.ndarray, " _"],
) -> FrameMatch:
    """Remove ignored objects, and the remaining predictions that match them."""
    if len(counted) == len(pair.ignored):
        return FrameMatch(pair, cost, partner)
    left_over: Bool[np.ndarray, " M"] = np.ones(cost.shape[1], dtype=bool)
    left_over[partner[partner >= 0]] = False
    columns = np.flatnonzero(left_over)
    dropped = assign(cost[pair.ignored][:, columns])
    keep = np.ones(cost.shape[1], dtype=bool)
    keep[columns[dropped[dropped >= 0]]] = False
    renumbered = np.where(partner >= 0, (np.cumsum(keep) - 1)[partner], -1) if len(keep) else partner
    return FrameMatch(pair.select(counted, keep), cost[counted][:, keep], renumbered)


@dataclass(frozen=True)
class ClearCounts:
    """Counts of CLEAR-MOT over any number of clips. The sum of two covers the clips of both."""

    objects: int = 0
    """Number of true objects, one per object and frame."""
    predictions: int = 0
    """Number of predictions, one per prediction and frame."""
    matches: int = 0
    """Number of true objects with a prediction, switches included."""
    switches: int = 0
    """Number of matches with another prediction than the object last had."""
    fragmentations: int = 0
    """Number of times that an object was found again after a miss."""
    misses: int = 0
    """Number of true objects without a prediction."""
    false_positives: int = 0
    """Number of predictions without a true object."""
    identities: int = 0
    """Number of true identities."""
    mostly_tracked: int = 0
    """Number of identities found in at least 80 % of their frames."""
    mostly_lost: int = 0
    """Number of identities found in less than 20 % of their frames."""
    closeness: float = 0.0
    """Sum over matches of the distance in pixels or, for an IoU gate, of the IoU."""

    def __add__(self, other: "ClearCounts") -> "ClearCounts":
        return ClearCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def mota(self) -> float:
        """MOTA: 1 - (misses + false positives + switches) / objects. It can be negative."""
        return 1 - ratio(self.misses + self.false_positives + self.switches, self.objects)

    @property
    def motp(self) -> float:
        """MOTP: mean distance of the matches in pixels (less is better) or mean IoU (more is better)."""
        return ratio(self.closeness, self.matches)

    @property
    def precision(self) -> float:
        """Share of the predictions that match an object."""
        return ratio(self.matches, self.predictions)

    @property
    def recall(self) -> float:
        """Share of the objects that have a prediction."""
        return ratio(self.matches, self.objects)


def ratio(part: float | int, whole: int) -> float:
    """Return `part / whole`, or nan if `whole` is zero."""
    return part / whole if whole else float("nan")


def clear_counts(matches: Sequence[FrameMatch], gate: Gate) -> ClearCounts:
    """Return the CLEAR-MOT counts of one clip, the first frame included."""
    if not matches:
        return ClearCounts()
    # One row per object and frame, sorted by object, then frame: its identity and its prediction (-1: none).
    identity = np.concatenate([m.pair.true_id for m in matches])
    order = np.argsort(identity, kind="stable")
    identity = identity[order]
    partner = np.concatenate([m.partner for m in matches])[order]
    prediction = np.concatenate([np.append(m.pair.pred_id, -1)[m.partner] for m in matches])[order]
    cost = sum(float(m.cost[m.partner >= 0, m.partner[m.partner >= 0]].sum()) for m in matches)

    at = np.flatnonzero(partner >= 0)
    same = identity[at[1:]] == identity[at[:-1]]
    first = np.flatnonzero(np.append(True, identity[1:] != identity[:-1])[: len(identity)])
    length = np.diff(np.append(first, len(identity)))
    share = np.diff(np.searchsorted(at, np.append(first, len(identity)))) / length
    predictions = sum(len(m.pair.pred_id) for m in matches)
    return ClearCounts(
        objects=len(identity),
        predictions=predictions,
        matches=len(at),
        switches=int((same & (prediction[at[1:]] != prediction[at[:-1]])).sum()),
        fragmentations=int((same & (np.diff(at) > 1)).sum()),
        misses=len(identity) - len(at),
        false_positives=predictions - len(at),
        identities=len(first),
        mostly_tracked=int((share >= MOSTLY_TRACKED).sum()),
        mostly_lost=int((share < MOSTLY_LOST).sum()),
        closeness=len(at) - cost if gate.kind == "iou" else cost,
    )


@dataclass(frozen=True)
class IdentityCounts:
    """Counts of the identity measures over any number of clips. The sum of two covers the clips of both."""

    true_positives: int = 0
    """Number of matches in frames if every true identity is assigned at most one predicted identity."""
    false_positives: int = 0
    """Number of the other predictions."""
    misses: int = 0
    """Number of the other true objects."""

    def __add__(self, other: "IdentityCounts") -> "IdentityCounts":
        return IdentityCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def idf1(self) -> float:
        """IDF1: the F1 score of the identity counts."""
        return ratio(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.misses)


def identity_counts(matches: Sequence[FrameMatch]) -> IdentityCounts:
    """Return the identity counts of one clip.

    Identities are assigned one to one, so that the number of frames in which assigned pairs pass the gate is largest.
    """
    true_ids = dense_ids([m.pair.true_id for m in matches])
    pred_ids = dense_ids([m.pair.pred_id for m in matches])
    near = [np.nonzero(np.isfinite(match.cost)) for match in matches]
    none = np.zeros(0, np.int64)
    true_near = np.concatenate([none, *(ids[rows] for ids, (rows, _) in zip(true_ids, near, strict=True))])
    pred_near = np.concatenate([none, *(ids[columns] for ids, (_, columns) in zip(pred_ids, near, strict=True))])
    explained = most_frames_together(true_near, pred_near)
    return IdentityCounts(
        true_positives=explained,
        false_positives=sum(map(len, pred_ids)) - explained,
        misses=sum(map(len, true_ids)) - explained,
    )


def most_frames_together(true_id: Int[np.ndarray, " K"], pred_id: Int[np.ndarray, " K"]) -> int:
    """Return how many of these pairs, one for each frame, one-to-one assignments of identities can cover.

    Identities that are linked by no pair, directly or through others, are assigned apart from each other, so that
    memory does not grow with the square of their number.
    """
    if not len(true_id):
        return 0
    (trues, preds), frames = np.unique(np.stack([true_id, pred_id]), axis=1, return_counts=True)
    nodes = trues.max() + 1 + preds.max() + 1
    links = coo_array((np.ones(len(trues)), (trues, trues.max() + 1 + preds)), shape=(nodes, nodes))
    group = connected_components(links, directed=False)[1][trues]
    order = np.argsort(group, kind="stable")
    total = 0
    for entries in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        rows, at_row = np.unique(trues[entries], return_inverse=True)
        columns, at_column = np.unique(preds[entries], return_inverse=True)
        together = np.zeros((len(rows), len(columns)), np.int64)
        together[at_row, at_column] = frames[entries]
        total += int(together[linear_sum_assignment(together, maximize=True)].sum())
    return total


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
