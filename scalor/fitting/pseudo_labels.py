"""Training frames of one's own videos, labelled with post-processed tracks of the model itself.

The frames are collected at the scale and contrast of the model and saved in one file. Post-processing uses information
that the model does not have: where an object was before and after a frame, which shape is typical, and where the
foreground ends. Training on these labels passes that information to the model.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int16
from tqdm import tqdm

from scalor.config import Config
from scalor.data.footage import HIDDEN, NOBODY, SEEN, Frames, Labels
from scalor.errors import InputError
from scalor.files import replacing
from scalor.nn.interface import Tracker
from scalor.still.blobs import find_blobs, large_enough
from scalor.still.foreground import clean_foreground
from scalor.tracking.follow import follow
from scalor.tracking.identity import PREDICTED_PRESENCE
from scalor.tracking.video_view import Lens, VideoView
from scalor.tracks import Tracks
from scalor.video.pixels import Picture, amplify_difference
from scalor.video.resize import resize

MAX_BYTES = 2**30
"""Largest total size of the kept frames. More frames of a long video do not improve the training."""
STRETCH = 40
"""Number of consecutive frames in each part that is kept of a video too long to be kept as a whole."""


class FrameCollector:
    """Collector of the training frames of one video.

    Every frame is corrected to the light of its background picture, so that one background picture serves a whole
    stretch of consecutive frames.
    """

    def __init__(self, view: VideoView, config: Config) -> None:
        video, scene = view.steady, config.scene
        assert view.background is not None
        assert view.found is not None
        size, region, cell = video.full_size, video.selection.region, config.model.cell
        self.lens = Lens(size, region, cell, scene.scale, scene.stretch, view.background)
        self.view, self.found, self.contrast = view, view.found, scene.contrast
        self.background = view.background.resized(self.lens.seen)
        self.object_size = (
            view.found.object_size[0] * self.lens.scales[0],
            view.found.object_size[1] * self.lens.scales[1],
        )
        self.frames: list[np.ndarray] = []
        self.starts: list[int] = []
        self.epochs: list[int] = []
        self.spots: list[tuple[int, int, int]] = []
        self.last = (-2, -1)

    @property
    def most(self) -> int:
        """Largest number of frames that may be kept."""
        return max(2 * STRETCH, MAX_BYTES // self.background.still.nbytes)

    def add(self, picture: Picture, number: int) -> Bool[np.ndarray, "h w"]:
        """Keep a picture of the region and return its foreground mask.

        Pictures with consecutive numbers and the same background picture form a stretch.
        """
        small = resize(picture, self.lens.seen)
        empty = self.background.at(small)
        assert self.background.light is not None
        now = (number, self.background.light.epoch)
        if self.last != (number - 1, now[1]):
            self.starts.append(len(self.frames))
            self.epochs.append(now[1])
        self.last = now
        foreground = clean_foreground(small, empty, self.found.test)
        blobs = find_blobs(foreground)
        large = large_enough(blobs, self.object_size, self.lens.seen[0], self.found.perspective)
        self.spots += [(len(self.frames), int(y), int(x)) for x, y in blobs.centre[large]]
        evened = self.background.light.light.inverse().applied(small)
        self.frames.append(amplify_difference(evened, self.background.epochs[now[1]], self.contrast).transpose(2, 0, 1))
        return foreground

    def kept(self, labels: Labels | None = None) -> Frames:
        """Return everything that was kept, with labels where given.

        Raises an InputError if no object-sized foreground was found.
        """
        if not self.spots:
            height, width = self.object_size
            raise InputError(
                f"{self.view.video.name} shows nothing of about {height:.0f}x{width:.0f} px that moves: give another "
                "--object-size, or choose another part of it with --start, --end or --region."
            )
        stills = np.stack([picture.transpose(2, 0, 1) for picture in self.background.epochs])
        starts, epochs, spots = (np.array(values) for values in (self.starts, self.epochs, self.spots))
        return Frames(np.stack(self.frames), stills, starts, epochs, spots, labels)


def keep(view: VideoView, config: Config, quiet: bool = False) -> Frames:
    """Keep every frame of a short video, or evenly spread stretches of a long one. `quiet` hides the progress bar."""
    video, keeper = view.steady, FrameCollector(view, config)
    count = sum(1 for _ in video) if video.frames is None else video.frames
    stretches = max(1, count // STRETCH)
    taken = set(range(stretches)) if count <= keeper.most else set(spread(keeper.most // STRETCH, stretches))
    frames = tqdm(video, "reading", count, file=sys.stderr, unit="frame", leave=False, disable=quiet)
    for number, frame in enumerate(frames):
        if min(number // STRETCH, stretches - 1) in taken:
            keeper.add(frame.picture, number)
    return keeper.kept()


def spread(count: int, room: int) -> Iterator[int]:
    """Yield `count` evenly spaced integers below `room`. They differ as long as `count` is at most `room`."""
    return (int((number + 0.5) * room / count) for number in range(count))


def save(frames: Frames, path: Path) -> None:
    """Write the frames to a file atomically."""
    with replacing(path) as temporary:
        frames.save(temporary)


MOST_FRAMES, LABELLED_STRETCH = 1_500, 60
"""Largest number of frames that are labelled, and number of consecutive frames in each part of a longer video."""
REACH = 1.1
"""Largest distance of an object's pixels from the centre of its box, in half sides of the box."""


