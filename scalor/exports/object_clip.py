"""A clip that follows one object: a square of the video around it, from its first box to its last."""

from math import ceil
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from scalor.errors import InputError
from scalor.exports.export_source import ExportSource
from scalor.video import Selection, VideoWriter, open_video

AROUND = 2.0
"""Side of the square, as a multiple of the object's longest side."""
SMALLEST = 256
"""Small squares are enlarged by a whole factor to at least this many pixels."""
STEADY_S = 0.6
"""The square follows the mean place of the object over this many seconds, so that the picture does not tremble."""


def write_clip(path: str | Path, source: ExportSource, id: int, around: float = AROUND) -> int:
    """Write a video that follows one object, and return its number of frames.

    Parameters
    ----------
    path : str or Path
        File name that ends in .mp4.
    source : ExportSource
        Tracks and their video; see `export_source`.
    id : int
        The object.
    around : float, default 2
        Side of the square as a multiple of the object's longest side. What lies outside the picture is black.

    Examples
    --------
    >>> frames = write_clip("clip_3.mp4", export_source("tracked"), id=3)
    """
    if not 1 <= around < np.inf:
        raise InputError(f"around is {around}: give a multiple of the object's size, from 1.")
    tracks = source.tracks.select(source.tracks.id == id)
    if not len(tracks):
        raise InputError(f"there is no track {id}: `scalor edit FOLDER log` and tracks.csv list the ids.")
    first, last = int(tracks.frame[0]), int(tracks.frame[-1])
    if source.about.is_predicted(last):
        raise InputError(f"the video does not hold the imagined frames of track {id}: a clip needs observed frames.")
    frames = np.array([frame for frame in source.times if first <= frame <= last])
    centres = steady(
        np.stack([np.interp(frames, tracks.frame, axis) for axis in tracks.centre.T], axis=1),
        round(STEADY_S * source.about.fps),
    )
    side = max(2, ceil(around * float((tracks.box[:, 2:] - tracks.box[:, :2]).max()) - 0.01))
    place = dict(zip(frames.tolist(), centres, strict=True))
    video = open_video(
        source.about.find_video(source.video), Selection(start=source.times[first]), source.about.video_fps
    )
    written = 0
    with VideoWriter(path, source.about.fps) as writer:
        for frame in video.whole_frames():
            if frame.picture.shape[:2] != source.about.size:
                height, width = source.about.size
                raise InputError(f"{video.name} is not {width} x {height} pixels: name the video with --video.")
            if frame.index in place:
                writer.write(enlarged(cropped(frame.picture, place[frame.index], side)))
                written += 1
            if frame.index >= last:
                break
        if written < len(place):
            raise InputError(f"{video.name} lacks {len(place) - written} frames of track {id}: name it with --video.")
    return written


def cropped(
    picture: UInt8[np.ndarray, "H W 3"], centre: Float[np.ndarray, "2"], side: int
) -> UInt8[np.ndarray, "s s 3"]:
    """Return the square of this side around a point, x and y; black where it leaves the picture."""
    x, y = np.round(centre - side / 2).astype(int).tolist()
    square = np.zeros((side, side, 3), np.uint8)
    height, width = picture.shape[:2]
    inside = picture[max(y, 0) : max(min(y + side, height), 0), max(x, 0) : max(min(x + side, width), 0)]
    top, left = max(-y, 0), max(-x, 0)
    square[top : top + inside.shape[0], left : left + inside.shape[1]] = inside
    return square


def enlarged(square: UInt8[np.ndarray, "s s 3"]) -> UInt8[np.ndarray, "S S 3"]:
    """Return the square, enlarged by the smallest whole factor that makes it large enough to look at."""
    factor = ceil(SMALLEST / len(square))
    return square.repeat(factor, axis=0).repeat(factor, axis=1)


def steady(places: Float[np.ndarray, "T 2"], window: int) -> Float[np.ndarray, "T 2"]:
    """Return means over about `window` places around each, over fewer at the ends."""
    reach = window // 2
    index = np.arange(len(places))
    near = np.minimum(reach, np.minimum(index, len(places) - 1 - index))
    sums = np.concatenate([np.zeros((1, 2)), np.cumsum(places, axis=0)])
    means: np.ndarray = (sums[index + near + 1] - sums[index - near]) / (2 * near + 1)[:, None]
    return means
