"""Read boxes from files: MOTChallenge text, as ground truth or as tracks, and CSV tables with named columns.

A line of MOTChallenge text is frame, id, left, top, width, height, confidence and any further columns; frames count
from 1. Tables are the `tracks.csv` of `scalor track` and the output of `Tracks.to_csv`; their frames count from 0.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Shaped

from scalor.errors import InputError

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
