"""Score the tracks of a real video against a ground-truth file, as `scalor score` does.

Boxes are read from MOTChallenge text or from CSV tables with named columns. A line of MOTChallenge text is frame, id,
left, top, width, height, confidence and any further columns; frames count from 1. Tables are the `tracks.csv` of
`scalor track` and the output of `Tracks.to_csv`; their frames count from 0.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from scalor.errors import InputError
from scalor.evaluation.hota import HotaCounts, hota_counts
from scalor.evaluation.matching import FramePair, Gate, diagonal_gate
from scalor.evaluation.mota import ClearCounts, IdentityCounts, clear_counts, identity_counts, match_sequence
from scalor.tracks import Tracks, read_tracks


@dataclass(frozen=True)
class BoxRows:
    """One row per object and frame of one video."""

    frame: Int[np.ndarray, " K"]
    """Index of the frame from 1 on, also for files that count from 0."""
    id: Int[np.ndarray, " K"]
    box: Float[np.ndarray, "K 4"]
    """x0, y0, x1, y1 in pixels."""
    confidence: Float[np.ndarray, " K"]
    """For ground truth, 0 where the object is to be ignored. For tracks, the confidence or presence in the file."""

    def select(self, rows: Shaped[np.ndarray, "..."]) -> "BoxRows":
        """Return some of the rows, by mask or by row indices."""
        return BoxRows(self.frame[rows], self.id[rows], self.box[rows], self.confidence[rows])

    def within(self, first: int, last: int) -> "BoxRows":
        """Return the rows of the frames from `first` to `last`, both included."""
        return self.select((self.frame >= first) & (self.frame <= last))

    def in_frames(self, frames: Int[np.ndarray, " F"]) -> list["BoxRows"]:
        """Return the rows of each of these frames."""
        order = np.argsort(self.frame, kind="stable")
        first, last = (np.searchsorted(self.frame[order], frames, side) for side in ("left", "right"))
        return [self.select(order[a:b]) for a, b in zip(first, last, strict=True)]


def read_boxes(path: str | Path) -> BoxRows:
    """Read the tracks of one video from a file; see `scalor.read_tracks`."""
    return boxes_of(read_tracks(path), path)


def boxes_of(tracks: str | Path | Tracks, name: str | Path = "Tracks") -> BoxRows:
    """Return the boxes of tracks, or of a file of tracks, of one video. `name` is that of the tracks, for the error."""
    if not isinstance(tracks, Tracks):
        return read_boxes(tracks)
    if len(np.unique(tracks.clip)) > 1:
        raise InputError(f"{name} holds {len(np.unique(tracks.clip))} clips: give a file with the tracks of one.")
    return BoxRows(tracks.frame + 1, tracks.id, tracks.box, tracks.confidence)


MOST_PAIRS = 25_000_000
"""Largest number of pairs of boxes in a frame. All are compared, and more would need gigabytes."""
GATES = (Gate("iou .5", "iou", 0.5), Gate("iou .3", "iou", 0.3), diagonal_gate())
"""The gates under which tracks are scored."""


@dataclass(frozen=True)
class GateResult:
    """Scores under one gate. HOTA is computed from box IoU; under the centre gate, it is computed from distances."""

    clear: ClearCounts
    identity: IdentityCounts
    hota: HotaCounts

    def __add__(self, other: "GateResult") -> "GateResult":
        return GateResult(self.clear + other.clear, self.identity + other.identity, self.hota + other.hota)

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return the counts for JSON, from which scores of several videos together follow."""
        hota = {name: value.tolist() for name, value in vars(self.hota).items()}
        return {"clear": asdict(self.clear), "identity": asdict(self.identity), "hota": hota}

    @staticmethod
    def of_counts(counts: Mapping[str, Mapping[str, Any]]) -> "GateResult":
        """Return the scores of counts as `counts` returns them."""
        hota = HotaCounts(**{name: np.array(value) for name, value in counts["hota"].items()})
        return GateResult(ClearCounts(**counts["clear"]), IdentityCounts(**counts["identity"]), hota)

    def to_dict(self) -> dict[str, float]:
        """Return the scores as a dictionary for JSON."""
        clear = self.clear
        return {
            "mota": clear.mota,
            "idf1": self.identity.idf1,
            "hota": self.hota.hota,
            "precision": clear.precision,
            "recall": clear.recall,
            "switches": clear.switches,
            "misses": clear.misses,
            "false_positives": clear.false_positives,
        }


