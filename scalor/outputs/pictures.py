"""Result videos and pictures of a whole video.

Videos: `overlay.mp4` (boxes, ids and trails) and `labels.mp4` (each object in its colour). Pictures:
`trajectories.png` (the paths of all objects) and `counts.png`.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import merge
from io import BytesIO
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from scalor.errors import without_extra
from scalor.outputs.tables import TrackedFrame
from scalor.tracks import Tracks, join_tracks
from scalor.visual.overlay import MASK_STRENGTH, TARGET_SIDE, colors_of, overlay
from scalor.visual.plots import Line, Panel, save_plot

TRAIL_SECONDS = 1.0
"""Length of trails in seconds, within the limits below."""
SHORTEST_TRAIL, LONGEST_TRAIL = 8, 60
"""Smallest and largest length of trails in frames.

Trails must show motion at low frame rates, and must not clutter the picture at high ones.
"""
STILL_WIDTH = 640
"""Largest width of a still picture in the report, in pixels."""


class OverlayFilm:
    """Frames with boxes, ids and fading trails; only tracks of the frames that trails reach back to are kept."""

    def __init__(self, fps: float) -> None:
        self.trails = min(max(round(TRAIL_SECONDS * fps), SHORTEST_TRAIL), LONGEST_TRAIL)
        self._recent: deque[Tracks] = deque(maxlen=self.trails + 1)
        self._count = 0

    def draw(self, frame: TrackedFrame) -> UInt8[np.ndarray, "h w 3"]:
        """Draw the next frame with its tracks."""
        tracks = frame.tracks
        # Trails are counted in tracked frames; with a stride, the original has more frames in between.
        now = np.full(len(tracks), self._count)
        self._recent.append(replace(tracks, frame=now, masks=None))
        picture = frame.picture if tracks.masks is None else _tinted(frame)
        floats = picture.transpose(2, 0, 1)[None] / np.float32(255)
        (drawn,) = overlay(floats, join_tracks(list(self._recent)), trails=self.trails, first=self._count)
        self._count += 1
        return np.asarray(drawn)


def label_picture(frame: TrackedFrame) -> UInt8[np.ndarray, "h w 3"]:
    """Return every object's pixels in its colour on black, enlarged as `overlay` enlarges its pictures."""
    picture: np.ndarray = _palette(frame)[frame.owner]
    scale = max(1, round(TARGET_SIDE / max(picture.shape[:2])))
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


class EvenSample:
    """A few pictures spread over a video of unknown length.

    When too many are held, every second one is dropped and the spacing is doubled.
    """

    def __init__(self, wanted: int = 6) -> None:
        self.wanted = wanted
        self._kept: list[tuple[float, bytes]] = []
        self._every = 1
        self._count = 0

    def add(self, picture: UInt8[np.ndarray, "h w 3"], seconds: float) -> None:
        """Count the next picture of the video, and keep it if the spacing selects it."""
        if self._count % self._every == 0:
            if len(self._kept) == 2 * self.wanted:
                self._kept = self._kept[::2]
                self._every *= 2
            # 2 * `wanted` is even, so the number of this frame is a multiple of the new spacing as well.
            self._kept.append((seconds, jpeg(picture, STILL_WIDTH)))
        self._count += 1

    def chosen(self) -> list[tuple[float, bytes]]:
        """Return the time in seconds and the JPEG file of `wanted` pictures, or of all if there are fewer."""
        places = np.linspace(0, len(self._kept) - 1, min(self.wanted, len(self._kept)))
        return [self._kept[round(place)] for place in places]


def jpeg(picture: UInt8[np.ndarray, "h w 3"], widest: int) -> bytes:
    """Encode the picture as a JPEG file of at most `widest` pixels in width."""
    try:
        from PIL import Image
    except ImportError as error:
        raise without_extra("writing a picture", "pillow") from error
    image = Image.fromarray(picture)
    if image.width > widest:
        height = max(1, round(image.height * widest / image.width))
        image = image.resize((widest, height), Image.Resampling.LANCZOS)
    file = BytesIO()
    image.save(file, format="JPEG", quality=85)
    return file.getvalue()


def _palette(frame: TrackedFrame) -> UInt8[np.ndarray, "rows 3"]:
    """Return the colour of each value of `frame.owner`: black, then one per row."""
    return np.concatenate([np.zeros((1, 3), np.uint8), colors_of(frame.tracks.id)])


def _tinted(frame: TrackedFrame) -> UInt8[np.ndarray, "H W 3"]:
    """Return the picture with each object's pixels blended with its colour."""
    picture = frame.picture.copy()
    shown = frame.owner > 0
    tint = _palette(frame)[frame.owner[shown]]
    picture[shown] = ((1 - MASK_STRENGTH) * picture[shown] + MASK_STRENGTH * tint).astype(np.uint8)
    return picture


ROW = np.dtype([("id", "<i8"), ("frame", "<i8"), ("seconds", "<f8"), ("x", "<f8"), ("y", "<f8")])
BLOCK = 2**17
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
        return self.last - self.first


class ObjectPaths:
    """Rows of frames in time order, kept in memory or, when they exceed one block, in the file `spill`."""

    def __init__(self, spill: Path, block: int = BLOCK) -> None:
        self.spill = spill
        self.rows = 0
        self._block = np.empty(block, ROW)
        self._filled = 0
        self._spilled = 0

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


SMALLEST, LARGEST = 960, 1920
"""Smallest and largest length of the longer side of `trajectories.png`, in pixels."""
FINE = 2
"""Supersampling factor: paths are drawn this many times larger and then reduced, which smooths their edges."""
DIMMED = 0.45
"""Brightness of the scene under the paths, as a fraction of the original."""
INK = (16, 16, 16)


class Trajectories:
    """Paths over a darkened grey picture of the scene, each in the colour of its object with a dot at its end."""

    def __init__(self, scene: UInt8[np.ndarray, "H W 3"]) -> None:
        try:
            from PIL import Image, ImageDraw
        except ImportError as error:
            raise without_extra("drawing trajectories", "pillow") from error
        height, width = scene.shape[:2]
        longer = max(height, width)
        self.scale = FINE * min(max(longer, SMALLEST), LARGEST) / longer
        grey = Image.fromarray(scene).convert("L").point(lambda level: level * DIMMED)
        size = (max(1, round(width * self.scale)), max(1, round(height * self.scale)))
        sharp = Image.Resampling.NEAREST if longer < SMALLEST / 4 else Image.Resampling.BICUBIC
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
        self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color, outline=INK, width=FINE)

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
            left, top, right, bottom = font.getbbox(text, stroke_width=FINE)
            x, y = self.scale * life.end[0] + 2.5 * self.thickness, self.scale * life.end[1] - size / 2
            # Many paths end at the edge of the picture; the number must stay inside.
            x = min(max(x, -left), self._image.width - right)
            y = min(max(y, -top), self._image.height - bottom)
            color = tuple(colors_of(np.array(life.id)).tolist())
            self._draw.text((x, y), text, fill=color, font=font, stroke_width=FINE, stroke_fill=INK)

    def picture(self) -> UInt8[np.ndarray, "h w 3"]:
        """Return the picture, reduced by the supersampling factor."""
        size = (max(1, self._image.width // FINE), max(1, self._image.height // FINE))
        return np.asarray(self._image.resize(size))


def draw_counts(path: Path, seconds: list[float], objects: list[float]) -> None:
    """Write a plot of the objects in view over time to a .png file."""
    save_plot(path, [[Panel("seconds", "objects", [Line("objects in view", seconds, objects)])]], inches=(5.2, 2.4))
