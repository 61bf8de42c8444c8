"""Tracking metrics. The main function is `evaluate_tracks(tracks, truth, size)`.

For a test set in several batches, add the `count_tracks` of all batches and call `.report()` on the sum: counts are
summed over clips before any ratio is taken. `matching` and `mota` describe the rules: which objects count, and which
gates there are. The paper reports MOTA, precision, recall and CountMAE (section 5.1, appendix B).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from scalor.data.clip import Truth
from scalor.evaluation.hota import HotaCounts, hota_counts
from scalor.evaluation.matching import FramePair, Gate, iou_gate, pair_up, paper_gate, strict_gate
from scalor.evaluation.mota import (
    BirthCounts,
    ClearCounts,
    CountErrors,
    IdentityCounts,
    birth_counts,
    clear_counts,
    count_errors,
    identity_counts,
    match_sequence,
)
from scalor.tracks import Tracks

__all__ = [
    "FramePair",
    "Gate",
    "GateCounts",
    "GateScores",
    "TrackingCounts",
    "TrackingReport",
    "count_clip",
    "count_tracks",
    "evaluate_tracks",
    "iou_gate",
    "pair_up",
    "paper_gate",
    "strict_gate",
]


@dataclass(frozen=True)
class GateScores:
    """Scores under one gate."""

    mota: float
    motp: float
    """Mean distance of the matches in pixels; for the IoU gate, their mean IoU."""
    precision: float
    recall: float
    idf1: float
    switches: int
    fragmentations: int
    misses: int
    false_positives: int
    objects: int
    """Number of true objects, one per object and frame."""
    mostly_tracked: float
    """Share of true identities found in at least 80 % of their frames."""
    mostly_lost: float
    """Share of true identities found in less than 20 % of their frames."""
    plain_mota: float
    """MOTA in which every object in view counts, occluded objects included."""


@dataclass(frozen=True)
class TrackingReport:
    """Tracking metrics of one model on one test set. A metric with nothing to measure is nan."""

    paper: GateScores
    strict: GateScores
    iou: GateScores
    hota: float
    """HOTA from box IoU. Objects that the IoU gate ignores are left out; the same holds for its three parts below."""
    deta: float
    """Detection accuracy, a part of HOTA."""
    assa: float
    """Association accuracy, a part of HOTA."""
    loca: float
    """Localisation accuracy, a part of HOTA."""
    count_mae: float
    """Mean relative error of the object count. Predictions on ignored objects (paper gate) do not count."""
    plain_count_mae: float
    """Mean relative error of the object count, in which every object in view counts."""
    propagation_rate: float
    """Share of the objects after the first frame that were propagated, not discovered."""
    discoveries_per_clip: float
    """Mean number of discoveries in a clip."""
    clips: int
    """Number of clips."""

    def to_dict(self) -> dict[str, float]:
        """Return a flat dictionary for JSON.

        Keys are `paper_mota`, `strict_idf1`, ..., `hota`, `count_mae`, ...; nan stays nan.
        """
        flat: dict[str, float] = {}
        for name, value in asdict(self).items():
            if isinstance(value, dict):
                flat.update({f"{name}_{inner}": float(v) for inner, v in value.items()})
            else:
                flat[name] = float(value)
        return flat


@dataclass(frozen=True)
class GateCounts:
    """All counts under one gate. The sum of two covers the clips of both."""

    clear: ClearCounts = field(default_factory=ClearCounts)
    plain: ClearCounts = field(default_factory=ClearCounts)
    """The same as `clear` with no object ignored."""
    identity: IdentityCounts = field(default_factory=IdentityCounts)

    def __add__(self, other: "GateCounts") -> "GateCounts":
        return GateCounts(self.clear + other.clear, self.plain + other.plain, self.identity + other.identity)

    def scores(self) -> GateScores:
        """Return the scores that follow from the counts."""
        clear = self.clear
        identities = clear.identities or float("nan")
        return GateScores(
            mota=clear.mota,
            motp=clear.motp,
            precision=clear.precision,
            recall=clear.recall,
            idf1=self.identity.idf1,
            switches=clear.switches,
            fragmentations=clear.fragmentations,
            misses=clear.misses,
            false_positives=clear.false_positives,
            objects=clear.objects,
            mostly_tracked=clear.mostly_tracked / identities,
            mostly_lost=clear.mostly_lost / identities,
            plain_mota=self.plain.mota,
        )


@dataclass(frozen=True)
class TrackingCounts:
    """All counts on some clips. The sum of two covers the clips of both."""

    paper: GateCounts = field(default_factory=GateCounts)
    strict: GateCounts = field(default_factory=GateCounts)
    iou: GateCounts = field(default_factory=GateCounts)
    hota: HotaCounts = field(default_factory=HotaCounts)
    count: CountErrors = field(default_factory=CountErrors)
    plain_count: CountErrors = field(default_factory=CountErrors)
    births: BirthCounts = field(default_factory=BirthCounts)

    def __add__(self, other: "TrackingCounts") -> "TrackingCounts":
        return TrackingCounts(
            self.paper + other.paper,
            self.strict + other.strict,
            self.iou + other.iou,
            self.hota + other.hota,
            self.count + other.count,
            self.plain_count + other.plain_count,
            self.births + other.births,
        )

    def report(self) -> TrackingReport:
        """Return the metrics that follow from the counts."""
        return TrackingReport(
            paper=self.paper.scores(),
            strict=self.strict.scores(),
            iou=self.iou.scores(),
            hota=self.hota.hota,
            deta=self.hota.deta,
            assa=self.hota.assa,
            loca=self.hota.loca,
            count_mae=self.count.mae,
            plain_count_mae=self.plain_count.mae,
            propagation_rate=self.births.propagation_rate,
            discoveries_per_clip=self.births.discoveries_per_clip,
            clips=self.births.clips,
        )


def count_tracks(tracks: Tracks, truth: Truth, size: float) -> TrackingCounts:
    """Count everything on these clips, under the three gates. See `evaluate_tracks` for the parameters."""
    total = TrackingCounts(births=birth_counts(tracks, clips=truth.id.shape[0]))
    counted = pair_up(tracks, truth, size)
    plain = pair_up(tracks, truth, size, minimum_visible=0.0)
    for clip, plain_clip in zip(counted, plain, strict=True):
        total += count_clip(clip, plain_clip, size)
    return total


def count_clip(clip: Sequence[FramePair], plain_clip: Sequence[FramePair], size: float) -> TrackingCounts:
    """Count everything but births on one clip, under the three gates.

    Parameters
    ----------
    clip : sequence of FramePair
        Ground truth and predictions of each frame, from any source of ground truth.
    plain_clip : sequence of FramePair
        The same with no object ignored.
    size : float
        Size of an object in pixels, which sets the gates.
    """
    gates: Mapping[str, Gate] = {g.name: g for g in (paper_gate(size), strict_gate(size), iou_gate())}
    matches = {name: match_sequence(clip, gate) for name, gate in gates.items()}
    plain = {name: match_sequence(plain_clip, gate) for name, gate in gates.items()}
    by_gate = {
        name: GateCounts(
            clear_counts(matches[name], gate), clear_counts(plain[name], gate), identity_counts(matches[name])
        )
        for name, gate in gates.items()
    }
    return TrackingCounts(
        paper=by_gate["paper"],
        strict=by_gate["strict"],
        iou=by_gate["iou"],
        hota=hota_counts([m.pair for m in matches["iou"]], gates["iou"]),
        count=count_errors(matches["paper"]),
        plain_count=count_errors(plain["paper"]),
    )


def evaluate_tracks(tracks: Tracks, truth: Truth, size: float) -> TrackingReport:
    """Compute all tracking metrics of some clips.

    Parameters
    ----------
    tracks : Tracks
        Predictions for exactly these clips, numbered from 0.
    truth : Truth
        Ground truth of the clips.
    size : float
        Size of an object in pixels, which sets the gates.

    Returns
    -------
    TrackingReport
        The metrics over all clips.
    """
    return count_tracks(tracks, truth, size).report()
