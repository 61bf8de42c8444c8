"""Paths of all objects over a whole video: their rows by object, their summaries, and `trajectories.png`."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from scalor.errors import without_extra
from scalor.files import saved_position
from scalor.outputs.tables import TrackedFrame
from scalor.visual.colors import colors_of

ROW = np.dtype([("id", "<i8"), ("frame", "<i8"), ("seconds", "<f8"), ("x", "<f8"), ("y", "<f8")])
BLOCK_ROWS = 2**17
"""Number of rows held in memory, about 5 MB."""

Piece = tuple[int, np.ndarray]
"""An id and some of its rows, in time order."""


@dataclass(frozen=True)
class TrackSummary:
    """Summary of one track, from the first to the last frame in which the object was seen."""

    id: int
    first: float
    """Time of the first frame, in seconds."""
    last: float
    """Time of the last frame, in seconds."""
    frames: int
    """Number of frames in which the object was seen."""
    length: float
    """Length of the path in pixels: the sum of the straight lines between successive positions."""
    end: tuple[float, float]
    """x and y of the last position, in pixels."""

    @property
    def seconds(self) -> float:
        """Time from the first to the last frame of the track, seconds."""
        return self.last - self.first


class ObjectPaths:
    """Rows of frames in time order, kept in memory or, when they exceed one block, in the file `spill`."""

    def __init__(self, spill: Path, block: int = BLOCK_ROWS, saved: dict[str, Any] | None = None) -> None:
        self.spill = spill
        self.rows = 0
        self._block = np.empty(block, ROW)
        self._filled = 0
        self._spilled = 0
        if saved is not None:
            self.rows, self._spilled, self._filled = saved["rows"], saved["spilled"], len(saved["block"])
            self._block[: self._filled] = saved["block"]
            if self._spilled:
                os.truncate(spill, self._spilled * self._block.nbytes)

    def save(self) -> dict[str, Any]:
        """Return what the constructor needs to resume here."""
        if self._spilled:
            with open(self.spill, "ab") as file:
                saved_position(file)
        return {"rows": self.rows, "spilled": self._spilled, "block": self._block[: self._filled]}

    def add(self, frame: TrackedFrame) -> None:
        """Add the objects of the next frame."""
        tracks = frame.tracks
        rows = np.empty(len(tracks), ROW)
        rows["id"], rows["frame"], rows["seconds"] = tracks.id, frame.index, frame.seconds
        rows["x"], rows["y"] = tracks.centre.T
        self.rows += len(rows)
        while len(rows):
            room = len(self._block) - self._filled
            taken, rows = rows[:room], rows[room:]
            self._block[self._filled : self._filled + len(taken)] = taken
            self._filled += len(taken)
            if self._filled == len(self._block):
                with open(self.spill, "ab") as file:
                    _by_id(self._block).tofile(file)
                self._spilled += 1
                self._filled = 0

    def objects(self) -> Iterator[tuple[int, Iterator[np.ndarray]]]:
        """Yield each object's id with its rows in pieces; consume all pieces before asking for the next object."""
        blocks = [self._spilled_pieces(number) for number in range(self._spilled)]
        newest = _pieces(_by_id(self._block[: self._filled]))
        # Equal ids keep the order of the blocks, which is time order.
        for number, pieces in groupby(merge(*blocks, newest, key=itemgetter(0)), key=itemgetter(0)):
            yield number, (rows for _, rows in pieces)

    def _spilled_pieces(self, number: int) -> Iterator[Piece]:
        """Yield the pieces of one block in the file."""
        size = len(self._block)
        step = max(1, size // self._spilled)  # so all blocks together hold at most one block in memory
        for start in range(0, size, step):
            offset = (number * size + start) * ROW.itemsize
            yield from _pieces(np.fromfile(self.spill, ROW, count=min(step, size - start), offset=offset))


def summarise_track(number: int, pieces: Iterator[np.ndarray]) -> TrackSummary:
    """Summarise a track from its rows."""
    first, last, frames, length = np.inf, -np.inf, 0, 0.0
    end = np.empty((0, 2))
    for rows in pieces:
        places = np.concatenate([end, np.stack([rows["x"], rows["y"]], axis=1)])
        length += float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
        end = places[-1:]
        first, last = min(first, float(rows["seconds"][0])), float(rows["seconds"][-1])
        frames += len(rows)
    return TrackSummary(number, first, last, frames, length, (float(end[0, 0]), float(end[0, 1])))


def _by_id(rows: np.ndarray) -> np.ndarray:
    """Sort rows by id, keeping the order in time."""
    ordered: np.ndarray = rows[np.argsort(rows["id"], kind="stable")]
    return ordered


def _pieces(rows: np.ndarray) -> Iterator[Piece]:
    """Split rows that are sorted by id where the id changes."""
    cuts = [0, *(np.flatnonzero(np.diff(rows["id"])) + 1).tolist(), len(rows)]
    for start, stop in pairwise(cuts):
        if stop > start:
            yield int(rows["id"][start]), rows[start:stop]


MIN_SIDE, MAX_SIDE = 960, 1920
"""Smallest and largest length of the longer side of `trajectories.png`, in pixels."""
SUPERSAMPLING = 2
"""Supersampling factor: paths are drawn this many times larger and then reduced, which smooths their edges."""
SCENE_BRIGHTNESS = 0.45
"""Brightness of the scene under the paths, as a fraction of the original."""
OUTLINE_COLOR = (16, 16, 16)


class Trajectories:
    """Paths over a darkened grey picture of the scene, each in the colour of its object with a dot at its end."""

    def __init__(self, scene: UInt8[np.ndarray, "H W 3"]) -> None:
        try:
            from PIL import Image, ImageDraw
        except ImportError as error:
            raise without_extra("drawing trajectories", "pillow") from error
        height, width = scene.shape[:2]
        longer = max(height, width)
        self.scale = SUPERSAMPLING * min(max(longer, MIN_SIDE), MAX_SIDE) / longer
        grey = Image.fromarray(scene).convert("L").point(lambda level: level * SCENE_BRIGHTNESS)
        size = (max(1, round(width * self.scale)), max(1, round(height * self.scale)))
        sharp = Image.Resampling.NEAREST if longer < MIN_SIDE / 4 else Image.Resampling.BICUBIC
        self._image = grey.resize(size, sharp).convert("RGB")
        self._draw = ImageDraw.Draw(self._image)
        self.thickness = max(2, round(max(size) / 350))

    def add(self, number: int, pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Draw an object's path; yield its rows unchanged, as `ObjectPaths.objects` returns them."""
        color = tuple(colors_of(np.array(number)).tolist())
        end = np.empty((0, 2))
        for rows in pieces:
            points = np.concatenate([end, self.scale * np.stack([rows["x"], rows["y"]], axis=1)])
            self._draw.line(self._thinned(points).ravel().tolist(), fill=color, width=self.thickness, joint="curve")
            end = points[-1:]
            yield rows
        (x, y), radius = end[0], 1.7 * self.thickness
        self._draw.ellipse(
            (x - radius, y - radius, x + radius, y + radius), fill=color, outline=OUTLINE_COLOR, width=SUPERSAMPLING
        )

    def _thinned(self, points: Float[np.ndarray, "P 2"]) -> Float[np.ndarray, "p 2"]:
        """Drop points that move by less than the line's thickness, because objects at rest would take long to draw."""
        cells = np.floor(2 * points / self.thickness)
        moved = (cells[1:] != cells[:-1]).any(axis=1)
        return points[np.concatenate([[True], moved[:-1], [True]])] if len(points) > 2 else points

    def label(self, lives: Iterable[TrackSummary]) -> None:
        """Write the ids of these objects at the ends of their paths."""
        from PIL import ImageFont

        size = 10 * self.thickness
        font = ImageFont.load_default(size)
        for life in lives:
            text = str(life.id)
            left, top, right, bottom = font.getbbox(text, stroke_width=SUPERSAMPLING)
            x, y = self.scale * life.end[0] + 2.5 * self.thickness, self.scale * life.end[1] - size / 2
            # Many paths end at the edge of the picture; the number must stay inside.
            x = min(max(x, -left), self._image.width - right)
            y = min(max(y, -top), self._image.height - bottom)
            color = tuple(colors_of(np.array(life.id)).tolist())
            self._draw.text((x, y), text, fill=color, font=font, stroke_width=SUPERSAMPLING, stroke_fill=OUTLINE_COLOR)

    def picture(self) -> UInt8[np.ndarray, "h w 3"]:
        """Return the picture, reduced by the supersampling factor."""
        size = (max(1, self._image.width // SUPERSAMPLING), max(1, self._image.height // SUPERSAMPLING))
        return np.asarray(self._image.resize(size))
