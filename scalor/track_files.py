"""Files of tracks: CSV tables, MOTChallenge text, napari's tracks and parquet tables, to write and to read.

Every writer takes columns (`Columns`), so that a whole video and a single frame of a stream are written by the same
code. `COLUMNS` describes the columns. MOTChallenge text counts frames from 1; everything else counts them from 0.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from scalor.errors import InputError
from scalor.files import check_is_file

Columns: TypeAlias = dict[str, np.ndarray]
"""A table of tracks: the columns by name, all of one length."""

COLUMNS = {
    "frame": "number of the frame in the video, from 0",
    "seconds": "time of the frame",
    "id": "number of the object, from 1, the same in all frames of a track",
    "x0": "left edge of the box, pixels",
    "y0": "upper edge of the box, pixels",
    "x1": "right edge of the box, pixels: the first column outside",
    "y1": "lower edge of the box, pixels: the first row outside",
    "x": "centre of the box, pixels",
    "y": "centre of the box, pixels",
    "confidence": "confidence that the object is there, 0 to 1",
    "discovered": "1 in the first frame of a track, otherwise 0",
}
"""The columns of a table of tracks with their meanings, in the order of the files."""
CLIP = "clip"
"""Last column of a table of several clips: the number of the clip in the batch, from 0."""
DIGITS = {"seconds": ".4f", "confidence": ".4f", "frame": "d", "id": "d", "discovered": "d", CLIP: "d"}
"""Number format of each column of a CSV table. All other columns are pixels."""
PIXELS = ".3f"
NAPARI_COLUMNS = ("track_id", "t", "y", "x")
REQUIRED = ("frame", "id", "x0", "y0", "x1", "y1")
"""Columns that a CSV or parquet table must have, besides the confidence."""
OLDER_CONFIDENCE = "presence"
"""Name of the confidence in older tables, which count ids from 0."""
LARGEST = 1e12
"""Largest absolute number in a table of tracks."""
MOT_COLUMNS = 7
"""Number of columns of MOTChallenge text that are read."""


def header(columns: Iterable[str]) -> str:
    """Return the first line of a CSV table."""
    return ",".join(columns) + "\n"


def csv_lines(columns: Columns) -> Iterator[str]:
    """Yield the lines of a CSV table, without the header."""
    line = ",".join(f"{{:{DIGITS.get(name, PIXELS)}}}" for name in columns) + "\n"
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        yield line.format(*row)


def mot_lines(columns: Columns) -> Iterator[str]:
    """Yield lines of MOTChallenge text: frame and id (from 1), left, top, width, height, confidence, -1, -1, -1."""
    x0, y0, x1, y1 = (columns[name] for name in ("x0", "y0", "x1", "y1"))
    values = (columns["frame"] + 1, columns["id"], x0, y0, x1 - x0, y1 - y0, columns["confidence"])
    for frame, number, left, top, width, height, sure in zip(*(v.tolist() for v in values), strict=True):
        yield f"{frame},{number},{left:.3f},{top:.3f},{width:.3f},{height:.3f},{sure:.4f},-1,-1,-1\n"


def napari_rows(
    id: Int[np.ndarray, " N"], frame: Int[np.ndarray, " N"], x: Float[np.ndarray, " N"], y: Float[np.ndarray, " N"]
) -> Float[np.ndarray, "N 4"]:
    """Return track_id, t, y, x for napari's Tracks layer; rows must be sorted by id, then frame.

    In napari, whole numbers are the centres of pixels; here they are the upper left corners.
    """
    rows: np.ndarray = np.stack([id, frame, y - 0.5, x - 0.5], axis=1)
    return rows


def napari_lines(rows: Float[np.ndarray, "N 4"]) -> Iterator[str]:
    """Yield the lines of a CSV table for napari, without the header."""
    for number, t, y, x in rows.tolist():
        yield f"{number:.0f},{t:.0f},{y:.3f},{x:.3f}\n"


def arrow_schema(clips: bool, facts: Mapping[str, object]) -> Any:
    """Return the pyarrow schema of a table of tracks; `facts` go into its metadata."""
    arrow = _pyarrow()
    whole = {"frame": arrow.int64(), "id": arrow.int64(), "discovered": arrow.int8(), CLIP: arrow.int64()}
    names = [*COLUMNS, CLIP] if clips else [*COLUMNS]
    fields = [(name, whole.get(name, arrow.float64())) for name in names]
    return arrow.schema(fields, metadata={"scalor": json.dumps(dict(facts))})


def arrow_table(columns: Columns, schema: Any) -> Any:
    """Return columns as a pyarrow table."""
    arrow = _pyarrow()
    converted = [arrow.array(columns[field.name].astype(field.type.to_pandas_dtype())) for field in schema]
    return arrow.table(converted, schema=schema)


def write_parquet(path: str | Path, columns: Columns, facts: Mapping[str, object]) -> None:
    """Write a parquet table; `facts` go into its metadata."""
    table = arrow_table(columns, arrow_schema(CLIP in columns, facts))
    with open(path, "wb") as file:  # pyarrow takes no name that is not UTF-8
        import_module("pyarrow.parquet").write_table(table, file)


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise InputError("parquet tables need the package pyarrow: run pip install pyarrow.") from error


def read(path: str | Path, fps: float) -> tuple[Columns, dict[str, Any]]:
    """Read a table of tracks: parquet, CSV or MOTChallenge text, whichever the file holds.

    Return its columns with those in `COLUMNS` and `clip`, sorted by clip, frame and id, and the facts in its metadata
    (parquet only). Missing times follow from `fps`. Raise InputError if the file or a row is invalid.
    """
    facts: dict[str, Any] = {}
    check_is_file(path, "a file of tracks")
    if Path(path).suffix == ".parquet":
        columns, facts = _read_parquet(path)
    else:
        lines = _lines(path)
        if not (lines and "frame" in lines[0][1]):
            return _checked(path, _completed(path, _from_mot(path, lines), fps), first=1), facts
        columns = _from_csv(path, lines[0][1], lines[1:])
    return _checked(path, _completed(path, columns, fps)), facts


def _read_parquet(path: str | Path) -> tuple[Columns, dict[str, Any]]:
    arrow = _pyarrow()
    try:
        with open(path, "rb") as file:
            table = import_module("pyarrow.parquet").read_table(file)
    except (OSError, arrow.ArrowException) as error:
        raise InputError(f"{path} cannot be read as a parquet table: give a file of tracks.") from error
    _check_columns(path, table.column_names)
    try:
        columns = {name: table[name].to_numpy() for name in table.column_names}
        facts = dict(json.loads((table.schema.metadata or {}).get(b"scalor", b"{}")))
    except (ValueError, TypeError, RecursionError, arrow.ArrowException) as error:
        raise InputError(f"{path} is damaged: give another copy of the file.") from error
    return columns, facts


def _from_csv(path: str | Path, names: list[str], lines: list[tuple[int, list[str]]]) -> Columns:
    """Return the columns of a CSV table."""
    older = OLDER_CONFIDENCE in names and "confidence" not in names
    names = ["confidence" if name == OLDER_CONFIDENCE and older else name for name in names]
    _check_columns(path, names)
    columns = dict(zip(names, _numbers(path, lines, len(names)).T, strict=True))
    if older:
        columns["id"] = columns["id"] + 1
    return columns


def _check_columns(path: str | Path, names: list[str]) -> None:
    missing = [name for name in (*REQUIRED, "confidence") if name not in names]
    if missing:
        raise InputError(f"{path} has no column {missing[0]}: give a tracks.csv as `scalor track` writes it.")


def _from_mot(path: str | Path, lines: list[tuple[int, list[str]]]) -> Columns:
    """Return the columns of MOTChallenge text."""
    frame, number, left, top, width, height, sure = _numbers(path, lines, MOT_COLUMNS).T
    if len(frame) and frame.min() < 1:
        raise InputError(f"{path} has a frame {frame.min():.0f}: MOTChallenge text counts frames from 1.")
    names = (*REQUIRED, "confidence")
    with np.errstate(over="ignore"):  # sizes are checked afterwards
        right, bottom = left + width, top + height
    return dict(zip(names, (frame - 1, number, left, top, right, bottom, sure), strict=True))


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
    with suppress(ValueError):  # all at once, which is fast; if that fails, one by one to find the line that is wrong
        table = np.array([words[:columns] for _, words in lines], float).reshape(len(lines), columns)
        if np.isfinite(table).all():
            return table
    table = np.zeros((len(lines), columns))
    for row, (line, words) in zip(table, lines, strict=True):
        try:
            row[:] = np.fromiter(map(float, words), float, columns)
        except ValueError as error:
            raise InputError(
                f"{path}, line {line} is {','.join(words)!r}: it needs {columns} numbers, separated by commas "
                "(MOTChallenge: frame, id, left, top, width, height, confidence)."
            ) from error
        if not np.isfinite(row).all():
            raise InputError(f"{path}, line {line} is {','.join(words)!r}: all numbers must be finite.")
    return table


def _check_sizes(path: str | Path, columns: Columns) -> None:
    """Raise InputError for numbers that cannot be pixels, frames or ids: such would overflow later."""
    for name in (*REQUIRED, "confidence", CLIP, "seconds"):
        if name not in columns:
            continue
        values = columns[name]
        if values.dtype.kind not in "fiub":
            raise InputError(f"{path}, column {name} holds {values.dtype}: give numbers.")
        wrong = ~(np.abs(values.astype(float)) <= LARGEST)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(f"{path}, row {row + 1} has {name} {values[row]}: give numbers of at most {LARGEST:g}.")


def _completed(path: str | Path, columns: Columns, fps: float) -> Columns:
    """Return the columns in their types, sorted by clip, frame and id, with those that the file left out."""
    _check_sizes(path, columns)
    clip = columns.get(CLIP, np.zeros(len(columns["id"])))
    order = np.lexsort((columns["id"], columns["frame"], clip))
    columns = {name: values[order] for name, values in (columns | {CLIP: clip}).items()}
    for name in ("frame", "id", CLIP):
        columns[name] = columns[name].astype(int)
    columns.setdefault("seconds", columns["frame"] / fps)
    columns["discovered"] = columns.get("discovered", _first(columns[CLIP], columns["id"])).astype(bool)
    return columns


def _first(clip: Int[np.ndarray, " K"], number: Int[np.ndarray, " K"]) -> Bool[np.ndarray, " K"]:
    """Return which rows are the first of their object, for rows in the order of time."""
    first = np.zeros(len(number), bool)
    first[np.unique(np.stack([clip, number], 1), axis=0, return_index=True)[1]] = True
    return first


def _checked(path: str | Path, columns: Columns, first: int = 0) -> Columns:
    """Return sorted columns, or raise an InputError that names the first invalid row.

    `first` is the number that the file gives to the first frame.
    """
    frame, number, clip = columns["frame"], columns["id"], columns[CLIP]
    if len(frame) and frame.min() < 0:
        raise InputError(f"{path} has a frame {frame.min()}: tables count frames from 0.")
    negative = (columns["x1"] < columns["x0"]) | (columns["y1"] < columns["y0"])
    if negative.any():
        bad = int(frame[negative][0])
        raise InputError(
            f"{path}, frame {bad + first} has a box of negative width or height: give boxes of 0 px or more."
        )
    twice = (frame[1:] == frame[:-1]) & (number[1:] == number[:-1]) & (clip[1:] == clip[:-1])
    if twice.any():
        at = int(np.flatnonzero(twice)[0])
        raise InputError(
            f"{path}, frame {frame[at] + first} has id {number[at]} twice: an object has one row per frame."
        )
    return columns
