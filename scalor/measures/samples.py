"""`Samples`: positions of objects over time in real units, which every measure is computed from."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from scalor.errors import InputError
from scalor.measures.calibration import Calibration
from scalor.track_files import LARGEST
from scalor.tracks import Tracks

if TYPE_CHECKING:
    import pandas

Anchor = Literal["centre", "bottom"]
TracksLike: TypeAlias = "Tracks | pandas.DataFrame"
"""Tracks, or a DataFrame with the columns frame, seconds, id, x0, y0, x1 and y1, such as tracks.csv."""


@dataclass(frozen=True)
class Samples:
    """One row per object and frame, sorted by id and frame. Lengths are in the unit of the calibration."""

    frame: Int[np.ndarray, " N"]
    seconds: Float[np.ndarray, " N"]
    id: Int[np.ndarray, " N"]
    place: Float[np.ndarray, "N 2"]
    """x and y; y grows downwards as in the picture."""
    extent: Float[np.ndarray, "N 2"]
    """Width and height of the box."""
    unit: str
    interval: float
    """Seconds from one tracked frame to the next."""
    step: int
    """Number of video frames from one tracked frame to the next."""
    scale: float
    """Length of a pixel in `unit`."""

    def __len__(self) -> int:
        return len(self.id)

    @property
    def pixels(self) -> Float[np.ndarray, "N 2"]:
        """X and y in pixels."""
        pixels: np.ndarray = self.place / self.scale
        return pixels

    @property
    def follows(self) -> Bool[np.ndarray, " N"]:
        """Which rows have a row of the same object before them."""
        return np.concatenate([[False], self.id[1:] == self.id[:-1]])[: len(self)]

    def since_last(self, values: Shaped[np.ndarray, "N *K"]) -> Float[np.ndarray, "N *K"]:
        """Return the change of a column since the last row of the same object; NaN in an object's first row."""
        change = np.full(values.shape, np.nan)
        change[1:] = values[1:] - values[:-1]
        change[~self.follows] = np.nan
        return change

    def objects(self) -> Iterator[tuple[int, slice]]:
        """Yield every id with the rows of the object."""
        cuts = [*np.flatnonzero(~self.follows).tolist(), len(self)]
        for start, stop in pairwise(cuts):
            yield int(self.id[start]), slice(start, stop)

    @property
    def lasting(self) -> Float[np.ndarray, " N"]:
        """Seconds that every row stands for: until the object's next row, and one interval for its last row."""
        until = np.full(len(self), self.interval)
        last = np.append(~self.follows[1:], True)[: len(self)]
        until[~last] = np.diff(self.seconds)[~last[:-1]] if len(self) > 1 else 0
        return until


def samples_of(
    tracks: TracksLike, calibration: Calibration | None = None, anchor: Anchor = "centre", smooth_s: float = 0.0
) -> Samples:
    """Return the positions of tracks in real units.

    Parameters
    ----------
    tracks : Tracks or DataFrame
        Tracks of one video.
    calibration : Calibration, optional
        Scale of the picture; without it, lengths are in pixels.
    anchor : "centre" or "bottom", default "centre"
        Point of the box that is the position: its centre, or the middle of its lower edge, where people stand.
    smooth_s : float, default 0
        Replace positions by their mean over this many seconds around them. The jitter of boxes lengthens paths;
        smoothing takes it away, and rounds corners.

    Returns
    -------
    Samples
        Rows sorted by id and frame.

    Examples
    --------
    >>> samples = samples_of(tracks, Calibration(mm_per_pixel=0.5))
    >>> samples.place[:2].tolist(), samples.unit
    ([[5.0, 25.0], [10.0, 25.0]], 'mm')
    """
    if anchor not in get_args(Anchor):
        raise InputError(f"anchor is {anchor!r}: give one of {', '.join(get_args(Anchor))}.")
    if not 0 <= smooth_s <= LARGEST:
        raise InputError(f"smooth is {smooth_s}: give a number of seconds from 0 to {LARGEST:g}.")
    calibration = calibration or Calibration()
    columns = _columns(tracks)
    order = np.lexsort((columns["frame"], columns["id"]))
    frame, seconds, number, x0, y0, x1, y1 = (columns[name][order] for name in COLUMNS)
    y = (y0 + y1) / 2 if anchor == "centre" else y1
    frames, first = np.unique(frame, return_index=True)
    samples = Samples(
        frame=frame.astype(int),
        seconds=seconds,
        id=number.astype(int),
        place=calibration.scale * np.stack([(x0 + x1) / 2, y], axis=1),
        extent=calibration.scale * np.stack([x1 - x0, y1 - y0], axis=1),
        unit=calibration.unit,
        interval=float(np.median(np.diff(seconds[first]))) if len(frames) > 1 else 0.0,
        step=int(np.diff(frames).min()) if len(frames) > 1 else 1,
        scale=calibration.scale,
    )
    if (samples.since_last(samples.seconds)[samples.follows] <= 0).any():
        raise InputError("a track has two boxes at one time: give tracks of one video, each id once in a frame.")
    return _smoothed(samples, smooth_s) if smooth_s else samples


COLUMNS = ("frame", "seconds", "id", "x0", "y0", "x1", "y1")
"""Columns that tables of tracks need."""


def _columns(tracks: TracksLike) -> dict[str, Float[np.ndarray, " N"]]:
    """Return the columns of tracks as floats."""
    if isinstance(tracks, Tracks):
        if len(np.unique(tracks.clip)) > 1:
            raise InputError("these tracks hold several clips: measure them one by one, tracks.of_clip(i).")
        values = (tracks.frame, tracks.seconds, tracks.id, *tracks.box.T)
        return {name: np.asarray(column, float) for name, column in zip(COLUMNS, values, strict=True)}
    missing = [name for name in COLUMNS if name not in tracks]
    if missing:
        raise InputError(f"the table of tracks has no column {missing[0]}: give the columns {', '.join(COLUMNS)}.")
    try:
        columns = {name: tracks[name].to_numpy(float) for name in COLUMNS}
    except ValueError as error:
        raise InputError(f"the table of tracks holds a value that is not a number: {error}.") from error
    if not all(np.isfinite(column).all() for column in columns.values()):
        raise InputError("the table of tracks holds values that are not finite: leave those rows out.")
    return columns


def _smoothed(samples: Samples, smooth_s: float) -> Samples:
    """Return samples whose positions are means over the rows at most half of `smooth_s` away, of the same object."""
    place = samples.place.copy()
    for _, rows in samples.objects():
        time = samples.seconds[rows]
        reach = np.minimum(smooth_s / 2, np.minimum(time - time[0], time[-1] - time)) + 1e-9  # as far to both sides
        start, stop = np.searchsorted(time, time - reach), np.searchsorted(time, time + reach, side="right")
        sums = np.concatenate([np.zeros((1, 2)), np.cumsum(samples.place[rows], axis=0)])
        place[rows] = (sums[stop] - sums[start]) / (stop - start)[:, None]
    return replace(samples, place=place)


def data_frame(columns: dict[str, Any]) -> "pandas.DataFrame":
    """Return columns as a pandas DataFrame."""
    try:
        module = import_module("pandas")
    except ImportError as error:
        raise InputError("measures need the package pandas: run pip install 'scalor[measures]'.") from error
    table: pandas.DataFrame = module.DataFrame(columns)
    return table
