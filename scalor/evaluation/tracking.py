"""CLEAR-MOT (Bernardin and Stiefelhagen 2008) and identity measures (Ristani et al. 2016).

`match_sequence` decides who is whom in every frame of a clip; the rest only counts. Counts add up over clips,
ratios are taken last. A ratio whose denominator is zero is nan: there was nothing to measure.

Ignored objects are handled once, here, for all metrics: in every frame the counted objects are matched
first (earlier correspondences before new ones), then what is left over is matched one to one to the ignored
objects. Ignored objects and the predictions matched to them are then taken out, and CLEAR, identity, HOTA and
counting see only the rest. So a prediction that follows a counted object is never dropped, and two
predictions on one ignored object leave one false positive.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment

from scalor.boxes import assign
from scalor.evaluation.matching import FramePair, Gate, dense_ids

MOSTLY_TRACKED = 0.8
MOSTLY_LOST = 0.2


@dataclass(frozen=True)
class FrameMatch:
    """One frame after matching. Ignored objects, and predictions matched to them, are gone."""

    pair: FramePair
    cost: Float[np.ndarray, "N M"]
    """As the gate gives it: infinite outside."""
    partner: Int[np.ndarray, " N"]
    """The prediction (column) of each true object, -1 where it is missed."""


def match_sequence(sequence: Sequence[FramePair], gate: Gate) -> list[FrameMatch]:
    """Correspondences through one clip: an object keeps the prediction it last had while that stays inside
    the gate, however long ago that was (as in py-motmetrics); the others are assigned at least total cost.

    Where two objects last had the same prediction, the more recent one keeps it (py-motmetrics takes the
    first in the list), so that the order of objects does not matter.
    """
    true_ids, pred_ids = dense_ids([f.true_id for f in sequence]), dense_ids([f.pred_id for f in sequence])
    had = np.full(_count(true_ids), -1, dtype=np.int64)  # the prediction an object last had
    when = np.full(_count(true_ids), -1, dtype=np.int64)  # and the frame in which it had it
    column = np.full(_count(pred_ids) + 1, -1, dtype=np.int64)  # the last entry answers for "had none"
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
    return max((int(ids.max()) + 1 for ids in dense if len(ids)), default=0)


def _correspond(
    cost: Float[np.ndarray, "N M"], previous: Int[np.ndarray, " N"], when: Int[np.ndarray, " N"]
) -> Int[np.ndarray, " N"]:
    """`previous` is the column of the prediction that an object last had, -1 where it is not here."""
    partner = np.full(len(cost), -1, dtype=np.int64)
    if not cost.size:
        return partner
    kept = ((previous >= 0) & np.isfinite(cost[np.arange(len(cost)), previous])).nonzero()[0]
    kept = kept[np.argsort(when[kept])]
    holder = np.full(cost.shape[1], -1, dtype=np.int64)
    holder[previous[kept]] = kept  # of several claims to one column the last written stays: the most recent
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
    """CLEAR-MOT as counts over any number of clips; add two to join their clips."""

    objects: int = 0
    """True objects, one per object and frame."""
    predictions: int = 0
    matches: int = 0
    """Objects that have a prediction, those that switched included."""
    switches: int = 0
    """Matches with another prediction than the object last had."""
    fragmentations: int = 0
    """Times an object was found again after having been missed."""
    misses: int = 0
    false_positives: int = 0
    identities: int = 0
    """True identities, each counted once for all its frames."""
    mostly_tracked: int = 0
    """Identities found in at least 80 % of their frames."""
    mostly_lost: int = 0
    """Identities found in less than 20 % of their frames."""
    closeness: float = 0.0
    """Sum over matches of the distance in pixels or, for an IoU gate, of the IoU."""

    def __add__(self, other: "ClearCounts") -> "ClearCounts":
        return ClearCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def mota(self) -> float:
        """1 - (misses + false positives + switches) / objects; it can be negative."""
        return 1 - ratio(self.misses + self.false_positives + self.switches, self.objects)

    @property
    def motp(self) -> float:
        """Mean distance of the matches in pixels (less is better) or mean IoU (more is better)."""
        return ratio(self.closeness, self.matches)

    @property
    def precision(self) -> float:
        return ratio(self.matches, self.predictions)

    @property
    def recall(self) -> float:
        return ratio(self.matches, self.objects)


def ratio(part: float | int, whole: int) -> float:
    """`part / whole`, nan when there is no whole."""
    return part / whole if whole else float("nan")


def clear_counts(matches: Sequence[FrameMatch], gate: Gate) -> ClearCounts:
    """CLEAR-MOT of one clip, its first frame included."""
    if not matches:
        return ClearCounts()
    # One row per object and frame: who it is and the prediction it has (-1: none); by object, then frame.
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
    """Frames explained when every true identity is given at most one predicted one; add two to join clips."""

    true_positives: int = 0
    false_positives: int = 0
    misses: int = 0

    def __add__(self, other: "IdentityCounts") -> "IdentityCounts":
        return IdentityCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def idf1(self) -> float:
        return ratio(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.misses)


def identity_counts(matches: Sequence[FrameMatch]) -> IdentityCounts:
    """The best one-to-one assignment of identities over a whole clip, by frames spent inside the gate."""
    true_ids = dense_ids([m.pair.true_id for m in matches])
    pred_ids = dense_ids([m.pair.pred_id for m in matches])
    together = np.zeros((_count(true_ids), _count(pred_ids)))
    for match, true_id, pred_id in zip(matches, true_ids, pred_ids, strict=True):
        together[true_id[:, None], pred_id[None]] += np.isfinite(match.cost)
    rows, columns = linear_sum_assignment(together, maximize=True)
    explained = int(together[rows, columns].sum())
    return IdentityCounts(
        true_positives=explained,
        false_positives=sum(map(len, pred_ids)) - explained,
        misses=sum(map(len, true_ids)) - explained,
    )
