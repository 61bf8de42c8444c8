"""Tracking of whole videos, from the file to the tracks: used by the command line and by `import scalor`.

>>> tracks = scalor.track("ants.mp4")

Track a video and write all files that the command `scalor track` writes:

>>> view = look_at(open_video("ants.mp4", Selection(region=(0, 0, 640, 480))))
>>> with ResultFolder("tracked", view.video.full_size, view.video.fps) as results:
...     health = track_video(load_for(view, "any"), view, results)
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from tqdm import tqdm

from scalor import checkpoint
from scalor.config import FPS
from scalor.health import Health
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Tracker
from scalor.outputs import ResultFolder
from scalor.tracking.follow import Streaming, follow, monitor_for
from scalor.tracking.view import VideoView, is_universal, look_at, slots_for
from scalor.tracks import Tracks, join_tracks
from scalor.video.reading import open_video
from scalor.video.sources import Selection

SLOTS_PER_PROPOSAL = 3
"""Slots per proposal of universal weights: slots / SLOTS_PER_PROPOSAL objects or more may appear in a frame after the
first."""


def track(
    video: str | Path | ArrayLike,
    weights: str | Path = "any",
    region: tuple[int, int, int, int] | None = None,
    start: float | None = None,
    end: float | None = None,
    stride: int | None = None,
    device: str = "auto",
    quiet: bool = False,
    fps: float = FPS,
) -> Tracks:
    """Track every object of a video, as the command `scalor track` does.

    Parameters
    ----------
    video : str, Path or array
        A video file, a folder or pattern of images, a TIFF stack, a .npy or .npz file, or an array or CPU tensor:
        uint8, or floats in [0, 1], of shape [T, H, W, 3] or [T, 3, H, W].
    weights : str or Path, default "any"
        A shipped name, a run folder or a checkpoint file. The default weights are universal: they need no training on
        the video.
    region : tuple of int, optional
        x0, y0, x1, y1 of the part of the picture to track in, in pixels; x1 and y1 are the first ones outside. Default:
        the whole picture.
    start, end : float, optional
        Seconds from the first frame. Frames before `start` and frames from `end` on are left out.
    stride : int, optional
        Track every n-th frame. Default: the stride of the weights' training scenes.
    device : str, default "auto"
        `cpu`, `cuda`, `cuda:1`, or `auto` (the GPU if there is one, otherwise the CPU).
    quiet : bool, default False
        Hide the progress bar.
    fps : float, default 10
        Frames per second of images and arrays, which hold no times.

    Returns
    -------
    Tracks
        One row per object and frame. `frame` counts the frames of the video from 0, and boxes are in pixels of the
        video.

    Examples
    --------
    >>> tracks = scalor.track("ants.mp4")
    >>> tracks = scalor.track("ants.mp4", weights="runs/ants", start=60, end=120)
    """
    config = checkpoint.read(checkpoint.find(weights)).config
    opened = open_video(video, Selection(region, start, end, stride or config.scene.stride), fps)
    view = look_at(opened, camera_may_move=getattr(config.model, "still", False))
    tracker = load_for(view, weights, device)
    seen = []
    with tqdm(total=view.video.frames, file=sys.stderr, unit="frame", leave=False, disable=quiet) as bar:
        for step in follow(tracker, view):
            seen.append(replace(step.tracks, frame=np.full_like(step.tracks.frame, step.frame.index)))
            bar.update()
    return join_tracks(seen)


def load_for(
    view: VideoView, weights: str | Path, device: str | torch.device = "auto", slots: int | None = None
) -> Tracker:
    """Load a model with enough slots for the objects of a video.

    `slots` sets the number of slots; by default it follows from the video.
    """
    config = checkpoint.read(checkpoint.find(weights)).config
    tracker = checkpoint.load_tracker(weights, device, slots or slots_for(view, config.model, config.scene))
    if isinstance(tracker, SCALOR) and is_universal(config.scene):
        proposals = max(tracker.config.proposals, tracker.config.slots // SLOTS_PER_PROPOSAL)
        tracker.set_proposals(proposals)
    return tracker


def track_video(
    tracker: Streaming, view: VideoView, results: ResultFolder, quiet: bool = False, raw: bool = False
) -> Health | None:
    """Track every frame of a video and write each frame to the results as soon as it is tracked.

    Tracks of models for a still camera are post-processed so that ids last, unless `raw` is true. A progress bar is
    shown unless `quiet` is true. Return the health report, which says how far the tracks can be trusted, or None if
    the video has no background to compare with.
    """
    video = view.video
    monitor = monitor_for(tracker, view)
    with tqdm(total=video.frames, file=sys.stderr, unit="frame", leave=False, disable=quiet) as bar:
        for step in follow(tracker, view, results.masks, raw):
            frame = step.frame
            results.add(frame.picture, frame.seconds, frame.index, step.tracks)
            if monitor is not None and step.foreground is not None:
                monitor.step(frame.index, step.foreground, step.in_view, step.brighter, step.in_view.dropped)
            bar.update()
    if monitor is None:
        return None
    return monitor.report(video.promised, camera_state(view), stride=video.selection.stride)


def camera_state(view: VideoView) -> str | None:
    """Return "moving" or "still", as the health report calls it, or None if the camera was not checked.

    A camera whose motion is compensated counts as still.
    """
    if view.camera is None:
        return None
    return "moving" if view.camera.moves and view.motion is None else "still"
