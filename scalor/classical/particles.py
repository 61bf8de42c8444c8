"""Adapter to trackpy, which detects and links round bright spots (method of Crocker and Grier)."""

import importlib
import math
import warnings
from typing import Any

import numpy as np

from scalor.config import require
from scalor.errors import InputError
from scalor.model.frames import check_frames
from scalor.tracking.linking import GATE, PATIENCE
from scalor.tracks import Tracks

APART = 0.3
"""Smallest distance of two spots, in object sizes. It was chosen on clips of the training split."""


def trackpy_tracks(frames: object, object_size: tuple[float, float]) -> Tracks:
    """Track a video or a batch of videos with trackpy.

    Parameters
    ----------
    frames : array or tensor
        Pixels in [0, 1], of shape [T, 3, H, W] or [B, T, 3, H, W].
    object_size : tuple of float
        Height and width of every box, in pixels. trackpy gives centres only.
    """
    sides = len(object_size) == 2 and all(0 < side < math.inf for side in object_size)
    require(sides, "object_size", object_size, "give a height and a width, positive and finite")
    videos = check_frames(frames, cell=(1, 1)).amax(2).cpu().numpy()  # [B, T, H, W], the brightest channel
    rows = np.concatenate([particles(video, clip, object_size) for clip, video in enumerate(videos)])
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    clip, frame, number = rows[:, :3].T.astype(int)
    centre, half = rows[:, 3:], np.array(object_size[::-1]) / 2
    first = np.full((clip.max(initial=0) + 1, number.max(initial=0) + 1), len(videos[0]))
    np.minimum.at(first, (clip, number), frame)
    return Tracks(
        clip=clip,
        frame=frame,
        id=number,
        box=np.concatenate([centre - half, centre + half], 1),
        presence=np.ones(len(rows)),
        discovered=first[clip, number] == frame,
        size=(videos.shape[2], videos.shape[3]),
    )


def particles(video: np.ndarray, clip: int, object_size: tuple[float, float]) -> np.ndarray:
    """Track one video of shape [T, H, W] and return rows of clip, frame, particle number, x and y."""
    trackpy = load_trackpy()
    unit = math.sqrt(object_size[0] * object_size[1])
    diameter = tuple(2 * max(1, round((side - 1) / 2)) + 1 for side in object_size)  # trackpy requires odd numbers
    apart = tuple(APART * side for side in object_size)
    margin = max(diameter)  # trackpy ignores spots near the border
    wider = np.pad(video, ((0, 0), (margin, margin), (margin, margin)))
    with warnings.catch_warnings(action="ignore"):  # warnings about frames without objects
        found = trackpy.batch(wider, diameter, separation=apart, processes=1)
    if not len(found):
        return np.zeros((0, 5))
    # In a crowd, the adaptive search range shrinks: linking would take too long otherwise.
    linked = trackpy.link(found, GATE * unit, memory=PATIENCE, adaptive_stop=0.1 * unit, adaptive_step=0.9)
    middle = linked[["x", "y"]].to_numpy() + 0.5 - margin  # trackpy's pixel i is centred on i
    number = linked[["frame", "particle"]].to_numpy()
    return np.column_stack([np.full(len(linked), clip), number, middle])


def load_trackpy() -> Any:
    """Import trackpy, or raise an InputError if it is not installed."""
    try:
        trackpy = importlib.import_module("trackpy")
    except ImportError as error:
        raise InputError("trackpy is not installed: install it with `pip install 'scalor[trackpy]'`.") from error
    trackpy.quiet()
    return trackpy
