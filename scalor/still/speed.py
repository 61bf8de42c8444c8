"""Speed of the moving objects of a video, from the distances between blobs in consecutive frames."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from jaxtyping import Float

from scalor.still.blobs import Blobs, find_blobs
from scalor.still.foreground import ForegroundTest, clean_foreground
from scalor.still.still_background import StillBackground
from scalor.video import Video
from scalor.video.resize import resize
from scalor.video.sources import Frame

SPEED_PARTS, SPEED_PART_FRAMES = 3, 32
"""Number of parts of the video in which speeds are measured, and frames in each."""
SPEED_INTERVALS, MIN_MOVED_PIXELS = (1, 2, 4, 8), 2.0
"""Intervals in frames over which speeds are measured, and pixels that objects must move. The first interval in which
they move that far is used, or else the last."""


def find_speed(
    video: Video, background: StillBackground, test: ForegroundTest, size: tuple[float, float], gap: int
) -> float:
    """Return the median speed in pixels of the reduced frames per frame; 0 where it cannot be measured.

    The `size` is the height and width of a typical object, and `gap` the distance over which its pieces are joined, in
    pixels of the reduced frames. From one frame to the next, slow objects move by less than a pixel, which is not
    visible, so several intervals are tried.
    """
    height, width = background.samples[0].shape[:2]
    stretches = []
    for frames in stretches_of(video):
        small = background.resized((height, width))
        pictures = (resize(frame.picture, (height, width)) for frame in frames)
        masks = (clean_foreground(picture, small.at(picture), test) for picture in pictures)
        stretches.append([find_blobs(mask, gap) for mask in masks])
    speed = 0.0
    for step in SPEED_INTERVALS:
        pairs = [pair for row in stretches for pair in zip(row[:-step], row[step:], strict=True)]
        moved = np.concatenate([np.zeros(0), *(distances(*pair, size) for pair in pairs)])
        if len(moved) == 0:
            break
        speed = float(np.median(moved)) / step
        if speed * step >= MIN_MOVED_PIXELS:
            break
    return speed


def stretches_of(video: Video) -> Iterator[Iterator[Frame]]:
    """Yield runs of consecutive frames from several parts of a video.

    Of a video that is short or of unknown length, yield the first frames only.
    """
    total = video.frames or 0
    if total < 2 * SPEED_PARTS * SPEED_PART_FRAMES:
        yield islice(video, SPEED_PARTS * SPEED_PART_FRAMES)
        return
    first, seconds = video.selection.start or 0, total * video.selection.stride / video.fps
    for number in range(SPEED_PARTS):
        yield islice(video.selected(start=first + number * seconds / SPEED_PARTS), SPEED_PART_FRAMES)


def distances(before: Blobs, after: Blobs, size: tuple[float, float]) -> Float[np.ndarray, " M"]:
    """Return how far blobs of about an object's size have moved, by the nearest similar blob in the later frame."""
    large = before.select(before.size.prod(1) >= 0.3 * size[0] * size[1])
    if len(large.box) == 0 or len(after.box) == 0:
        return np.zeros(0)
    unlike = np.abs(np.log(after.size[None] / large.size[:, None])).max(-1) >= 0.2
    away = np.linalg.norm(after.centre[None] - large.centre[:, None], axis=-1)
    nearest: np.ndarray = np.where(unlike, np.inf, away).min(1)
    return nearest[nearest < min(size)]
