"""Score the tracks of a real video against a ground-truth file, as `scalor score` does.

Boxes are read from MOTChallenge text or from CSV tables with named columns. A line of MOTChallenge text is frame, id,
left, top, width, height, confidence and any further columns; frames count from 1. Tables are the `tracks.csv` of
`scalor track` and the output of `Tracks.to_csv`; their frames count from 0.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Shaped

from scalor.errors import InputError
from scalor.evaluation.hota import HotaCounts, hota_counts
from scalor.evaluation.matching import FramePair, Gate, diagonal_gate
from scalor.evaluation.mota import ClearCounts, IdentityCounts, clear_counts, identity_counts, match_sequence

MOT_COLUMNS = 7
"""Number of columns of MOTChallenge text that are read."""
CSV_COLUMNS = ("frame", "id", "x0", "y0", "x1", "y1")
"""Columns that every table must have."""
SURE = {"frame": "confidence", "clip": "presence"}
"""Name of the confidence column of a table, by the name of its first column."""


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


def read_boxes(path: str | Path) -> BoxRows:
    """Read MOTChallenge text or a table of one clip. The first line tells which of the two it is."""
    lines = _lines(path)
    if lines and lines[0][1][0] in SURE:
        return _checked(path, _from_table(path, lines[0][1], lines[1:]))
    table = _numbers(path, lines, MOT_COLUMNS)
    corners = np.concatenate([table[:, 2:4], table[:, 2:4] + table[:, 4:6]], 1)
    return _checked(path, BoxRows(table[:, 0].astype(int), table[:, 1].astype(int), corners, table[:, 6]))


def _from_table(path: str | Path, header: list[str], lines: list[tuple[int, list[str]]]) -> BoxRows:
    """Convert the lines of a table to rows."""
    wanted = [*CSV_COLUMNS, SURE[header[0]]]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise InputError(f"{path} has no column {missing[0]}: give a tracks.csv as `scalor track` writes it.")
    table = _numbers(path, lines, len(header))
    if header[0] == "clip" and len(np.unique(table[:, 0])) > 1:
        raise InputError(f"{path} holds {len(np.unique(table[:, 0]))} clips: give a file with the tracks of one.")
    frame, id, *corners, sure = (table[:, header.index(name)] for name in wanted)
    return BoxRows(frame.astype(int) + 1, id.astype(int), np.stack(corners, 1), sure)


def _lines(path: str | Path) -> list[tuple[int, list[str]]]:
    """Return the line number and the values of every line that is not empty."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return [(n, [w.strip() for w in words]) for n, words in enumerate(csv.reader(file), 1) if any(words)]
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give a file of boxes.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not text: give a MOTChallenge text or a tracks.csv.") from error


def _numbers(path: str | Path, lines: list[tuple[int, list[str]]], columns: int) -> Float[np.ndarray, "K columns"]:
    """Parse the first columns of each line as finite numbers."""
    table = np.zeros((len(lines), columns))
    for row, (line, words) in zip(table, lines, strict=True):
        try:
            row[:] = [float(word) for word in words[:columns]]
        except ValueError as error:
            raise InputError(
                f"{path}, line {line} is {','.join(words)!r}: it needs {columns} numbers, apart by commas "
                "(MOTChallenge: frame, id, left, top, width, height, confidence)."
            ) from error
        if not np.isfinite(row).all():
            raise InputError(f"{path}, line {line} is {','.join(words)!r}: all numbers must be finite.")
    return table


def _checked(path: str | Path, rows: BoxRows) -> BoxRows:
    """Return the rows sorted by frame and id, or raise an InputError if they are invalid."""
    if len(rows.frame) and rows.frame.min() < 1:
        raise InputError(f"{path} has a frame {rows.frame.min()}: MOTChallenge text counts frames from 1.")
    if (rows.box[:, 2:] < rows.box[:, :2]).any():
        bad = int(rows.frame[(rows.box[:, 2:] < rows.box[:, :2]).any(1)][0])
        raise InputError(f"{path}, frame {bad} has a box of negative width or height: give boxes of 0 px or more.")
    order = np.lexsort((rows.id, rows.frame))
    rows = rows.select(order)
    twice = (rows.frame[1:] == rows.frame[:-1]) & (rows.id[1:] == rows.id[:-1])
    if twice.any():
        at = int(np.flatnonzero(twice)[0])
        raise InputError(f"{path}, frame {rows.frame[at]} has id {rows.id[at]} twice: an object has one row per frame.")
    return rows


GATES = (Gate("iou .5", "iou", 0.5), Gate("iou .3", "iou", 0.3), diagonal_gate())
"""The gates under which tracks are scored."""


@dataclass(frozen=True)
class GateScore:
    """Scores under one gate. HOTA is computed from box IoU; under the centre gate, it is computed from distances."""

    clear: ClearCounts
    identity: IdentityCounts
    hota: HotaCounts

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
    gates: dict[str, GateScore]
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
    tracks: str | Path,
    truth: str | Path,
    frames: tuple[int, int] | None = None,
    minimum_presence: float | None = None,
) -> Scores:
    """Score a file of tracks against a file of ground truth.

    Parameters
    ----------
    tracks : str or Path
        MOTChallenge text, or a `tracks.csv` of `scalor track`.
    truth : str or Path
        Ground truth in the same formats.
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
    >>> print(score("tracked/tracks.csv", "gt.txt", frames=(478, 795)).table())
    """
    true, found = read_boxes(truth), read_boxes(tracks)
    if not len(true.frame):
        raise InputError(f"{truth} is empty: give a truth file with at least one box.")
    first, last = (int(true.frame.min()), int(true.frame.max())) if frames is None else frames
    if not 1 <= first <= last:
        raise InputError(f"frames is {first}-{last}: give the first, from 1 on, and the last, for example 1-100.")
    true, found = true.within(first, last), found.within(first, last)
    if not len(true.frame):
        raise InputError(f"frames is {first}-{last}: {truth} has no box in them; choose frames that it covers.")
    if minimum_presence is not None:
        found = found.select(found.confidence > minimum_presence)
    pairs = pair_rows(true, found, first, last)
    counted = true.select(true.confidence != 0)
    gates = {gate.name: _one_gate(pairs, gate) for gate in GATES}
    return Scores((first, last), len(counted.id), len(np.unique(counted.id)), gates)


def pair_rows(true: BoxRows, found: BoxRows, first: int, last: int) -> list[FramePair]:
    """Pair ground truth with predictions, one entry per frame. Frames that neither file mentions are empty."""
    pairs = []
    for frame in range(first, last + 1):
        here, there = true.within(frame, frame), found.within(frame, frame)
        centres = ((rows.box[:, :2] + rows.box[:, 2:]) / 2 for rows in (here, there))
        true_centre, pred_centre = centres
        ignored = here.confidence == 0
        pairs.append(FramePair(here.id, here.box, true_centre, ignored, there.id, there.box, pred_centre))
    return pairs


def _one_gate(pairs: list[FramePair], gate: Gate) -> GateScore:
    """Return the scores under one gate."""
    matches = match_sequence(pairs, gate)
    counted = [match.pair for match in matches]
    return GateScore(clear_counts(matches, gate), identity_counts(matches), hota_counts(counted, gate))
