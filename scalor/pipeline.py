"""Whole videos, from the file to its tracks: what the command line and `import scalor` call.

>>> tracks = scalor.track("ants.mp4")

And with all files that the command writes:

>>> view = look_at(open_video("ants.mp4", Selection(region=(0, 0, 640, 480))))
>>> with ResultFolder("tracked", view.video.full_size, view.video.fps) as results:
...     health = track_video(load_for(view, "any"), view, results)
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from scalor import checkpoint
from scalor.health import Health
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Tracker
from scalor.outputs import ResultFolder
from scalor.tracking.follow import Streaming, follow, monitor_for
from scalor.tracking.view import VideoView, is_universal, look_at, slots_for
from scalor.tracks import Tracks, join_tracks
from scalor.video.reading import open_video
from scalor.video.selection import Selection

PROPOSING = 3
"""One in so many slots of universal weights may be filled in one frame after the first."""


def track(
    video: str | Path,
    weights: str | Path = "any",
    region: tuple[int, int, int, int] | None = None,
    start: float | None = None,
    end: float | None = None,
    stride: int | None = None,
    device: str = "auto",
    quiet: bool = False,
) -> Tracks:
    """Find and follow every object of a video, as `scalor track` does.

    Frames are those of the video, boxes in its pixels.

    >>> tracks = scalor.track("ants.mp4")
    >>> tracks = scalor.track("ants.mp4", weights="runs/ants", start=60, end=120)
    """
    config = checkpoint.read(checkpoint.find(weights)).config
    opened = open_video(video, Selection(region, start, end, stride or config.scene.stride))
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
    """A model with room for the objects of a video."""
    config = checkpoint.read(checkpoint.find(weights)).config
    tracker = checkpoint.load_tracker(weights, device, slots or slots_for(view, config.model, config.scene))
    if isinstance(tracker, SCALOR) and is_universal(config.scene):
        proposals = max(tracker.config.proposals, tracker.config.slots // PROPOSING)
        tracker.set_proposals(proposals)
    return tracker


def track_video(
    tracker: Streaming, view: VideoView, results: ResultFolder, quiet: bool = False, raw: bool = False
) -> Health | None:
    """Track every frame of the video and hand it to the results at once, with a progress bar unless `quiet`.

    Ids of models of a still camera are made to last, unless `raw`. Returns how far the tracks can be trusted, where
    that can be told.
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
    """In the words of the report of health. A motion that was followed is no trouble any more."""
    if view.camera is None:
        return None
    return "moving" if view.camera.moves and view.motion is None else "still"
