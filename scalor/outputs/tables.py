"""Write tables: `tracks.csv`, `tracks_mot.txt`, `tracks_napari.csv`, `counts.csv` and, with pyarrow, `tracks.parquet`.

`TrackedFrame`, a frame of the video with its tracks, is the input of every writer of results.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import TextIO

import numpy as np
from jaxtyping import Bool, Int, UInt8

from scalor.errors import InputError
from scalor.files import open_at, saved_position
from scalor.track_files import (
    COLUMNS,
    Columns,
    arrow_schema,
    arrow_table,
    csv_lines,
    header,
    mot_lines,
    napari_lines,
    napari_rows,
)
from scalor.tracks import Tracks


@dataclass(frozen=True)
class TrackedFrame:
    """One frame of the video with its tracks."""

    picture: UInt8[np.ndarray, "H W 3"]
    seconds: float
    index: int
    """Number of the frame in the original video, from 0."""
    tracks: Tracks

    @cached_property
    def owner(self) -> Int[np.ndarray, "H W"]:
        """For each pixel, the row of `tracks` that is visible there, counted from 1; 0 for the background.

        Where masks overlap, the later row is on top. It belongs to the newer object.
        """
        owner = np.zeros(self.tracks.size, np.int32)
        if self.tracks.masks is not None:
            for row, mask in enumerate(self.tracks.masks, start=1):
                inside = extent(mask)
                owner[inside][mask[inside]] = row
        return owner

    @cached_property
    def columns(self) -> Columns:
        """The columns of the tracks in files, with the number and the time of this frame."""
        return self.tracks.at(self.index, self.seconds).columns()

    @property
    def labels(self) -> Int[np.ndarray, "H W"]:
        """For each pixel, the id of the object that is visible there; 0 for the background."""
        labels: np.ndarray = np.concatenate([[0], self.tracks.id])[self.owner]
        return labels


def extent(mask: Bool[np.ndarray, "H W"]) -> tuple[slice, slice]:
    """Return the smallest range of rows and of columns that contains all of a mask."""
    rows = np.flatnonzero(mask.any(axis=1))
    if not len(rows):
        return slice(0, 0), slice(0, 0)
    inside = slice(int(rows[0]), int(rows[-1]) + 1)
    columns = np.flatnonzero(mask[inside].any(axis=0))
    return inside, slice(int(columns[0]), int(columns[-1]) + 1)


ROW_GROUP = 2**16
"""Number of rows written to a parquet file at once."""


class TrackTables:
    """The text tables `tracks.csv` and `tracks_mot.txt` (a line per object and frame) and `counts.csv` (per frame)."""

    def __init__(self, folder: Path, saved: Sequence[int] | None = None) -> None:
        self.folder, self.saved = folder, saved
        self._open = ExitStack()

    def __enter__(self) -> "TrackTables":
        names = ("tracks.csv", "tracks_mot.txt", "counts.csv")
        places = self.saved or (None,) * len(names)
        self._files = [
            self._open.enter_context(open_at(self.folder / name, place))
            for name, place in zip(names, places, strict=True)
        ]
        self._tracks, self._mot, self._counts = self._files
        if self.saved is None:
            self._tracks.write(header(COLUMNS))
            self._counts.write("frame,seconds,objects\n")
        return self

    def save(self) -> list[int]:
        """Write all rows to the disk; return what the constructor needs to resume here."""
        return [saved_position(file) for file in self._files]

    def add(self, frame: TrackedFrame) -> None:
        """Append a frame: one row of counts, and one row of tracks for each object."""
        self._counts.write(f"{frame.index},{frame.seconds:.4f},{len(frame.tracks)}\n")
        self._tracks.writelines(csv_lines(frame.columns))
        self._mot.writelines(mot_lines(frame.columns))

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._open.close()


class ParquetTable:
    """The table `tracks.parquet`: the columns of `tracks.csv` in full precision."""

    @staticmethod
    def available() -> bool:
        """Return whether pyarrow is installed."""
        return find_spec("pyarrow") is not None

    def __init__(self, path: Path, size: tuple[int, int], saved: int | None = None) -> None:
        self.path, self.size, self.saved = path, size, saved
        self.rows_path = path.with_name(f"{path.name}.rows")

    def __enter__(self) -> "ParquetTable":
        self._schema = arrow_schema(clips=False, facts={"size": list(self.size)})
        self._row = np.dtype([(field.name, field.type.to_pandas_dtype()) for field in self._schema])
        self._file = open_at(self.rows_path, self.saved)
        return self

    def add(self, frame: TrackedFrame) -> None:
        """Append a frame. A parquet file cannot be appended to later, so rows wait in a plain file until the end."""
        rows = np.empty(len(frame.tracks), self._row)
        for name in COLUMNS:
            rows[name] = frame.columns[name]
        self._file.buffer.write(rows.tobytes())

    def save(self) -> int:
        """Write all rows to the disk; return what the constructor needs to resume here."""
        return saved_position(self._file)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._file.close()
        if kind is not None:
            return
        with (
            open(self.rows_path, "rb") as file,
            open(self.path, "wb") as target,  # pyarrow takes no name that is not UTF-8
            import_module("pyarrow.parquet").ParquetWriter(target, self._schema) as writer,
        ):
            while group := file.read(ROW_GROUP * self._row.itemsize):
                rows = np.frombuffer(group, self._row)
                writer.write_table(arrow_table({name: rows[name] for name in COLUMNS}, self._schema))
        self.rows_path.unlink()


def as_text(value: str) -> str:
    """Return a name for a cell of a table. Spreadsheets run what begins like a formula, so it gets an apostrophe."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def mean_counts(path: Path, frames: int, points: int = 1000) -> tuple[list[float], list[float]]:
    """Read `counts.csv` as a stream; return times in seconds and objects in view, in at most `points` points.

    If the video has more frames, each point is the mean over the same number of frames; the last may have fewer.
    """
    each = ceil(frames / points)
    sums = np.zeros((ceil(frames / each), 3))
    with open(path, newline="") as file:
        for place, row in enumerate(csv.DictReader(file)):
            sums[place // each] += float(row["seconds"]), float(row["objects"]), 1
    seconds, objects = (sums[:, :2] / sums[:, 2:]).T
    return seconds.tolist(), objects.tolist()


def read_counts(path: Path) -> dict[int, float]:
    """Return the time of every tracked frame in seconds, by the number of the frame, from `counts.csv`."""
    try:
        with open(path, newline="") as file:
            return {int(row["frame"]): float(row["seconds"]) for row in csv.DictReader(file)}
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): track the video again.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: track the video again.") from error


def write_napari(file: TextIO, pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Write the lines of one object to `tracks_napari.csv`; yield its rows unchanged."""
    for rows in pieces:
        file.writelines(napari_lines(napari_rows(rows["id"], rows["frame"], rows["x"], rows["y"])))
        yield rows
