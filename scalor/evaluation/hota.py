"""HOTA (Luiten et al. 2020): equal weight for detection and association, at 19 levels of localisation.

The definition is that of TrackEval, the authors' own code. Each clip has one matching per frame, which favours pairs of
identities that agree over the whole clip. Each level alpha then keeps the matched pairs whose similarity is at least
alpha. The similarity is that of the gate: IoU, which we report, or max(0, 1 - distance / (2 threshold)) for a distance
gate. Counts and association sums are added over clips before any ratio is taken, as TrackEval combines sequences.

A levels alpha; N true objects and M predictions in a frame; K matches in a clip.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from scalor.evaluation.matching import FramePair, Gate, dense_ids

ALPHAS = np.arange(0.05, 0.99, 0.05)
"""The levels: smallest similarities of a match."""
EPSILON = float(np.finfo(float).eps)


def _zeros() -> Float[np.ndarray, " A"]:
    return np.zeros(len(ALPHAS))


@dataclass(frozen=True)
class HotaCounts:
    """Counts of HOTA, one entry per alpha. The sum of two covers the clips of both.

    With neither ground truth nor predictions, all scores are nan. At an alpha without a match, the association is 0 and
    the localisation is 1, as in TrackEval.
    """

    true_positives: Float[np.ndarray, " A"] = field(default_factory=_zeros)
    misses: Float[np.ndarray, " A"] = field(default_factory=_zeros)
    false_positives: Float[np.ndarray, " A"] = field(default_factory=_zeros)
    association: Float[np.ndarray, " A"] = field(default_factory=_zeros)
    """Sum over matches of the share of the frames of the two identities in which they are matched to each other."""
    localisation: Float[np.ndarray, " A"] = field(default_factory=_zeros)
    """Sum over matches of their similarity."""

    def __add__(self, other: "HotaCounts") -> "HotaCounts":
        return HotaCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def hota(self) -> float:
        """Mean over alphas of the geometric mean of detection and association accuracy."""
        return float(np.sqrt(self._detection * self._association).mean())

    @property
    def deta(self) -> float:
        """Mean over alphas of the detection accuracy."""
        return float(self._detection.mean())

    @property
    def assa(self) -> float:
        """Mean over alphas of the association accuracy."""
        return float(self._association.mean())

    @property
    def loca(self) -> float:
        """Mean over alphas of the mean similarity of the matches."""
        matched = self.true_positives > 0
        location = np.where(matched, self.localisation / np.maximum(self.true_positives, 1), 1.0)
        return float(location.mean()) if self._all.any() else float("nan")

    @property
    def _all(self) -> Float[np.ndarray, " A"]:
        everything: np.ndarray = self.true_positives + self.misses + self.false_positives
        return everything

    @property
    def _detection(self) -> Float[np.ndarray, " A"]:
        everything = self._all
        return np.where(everything > 0, self.true_positives / np.maximum(everything, 1), np.nan)

    @property
    def _association(self) -> Float[np.ndarray, " A"]:
        return np.where(self._all > 0, self.association / np.maximum(self.true_positives, 1), np.nan)


def hota_counts(sequence: Sequence[FramePair], gate: Gate) -> HotaCounts:
    """Return the counts of one clip. Ignored objects must have been removed, as in `FrameMatch.pair`."""
    true_ids, pred_ids = dense_ids([f.true_id for f in sequence]), dense_ids([f.pred_id for f in sequence])
    similarities = [pair.similarity(gate) for pair in sequence]
    frames = list(zip(similarities, true_ids, pred_ids, strict=True))
    # Identities run from 0, so the counts below have one entry for each of them.
    true_frames = np.bincount(np.concatenate([*true_ids, np.zeros(0, dtype=np.int64)]))
    pred_frames = np.bincount(np.concatenate([*pred_ids, np.zeros(0, dtype=np.int64)]))
    total_true, total_pred = int(true_frames.sum()), int(pred_frames.sum())
    if not total_true or not total_pred:
        return HotaCounts(misses=_zeros() + total_true, false_positives=_zeros() + total_pred)

    # A pair of identities is one number: true * predictions + predicted. Pairs that are never similar are left out.
    near = [np.nonzero(similarity) for similarity in similarities]
    codes, shares = [], []
    for (similarity, true_id, pred_id), (rows, columns) in zip(frames, near, strict=True):
        rivals = similarity.sum(0)[None] + similarity.sum(1)[:, None] - similarity
        share = np.where(rivals > EPSILON, similarity / np.maximum(rivals, EPSILON), 0.0)
        shares.append(share[rows, columns])
        codes.append(true_id[rows] * len(pred_frames) + pred_id[columns])
    code, index = np.unique(np.concatenate(codes), return_inverse=True)
    potential = np.bincount(index, np.concatenate(shares), len(code))
    own = true_frames[code // len(pred_frames)] + pred_frames[code % len(pred_frames)]
    alignment = np.split((potential / (own - potential))[index], np.cumsum([len(rows) for rows, _ in near])[:-1])

    alike, pairs = [], []  # for every match in the clip: the similarity, and the pair of identities
    for (similarity, true_id, pred_id), at, aligned in zip(frames, near, alignment, strict=True):
        worth = np.zeros_like(similarity)
        worth[at] = aligned * similarity[at]
        rows, columns = linear_sum_assignment(worth, maximize=True)
        alike.append(similarity[rows, columns])
        pairs.append(true_id[rows] * len(pred_frames) + pred_id[columns])
    return _at_every_alpha(np.concatenate(alike), np.concatenate(pairs), true_frames, pred_frames)


def _at_every_alpha(
    alike: Float[np.ndarray, " K"], pairs: np.ndarray, true_frames: np.ndarray, pred_frames: np.ndarray
) -> HotaCounts:
    """Return the counts at every alpha.

    `alike` is the similarity of each match, and `pairs` its identities as one number.
    """
    codes, index = np.unique(pairs, return_inverse=True)
    own = true_frames[codes // len(pred_frames)] + pred_frames[codes % len(pred_frames)]
    kept = alike[None] >= ALPHAS[:, None] - EPSILON  # [A, K]
    matched = np.stack([np.bincount(index[k], minlength=len(codes)) for k in kept])  # [A, pairs]
    true_positives = matched.sum(1).astype(float)
    return HotaCounts(
        true_positives=true_positives,
        misses=true_frames.sum() - true_positives,
        false_positives=pred_frames.sum() - true_positives,
        association=(matched * matched / np.maximum(1, own[None] - matched)).sum(1),
        localisation=(kept * alike[None]).sum(1),
    )