def keep_and_label(view: VideoView, config: Config, tracker: Tracker, quiet: bool = False) -> Frames:
    """Track a video and return its training frames with the tracks as labels.

    The labels are None if the tracker finds nothing at all. `quiet` hides the progress bar.
    """
    keeper = FrameCollector(view, config)
    x0, y0, x1, y1 = keeper.lens.corners
    scale = (keeper.lens.seen[0] / (y1 - y0), keeper.lens.seen[1] / (x1 - x0))
    rows: list[list[Row]] = []
    foregrounds: list[np.ndarray] = []
    number = ids = 0
    parts = stretches_of(view, min(MOST_FRAMES, keeper.most))
    total = len(parts) * LABELLED_STRETCH if len(parts) > 1 else view.video.frames
    with tqdm(desc="tracking", total=total, file=sys.stderr, unit="frame", leave=False, disable=quiet) as bar:
        for part in parts:
            number, first_id = number + 1, ids  # skip a number, so that the keeper begins a new stretch
            for step in follow(tracker, part):
                picture = view.picture(step.frame)[y0:y1, x0:x1]
                rows.append(rows_of(step.in_view, len(rows), scale, (x0, y0), first_id))
                foregrounds.append(keeper.add(picture, number))
                ids = max([ids, *(row.id + 1 for row in rows[-1])])
                number += 1
                bar.update()
    return keeper.kept(labels_of(rows, foregrounds, config.scene.length) if any(rows) else None)