@dataclass(frozen=True)
class Scores:
    """Scores of a file of tracks against a file of ground truth."""

    frames: tuple[int, int]
    """First and last scored frame, numbered from 1 on, both included."""
    objects: int
    """Number of rows of the ground truth that count."""
    identities: int
    """Number of different ids in these rows."""
    gates: dict[str, GateResult]
    """Scores by the name of the gate."""

    def to_dict(self) -> dict[str, object]:
        """Return the scores as a dictionary for JSON."""
        return {
            "frames": list(self.frames),
            "objects": self.objects,
            "identities": self.identities,
            "gates": {name: score.to_dict() for name, score in self.gates.items()},
        }

    def table(self) -> str:
        """Return the scores as a table for the terminal."""
        lines = [f"{'gate':<8}{'MOTA':>8}{'IDF1':>8}{'HOTA':>8}{'prec.':>8}{'recall':>8}{'switches':>10}"]
        for name, score in self.gates.items():
            one = score.to_dict()
            ratios = "".join(f"{one[key]:>8.3f}" for key in ("mota", "idf1", "hota", "precision", "recall"))
            lines.append(f"{name:<8}{ratios}{one['switches']:>10.0f}")
        first, last = self.frames
        lines.append(f"frames {first}-{last}, {self.identities} objects in {self.objects} rows of truth")
        return "\n".join(lines)


def score(
    tracks: str | Path | Tracks,
    truth: str | Path | Tracks,
    frames: tuple[int, int] | None = None,
    minimum_presence: float | None = None,
) -> Scores:
    """Score tracks against ground truth, as the command `scalor score` does.

    Parameters
    ----------
    tracks : Tracks, str or Path
        Tracks in memory, or a file: MOTChallenge text, a `tracks.csv` of `scalor track`, or a parquet table.
    truth : Tracks, str or Path
        Ground truth in the same formats. Rows of confidence 0 are objects to ignore.
    frames : tuple of int, optional
        First and last frame to score, numbered from 1, both included. By default, from the first to the last frame of
        the ground truth.
    minimum_presence : float, optional
        Presence above which a row of the tracks counts. By default, every row counts.

    Returns
    -------
    Scores
        The scores under all gates.

    Examples
    --------
    >>> print(scalor.score("tracked/tracks.csv", "gt.txt", frames=(478, 795)).table())
    >>> scores = scalor.score(scalor.track("ants.mp4"), "gt.txt")
    >>> scores.gates["iou .5"].clear.mota
    """
    true, found = boxes_of(truth), boxes_of(tracks)
    name = "truth" if isinstance(truth, Tracks) else str(truth)
    if not len(true.frame):
        raise InputError(f"{name} is empty: give a truth file with at least one box.")
    first, last = (int(true.frame.min()), int(true.frame.max())) if frames is None else frames
    if not 1 <= first <= last:
        raise InputError(f"frames is {first}-{last}: give the first, from 1 on, and the last, for example 1-100.")
    true, found = true.within(first, last), found.within(first, last)
    if not len(true.frame):
        raise InputError(f"frames is {first}-{last}: {name} has no box in them; choose frames that it covers.")
    if minimum_presence is not None:
        found = found.select(found.confidence > minimum_presence)
    pairs = pair_rows(true, found, first, last)
    counted = true.select(true.confidence != 0)
    gates = {gate.name: _one_gate(pairs, gate) for gate in GATES}
    return Scores((first, last), len(counted.id), len(np.unique(counted.id)), gates)


def pair_rows(true: BoxRows, found: BoxRows, first: int, last: int) -> list[FramePair]:
    """Pair ground truth with predictions, one entry for each frame from `first` to `last` that either mentions."""
    pairs = []
    mentioned = np.union1d(true.within(first, last).frame, found.within(first, last).frame)
    for frame, here, there in zip(mentioned, true.in_frames(mentioned), found.in_frames(mentioned), strict=True):
        if len(here.id) * len(there.id) > MOST_PAIRS:
            raise InputError(
                f"frame {frame} has {len(here.id)} boxes in the truth and {len(there.id)} in the tracks: their product "
                f"may be {MOST_PAIRS:,} at most; leave some out."
            )
        centres = ((rows.box[:, :2] + rows.box[:, 2:]) / 2 for rows in (here, there))
        true_centre, pred_centre = centres
        ignored = here.confidence == 0
        pairs.append(FramePair(here.id, here.box, true_centre, ignored, there.id, there.box, pred_centre))
    return pairs


def _one_gate(pairs: list[FramePair], gate: Gate) -> GateResult:
    """Return the scores under one gate."""
    matches = match_sequence(pairs, gate)
    counted = [match.pair for match in matches]
    return GateResult(clear_counts(matches, gate), identity_counts(matches), hota_counts(counted, gate))
