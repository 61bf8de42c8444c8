"""`Tracks`: the result of tracking, one row per object and frame, and its export to formats that other tools read."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from scalor import track_files
from scalor.config import FPS
from scalor.errors import InputError, shown
from scalor.files import open_folder, replacing
from scalor.replacement import settle
from scalor.track_files import CLIP, NAPARI_COLUMNS, Columns

if TYPE_CHECKING:
    import pandas
    import supervision


UNTIMED = np.empty(0)
"""Placeholder for times that follow from the frames."""


class TrackedObject(NamedTuple):
    """One object in one frame: a row of `Tracks`."""

    frame: int
    seconds: float
    id: int
    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in pixels."""
    confidence: float
    discovered: bool
    """True in the first frame of the track."""


@dataclass(frozen=True)
class Tracks:
    """Tracked objects, one row per object and frame, sorted by clip, frame and id.

    The columns are the same in memory and in files (`scalor.track_files.COLUMNS`). Iteration yields the rows as
    `TrackedObject`; `by_frame` and `by_track` yield groups of them. N is the number of rows, H and W are the height and
    width of the frames.

    Attributes
    ----------
    clip : int array [N]
        Number of the clip in the batch, from 0; 0 for a video.
    frame : int array [N]
        Number of the frame, from 0.
    id : int array [N]
        Number of the object, from 1. It is the same in all frames of a track.
    box : float array [N, 4]
        Bounding box x0, y0, x1, y1 in pixels; pixel i covers [i, i + 1). Whole numbers are converted.
    confidence : float array [N]
        Confidence that the object is there, 0 to 1.
    discovered : bool array [N]
        True in the first frame of a track.
    size : tuple of int
        Height and width of the frames, pixels; (0, 0) if unknown.
    masks : bool array [N, H, W], optional
        Visible mask of each object: the pixels that show it, without occluded parts. None unless asked for.
    dropped : int
        Number of detections in these frames that were dropped because no slot was free.
    seconds : float array [N]
        Time of the frame. Arrays hold no times; they are taken to have 10 frames per second.

    Examples
    --------
    >>> tracks = scalor.track("walkers.mp4")
    >>> for frame, objects in tracks.by_frame():
    ...     print(frame, len(objects), "objects")
    >>> confident = tracks.select(tracks.confidence > 0.8)
    >>> confident.to_csv("tracks.csv")
    """

    clip: Int[np.ndarray, " N"]
    frame: Int[np.ndarray, " N"]
    id: Int[np.ndarray, " N"]
    box: Float[np.ndarray, "N 4"]
    confidence: Float[np.ndarray, " N"]
    discovered: Bool[np.ndarray, " N"]
    size: tuple[int, int]
    masks: Bool[np.ndarray, "N H W"] | None = None
    dropped: int = 0
    seconds: Float[np.ndarray, " N"] = field(default_factory=lambda: UNTIMED)

    def __post_init__(self) -> None:
        if self.seconds is UNTIMED:
            object.__setattr__(self, "seconds", self.frame / FPS)
        if self.box.dtype.kind != "f":
            object.__setattr__(self, "box", self.box.astype(float))
        rows = len(self.id)
        for name in ROWS:
            if len(getattr(self, name)) != rows:
                raise InputError(
                    f"tracks have {rows} ids and {len(getattr(self, name))} of {name}: give one each a row."
                )
        if self.box.shape != (rows, 4):
            raise InputError(f"box has shape {list(self.box.shape)}: give x0, y0, x1, y1 for each row, [{rows}, 4].")

    def __len__(self) -> int:
        return len(self.id)

    def __iter__(self) -> Iterator[TrackedObject]:
        values = (self.frame, self.seconds, self.id, self.box, self.confidence, self.discovered)
        for frame, seconds, number, (x0, y0, x1, y1), confidence, discovered in zip(
            *(column.tolist() for column in values), strict=True
        ):
            yield TrackedObject(frame, seconds, number, (x0, y0, x1, y1), confidence, discovered)

    @property
    def presence(self) -> Float[np.ndarray, " N"]:
        """The same as `confidence`: the probability of presence in the model's words."""
        return self.confidence

    @property
    def centre(self) -> Float[np.ndarray, "N 2"]:
        """Centres of the boxes, x and y in pixels [N, 2]."""
        centre: np.ndarray = (self.box[:, :2] + self.box[:, 2:]) / 2
        return centre

    def select(self, rows: Bool[np.ndarray, " N"] | Int[np.ndarray, " K"]) -> "Tracks":
        """Return the rows where `rows` is true, or the rows with these indices.

        Examples
        --------
        >>> first_second = tracks.select(tracks.seconds < 1)
        """
        chosen = {name: getattr(self, name)[rows] for name in ROWS}
        return replace(self, **chosen, masks=None if self.masks is None else self.masks[rows])

    def at(self, frame: int, seconds: float) -> "Tracks":
        """Return the rows as those of one frame with this number and time."""
        many = len(self)
        return replace(self, frame=np.full(many, frame), seconds=np.full(many, float(seconds)))

    def of_clip(self, clip: int) -> "Tracks":
        """Return the rows of one clip of a batch.

        Examples
        --------
        >>> tracks.of_clip(0).to_csv("first.csv")
        """
        return self.select(self.clip == clip)

    def by_frame(self) -> Iterator[tuple[int, "Tracks"]]:
        """Yield the number of each frame that shows an object, and its rows, in the order of time.

        Examples
        --------
        >>> for frame, objects in tracks.by_frame():
        ...     print(frame, "shows", len(objects), "objects")
        """
        return self._groups("by_frame", self.frame)

    def by_track(self) -> Iterator[tuple[int, "Tracks"]]:
        """Yield the id of each object, and its rows in the order of time, by increasing id.

        Examples
        --------
        >>> for number, rows in tracks.by_track():
        ...     print(number, "is seen for", rows.seconds[-1] - rows.seconds[0], "seconds")
        """
        return self._groups("by_track", self.id)

    def columns(self) -> Columns:
        """Return the columns of the files by name; see `scalor.track_files.COLUMNS`.

        The column `clip` is added if there are rows of other clips than clip 0.
        """
        (x0, y0, x1, y1), (x, y) = self.box.T, self.centre.T
        values = (self.frame, self.seconds, self.id, x0, y0, x1, y1, x, y, self.confidence, self.discovered)
        columns = dict(zip(track_files.COLUMNS, values, strict=True))
        return {**columns, CLIP: self.clip} if self.clip.any() else columns

    def to_dataframe(self) -> "pandas.DataFrame":
        """Return a pandas DataFrame with the columns of tracks.csv.

        Examples
        --------
        >>> table = scalor.track("walkers.mp4").to_dataframe()
        >>> table.groupby("frame").id.count()
        """
        table: pandas.DataFrame = _optional("to_dataframe", "pandas").DataFrame(self.columns())
        return table

    def to_napari(self) -> Float[np.ndarray, "N 4"]:
        """Return the rows track_id, t, y, x of a Tracks layer of napari, by id and frame.

        Examples
        --------
        >>> viewer.add_tracks(tracks.to_napari())
        """
        self._check_one_clip("to_napari()")
        order = np.lexsort((self.frame, self.id))
        return track_files.napari_rows(self.id[order], self.frame[order], *self.centre[order].T)

    def to_supervision(self) -> "supervision.Detections":
        """Return the rows of a single frame as `supervision.Detections`, for its annotators, zones and counters.

        Boxes are xyxy in pixels. Every class is 0. Tracker ids are the ids.

        Examples
        --------
        >>> for frame, objects in tracks.by_frame():
        ...     detections = objects.to_supervision()
        """
        package = _optional("to_supervision", "supervision")
        if len({*zip(self.clip.tolist(), self.frame.tolist(), strict=True)}) > 1:
            raise InputError(
                f"tracks hold {len(np.unique(self.frame))} frames of {len(np.unique(self.clip))} clips, and Detections "
                "hold one: select a frame, such as tracks.select(tracks.frame == 0)."
            )
        detections: supervision.Detections = package.Detections(
            xyxy=self.box.astype(np.float32),
            mask=self.masks,
            confidence=self.confidence.astype(np.float32),
            class_id=np.zeros(len(self), int),
            tracker_id=self.id,
        )
        return detections

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV table: a header, and one line per row with the columns `scalor.track_files.COLUMNS`.

        It is the tracks.csv of `scalor track`. Pixels have three digits. Tracks of several clips get a column `clip`.

        Examples
        --------
        >>> tracks.to_csv("tracks.csv")
        """
        columns = self.columns()
        with replacing(Path(path)) as temporary, open(temporary, "w") as file:
            file.write(track_files.header(columns))
            file.writelines(track_files.csv_lines(columns))

    def to_mot(self, path: str | Path) -> None:
        """Write a MOTChallenge text file: frame and id (from 1), left, top, width, height, confidence, -1, -1, -1.

        Raise InputError if the rows belong to more than one clip; see `of_clip`.

        Examples
        --------
        >>> tracks.to_mot("tracks_mot.txt")
        """
        self._check_one_clip("to_mot(path)")
        with replacing(Path(path)) as temporary, open(temporary, "w") as file:
            file.writelines(track_files.mot_lines(self.columns()))

    def to_parquet(self, path: str | Path) -> None:
        """Write a parquet table with the columns of tracks.csv in full precision. It needs the package pyarrow.

        Examples
        --------
        >>> tracks.to_parquet("tracks.parquet")
        """
        with replacing(Path(path)) as temporary:
            track_files.write_parquet(temporary, self.columns(), self._facts())

    def save(self, folder: str | Path) -> Path:
        """Write all tables to a folder: tracks.csv, tracks_mot.txt, tracks_napari.csv and, with pyarrow, parquet.

        Parameters
        ----------
        folder : str or Path
            The folder. It is created if necessary; tables of these names are replaced, other files are kept.

        Returns
        -------
        Path
            The folder.

        Examples
        --------
        >>> tracks.save("tracked")
        """
        self._check_one_clip("save(folder)")
        whole = open_folder(folder)
        self.to_csv(whole / "tracks.csv")
        self.to_mot(whole / "tracks_mot.txt")
        with replacing(whole / "tracks_napari.csv") as temporary, open(temporary, "w") as file:
            file.write(",".join(NAPARI_COLUMNS) + "\n")
            file.writelines(track_files.napari_lines(self.to_napari()))
        if find_spec("pyarrow") is not None:
            self.to_parquet(whole / "tracks.parquet")
        return whole

    def _groups(self, method: str, keys: Int[np.ndarray, " N"]) -> Iterator[tuple[int, "Tracks"]]:
        """Yield the rows of each value of a column."""
        self._check_one_clip(f"{method}()")
        order = np.argsort(keys, kind="stable")
        values, starts = np.unique(keys[order], return_index=True)
        for value, rows in zip(values.tolist(), np.split(order, starts)[1:], strict=True):
            yield value, self.select(rows)

    def _check_one_clip(self, call: str) -> None:
        if len(self) and self.clip.min() != self.clip.max():
            raise InputError(
                f"these tracks hold {len(np.unique(self.clip))} clips: take one by one, tracks.of_clip(i).{call}."
            )

    def _facts(self) -> dict[str, Any]:
        """Return what a parquet table keeps besides the columns."""
        return {"size": list(self.size), "dropped": self.dropped}


ROWS = ("clip", "frame", "id", "box", "confidence", "discovered", "seconds")
"""Fields of `Tracks` with one entry per row, besides the masks."""


def join_tracks(parts: list[Tracks]) -> Tracks:
    """Return one record with the rows of several records of the same video, sorted."""
    masked = parts[0].masks is not None
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in (*ROWS, *(["masks"] * masked))}
    order = np.lexsort((columns["id"], columns["frame"], columns["clip"]))
    chosen = {name: values[order] for name, values in columns.items()}
    return Tracks(**chosen, size=parts[0].size, dropped=sum(part.dropped for part in parts))


def read_tracks(path: str | Path, size: tuple[int, int] | None = None, fps: float = FPS) -> Tracks:
    """Read tracks from what `Tracks` or `scalor track` wrote, or from MOTChallenge text of another program.

    Parameters
    ----------
    path : str or Path
        A CSV table, MOTChallenge text, a parquet table (.parquet), or a result folder, whose parquet or CSV table is
        read. The table for napari has no boxes and cannot be read.
    size : tuple of int, optional
        Height and width of the frames, pixels. CSV and MOTChallenge files do not hold it; it is (0, 0) then.
    fps : float, default 10
        Frames per second, for files without times, such as MOTChallenge text.

    Returns
    -------
    Tracks
        The rows of the file. Files hold no masks.

    Raises
    ------
    InputError
        If the file cannot be read or holds an invalid row.

    Examples
    --------
    >>> tracks = scalor.read_tracks("tracked")
    >>> truth = scalor.read_tracks("gt.txt", size=(576, 768), fps=7)
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path is {shown(path)}: give a table of tracks or a result folder.")
    columns, facts = track_files.read(table_in(path), fps)
    height, width = size or facts.get("size", (0, 0))
    return Tracks(
        clip=columns[CLIP],
        frame=columns["frame"],
        id=columns["id"],
        box=np.stack([columns[name] for name in ("x0", "y0", "x1", "y1")], axis=1),
        confidence=columns["confidence"],
        discovered=columns["discovered"],
        size=(height, width),
        dropped=facts.get("dropped", 0),
        seconds=columns["seconds"],
    )


def table_in(path: str | Path) -> Path:
    """Return the table in a result folder: parquet, which is more precise, or CSV. A file is returned as it is."""
    if not Path(path).is_dir():
        return Path(path)
    settle(Path(path))
    tables = [Path(path) / name for name in ("tracks.parquet", "tracks.csv")]
    readable = tables if find_spec("pyarrow") is not None else tables[1:]
    for table in readable:
        if table.exists():
            return table
    raise InputError(
        f"folder {path} holds no tracks.csv: give a result folder of `scalor track`, or a table of tracks."
    )


def _optional(method: str, package: str) -> Any:
    """Import an optional package."""
    try:
        return import_module(package)
    except ImportError as error:
        raise InputError(f"{method} needs the package {package}: run pip install {package}.") from error