def stretches_of(view: VideoView, most: int) -> list[VideoView]:
    """Return the view itself if it has at most `most` frames, or views of evenly spread stretches of it."""
    video = view.video
    count, stride = video.frames, video.selection.stride
    if count is None or count <= most:
        return [view]
    number = max(1, most // LABELLED_STRETCH)
    first, seconds = video.selection.start or 0.0, stride / video.fps
    starts = [first + int((place + 0.5) / number * (count - LABELLED_STRETCH)) * seconds for place in range(number)]
    parts = (video.selected(start=start, end=start + LABELLED_STRETCH * seconds) for start in starts)
    return [replace(view, video=part) for part in parts]


@dataclass(frozen=True)
class Row:
    """One object in one labelled frame."""

    frame: int
    """Index among the labelled frames, from 0 on."""
    id: int
    """Id of the object, unique over all stretches of the video."""
    box: Float[np.ndarray, " 4"]
    """x0, y0, x1, y1 in pixels of the labelled frame."""
    hidden: bool
    """True if the box was interpolated, not seen."""


def rows_of(tracks: Tracks, frame: int, scale: tuple[float, float], corner: tuple[int, int], id_from: int) -> list[Row]:
    """Convert the tracks of a frame to the model's scale.

    Parameters
    ----------
    tracks : Tracks
        Tracks in pixels of the steady video.
    frame : int
        Index of the labelled frame.
    scale : tuple of float
        Pixels of the labelled frame per pixel of the video, along the height and the width.
    corner : tuple of int
        x and y of the upper left pixel of the region.
    id_from : int
        Number that is added to all ids.
    """
    down, across = scale
    factors, shift = np.array([across, down] * 2), np.array([*corner, *corner])
    boxes, hidden = (tracks.box - shift) * factors, tracks.confidence <= PREDICTED_PRESENCE
    return [Row(frame, id_from + int(tracks.id[row]), boxes[row], bool(hidden[row])) for row in range(len(tracks))]


def owners(
    rows: Sequence[Row], column: dict[int, int], foreground: Bool[np.ndarray, "H W"]
) -> Int16[np.ndarray, "H W"]:
    """Return the column of the object that each pixel shows, -1 for the background.

    A foreground pixel belongs to the visible object whose box centre is nearest, measured in half sides of the box.
    """
    height, width = foreground.shape
    owner = np.full((height, width), -1, np.int16)
    nearest = np.full((height, width), REACH, np.float32)
    for row in rows:
        if row.hidden:
            continue
        middle, half = (row.box[:2] + row.box[2:]) / 2, np.maximum(row.box[2:] - row.box[:2], 1) / 2
        low, high = np.floor(middle - REACH * half), np.ceil(middle + REACH * half)
        x0, y0 = np.clip(low, 0, (width, height)).astype(int)
        x1, y1 = np.clip(high, 0, (width, height)).astype(int)
        x, y = (np.arange(x0, x1) + 0.5 - middle[0]) / half[0], (np.arange(y0, y1) + 0.5 - middle[1]) / half[1]
        away = np.maximum(np.abs(x), np.abs(y)[:, None])
        closer = (away < nearest[y0:y1, x0:x1]) & foreground[y0:y1, x0:x1]
        nearest[y0:y1, x0:x1][closer] = away[closer]
        owner[y0:y1, x0:x1][closer] = column[row.id]
    return owner


def columns_of(rows: Sequence[Row], apart: int) -> dict[int, int]:
    """Return a column of the label tables for each id.

    Ids share a column if the later one begins at least `apart` frames after the last frame of the earlier one.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for row in rows:
        first.setdefault(row.id, row.frame)
        last[row.id] = row.frame
    free_from: list[int] = []
    columns = {}
    for number in sorted(first, key=lambda number: first[number]):
        column = next((c for c, free in enumerate(free_from) if free <= first[number]), len(free_from))
        if column == len(free_from):
            free_from.append(0)
        free_from[column] = last[number] + apart
        columns[number] = column
    return columns


def labels_of(rows: Sequence[Sequence[Row]], foregrounds: Sequence[Bool[np.ndarray, "H W"]], apart: int) -> Labels:
    """Return the rows of all frames as label tables. Clips must not be longer than `apart` frames."""
    column = columns_of([row for frame in rows for row in frame], apart)
    width = max(column.values(), default=0) + 1
    seen = np.full((len(rows), width), NOBODY, np.uint8)
    box = np.zeros((len(rows), width, 4), np.float32)
    for number, frame in enumerate(rows):
        for row in frame:
            seen[number, column[row.id]] = HIDDEN if row.hidden else SEEN
            box[number, column[row.id]] = row.box
    owner = [owners(frame, column, foreground) for frame, foreground in zip(rows, foregrounds, strict=True)]
    return Labels(seen, box, np.stack(owner))
