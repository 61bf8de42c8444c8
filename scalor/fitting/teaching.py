"""Label the frames of a video with post-processed tracks, as training targets for the model that made them.

Post-processing uses information that the model does not have: where an object was before and after a frame, which shape
is typical, and where the foreground ends. Training on these labels passes that information to the model.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int16
from tqdm import tqdm

from scalor.config import Config
from scalor.data.footage import HIDDEN, NOBODY, SEEN, Frames, Labels
from scalor.fitting.keeping import FrameCollector
from scalor.nn.interface import Tracker
from scalor.tracking.follow import follow
from scalor.tracking.identity import PREDICTED_PRESENCE
from scalor.tracking.view import VideoView
from scalor.tracks import Tracks
from scalor.video import Video

MOST_FRAMES, STRETCH = 1_500, 60
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
    total = len(parts) * STRETCH if len(parts) > 1 else view.video.frames
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
    number = max(1, most // STRETCH)
    first, seconds = video.selection.start or 0.0, stride / video.fps
    starts = [first + int((place + 0.5) / number * (count - STRETCH)) * seconds for place in range(number)]
    return [replace(view, video=part_of(video, start, start + STRETCH * seconds)) for start in starts]


def part_of(video: Video, start: float, end: float) -> Video:
    """Return the part of a video between two times in seconds."""
    return Video(video._source, replace(video.selection, start=start, end=end))


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
    boxes, hidden = (tracks.box - shift) * factors, tracks.presence <= PREDICTED_PRESENCE
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
