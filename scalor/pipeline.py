"""Tracking of whole videos, from the file to the tracks: used by the command line and by `import scalor`.

>>> tracks = scalor.track("ants.mp4")

Track a video and write all files that the command `scalor track` writes:

>>> found = track_to_folder("ants.mp4", "tracked", region=(0, 0, 640, 480))
>>> found.health.verdict, found.summary.objects
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from tqdm import tqdm

from scalor import fingerprints
from scalor.checkpoint import StrPath
from scalor.config import FPS
from scalor.health import Health, judge_frames
from scalor.health import monitor as health_monitor
from scalor.nn.interface import Model
from scalor.outputs import ResultFolder, Summary
from scalor.outputs.resuming import Resumption
from scalor.provenance import provenance_of
from scalor.tracker_choice import TrackerChoice, load_for
from scalor.tracking.follow import SAVED_CLASSES, Steps, Streaming, TrackingPass, follow, monitor_for
from scalor.tracking.video_view import VideoView, look_at
from scalor.tracks import Tracks, join_tracks
from scalor.video import segments
from scalor.video.reading import open_video
from scalor.video.sources import Selection

__all__ = ["TrackedVideo", "camera_state", "load_for", "track", "track_to_folder", "track_video"]

STATE_CLASSES = (*SAVED_CLASSES, *health_monitor.SAVED_CLASSES)
"""Classes of the state from which a stopped run is resumed."""


@dataclass(frozen=True)
class TrackingMethod:
    """How the frames of a video are tracked: one after the other, or in stretches joined afterwards."""

    name: str
    """Its name, which differs if the results may."""
    steps: Callable[[Streaming, VideoView, bool, bool], Steps]
    """Return the steps for a tracker, a video, masks or not, and raw tracks or not."""


IN_ONE_PIECE = TrackingMethod("in one piece", TrackingPass)


@dataclass(frozen=True)
class TrackedVideo:
    """A video that was tracked into a folder."""

    summary: Summary
    """The files, and what they hold."""
    view: VideoView
    """The video, and what was measured in it before tracking."""
    health: Health | None
    """How far the tracks can be trusted; None if the video has no background to compare with."""
    seconds: float
    """Time of the tracking, without the survey before it."""
    frames_before: int = 0
    """Number of frames that an earlier run, which was stopped, had tracked."""


def track(
    video: str | Path | ArrayLike,
    weights: StrPath | Model = "any",
    region: tuple[int, int, int, int] | None = None,
    start: float | None = None,
    end: float | None = None,
    stride: int | None = None,
    device: str | torch.device = "auto",
    quiet: bool = False,
    fps: float = FPS,
    *,
    masks: bool = False,
    raw: bool = False,
    slots: int | None = None,
    object_size: tuple[float, float] | None = None,
) -> Tracks:
    """Track every object of a video, as the command `scalor track` does.

    Parameters
    ----------
    video : str, Path or array
        A video file, a folder or pattern of images, a TIFF stack, a .npy or .npz file, or an array or CPU tensor:
        uint8, or floats in [0, 1], of shape [T, H, W, 3] or [T, 3, H, W].
    weights : str, Path or Model, default "any"
        A shipped name, a run folder, a checkpoint file, a loaded model, or the name of a classical tracker, such as
        "classical-motion". The default weights are universal: they need no training on the video.
    region : tuple of int, optional
        x0, y0, x1, y1 of the part of the picture to track in, in pixels; x1 and y1 are the first ones outside. Default:
        the whole picture.
    start, end : float, optional
        Seconds from the first frame. Frames before `start` and frames from `end` on are left out.
    stride : int, optional
        Track every n-th frame. Default: the stride of the weights' training scenes.
    device : str, default "auto"
        `cpu`, `cuda`, `cuda:1`, or `auto` (the GPU if there is one, otherwise the CPU). A loaded model stays where it
        is.
    quiet : bool, default False
        Hide the progress bar.
    fps : float, default 10
        Frames per second of images and arrays, which hold no times.
    masks : bool, default False
        Also return the visible mask of every object, one picture of booleans per row.
    raw : bool, default False
        Skip post-processing: the model's own boxes and ids.
    slots : int, optional
        The largest number of objects at once. Default: chosen by what the video shows.
    object_size : tuple of float, optional
        Typical height and width of an object, pixels of the video. Default: measured.

    Returns
    -------
    Tracks
        One row per object and frame. `frame` counts the frames of the video from 0, and boxes are in pixels of the
        video.

    Raises
    ------
    InputError
        If the video or the weights cannot be read, or if parameters exclude each other.

    Examples
    --------
    >>> tracks = scalor.track("ants.mp4")
    >>> tracks = scalor.track("ants.mp4", weights="runs/ants", start=60, end=120)
    """
    choice = TrackerChoice(weights, object_size, slots, masks, raw, device)
    opened = open_video(video, Selection(region, start, end, choice.stride if stride is None else stride), fps)
    view = look_at(opened, object_size, camera_may_move=choice.still)
    seen: list[Tracks] = []
    with progress(view, quiet) as bar:
        for step in follow(choice.load(view), view, masks, raw):
            seen.append(step.tracks.at(step.frame.index, step.frame.seconds))
            bar.update()
    return join_tracks(seen)


def track_to_folder(
    video: str | Path | ArrayLike,
    out: str | Path,
    weights: StrPath | Model = "any",
    region: tuple[int, int, int, int] | None = None,
    start: float | None = None,
    end: float | None = None,
    stride: int | None = None,
    device: str | torch.device = "auto",
    quiet: bool = False,
    fps: float = FPS,
    *,
    masks: bool = False,
    raw: bool = False,
    slots: int | None = None,
    object_size: tuple[float, float] | None = None,
    facts: Mapping[str, object] | None = None,
    restart: bool = False,
    replace_unfinished: bool = False,
    on_frame: Callable[[int, int | None], None] | None = None,
    method: TrackingMethod = IN_ONE_PIECE,
) -> TrackedVideo:
    """Track a video and write all result files, in memory that does not grow with its length.

    A run that was stopped or killed is resumed when the call is repeated, and ends with the same files.

    Parameters
    ----------
    video, weights, region, start, end, stride, device, quiet, fps, masks, raw, slots, object_size
        As for `track`.
    out : str or Path
        Folder for the results. It is created if necessary.
    facts : mapping, optional
        Origin of the results, for the report. Default: video, weights, command, commit and date.
    restart : bool, default False
        Start from the first frame, even if a stopped run could be resumed.
    replace_unfinished : bool, default False
        Start from the first frame if a stopped run had other options. By default, that is an InputError.
    on_frame : callable, optional
        Receives, after each frame, the number of frames so far and, if it is known, the number of all.
    method : TrackingMethod, optional
        How the frames are tracked. Default: one after the other.

    Returns
    -------
    TrackedVideo
        The files, the measurements of the video, and the health report.

    Examples
    --------
    >>> found = scalor.track_to_folder("ants.mp4", "tracked")
    >>> print(found.health.verdict)
    """
    choice = TrackerChoice(weights, object_size, slots, masks, raw, device)
    stride = choice.stride if stride is None else stride
    opened = open_video(video, Selection(region, start, end, stride), fps)
    file = [video] if isinstance(video, str | Path) else []
    facts = facts or provenance_of(str(file[0]) if file else opened.name, choice.name)
    options = {
        "region": region,
        "start": start,
        "end": end,
        "stride": stride,
        "fps": fps,
        "masks": masks,
        "raw": raw,
        "slots": slots,
        "object size": object_size,
        "way of tracking": method.name,
        "device": kind_of(device),
    }
    key = run_key(video, choice, options)
    resume = Resumption(key, STATE_CLASSES, restart, replace_unfinished)
    with ResultFolder(
        out, opened.full_size, opened.fps, stride=stride, masks=masks, facts=facts, inputs=file, resume=resume
    ) as results:
        view = look_at(opened, object_size, camera_may_move=choice.still)
        tracker = choice.load(view)
        begun, before = time.monotonic(), results.frames
        steps = method.steps(tracker, view, masks, raw)
        results.health = write_steps(steps, tracker, view, results, quiet, on_frame)
        seconds = time.monotonic() - begun
    return TrackedVideo(results.summary, view, results.health, seconds, before)


def kind_of(device: str | torch.device) -> str:
    """Return the kind of device that is used, "cpu" or "cuda"; one of several GPUs is as good as another."""
    if str(device) == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return str(device).partition(":")[0]


def run_key(video: str | Path | ArrayLike, choice: TrackerChoice, options: Mapping[str, object]) -> dict[str, str]:
    """Return all that the results of a run depend on, by name."""
    return {
        "video": fingerprints.of_video(video),
        "weights": choice.fingerprint,
        "version of scalor": fingerprints.of_code(),
        **{name: str(value) for name, value in options.items()},
    }


def track_video(
    tracker: Streaming, view: VideoView, results: ResultFolder, quiet: bool = False, raw: bool = False
) -> Health | None:
    """Track every frame of a video and write each frame to the results as soon as it is tracked; see `write_steps`.

    Tracks of models for a still camera are post-processed so that ids last, unless `raw` is true.
    """
    return write_steps(TrackingPass(tracker, view, results.masks, raw), tracker, view, results, quiet)


def write_steps(
    steps: Steps,
    tracker: Streaming,
    view: VideoView,
    results: ResultFolder,
    quiet: bool = False,
    on_frame: Callable[[int, int | None], None] | None = None,
) -> Health | None:
    """Write every frame of a video with its tracks to the results.

    A progress bar is shown unless `quiet` is true. Return the health report, which says how far the tracks can be
    trusted. If the video has no background to compare with, the report lists only frames that the file promises and
    that could not be read; it is None if there are none.
    """
    video = view.video
    monitor = monitor_for(tracker, view)
    if results.saved is not None:
        steps.restore(results.saved["tracking"])
        monitor = results.saved["monitor"]
    with progress(view, quiet, results.frames) as bar:
        for step in steps:
            frame = step.frame
            results.add(frame.picture, frame.seconds, frame.index, step.tracks)
            if monitor is not None and step.foreground is not None:
                monitor.step(frame.index, step.foreground, step.in_view, step.brighter, step.in_view.dropped)
            bar.update()
            if on_frame is not None:
                on_frame(results.frames, view.video.frames)
            if results.resume is not None and results.frames % segments.SEGMENT == 0:
                state = steps.save()
                if state is not None:
                    results.save({"tracking": state, "monitor": monitor})
    if monitor is None:
        return judge_frames(results.frames, video.promised, video.lacking)
    return monitor.report(video.promised, camera_state(view), stride=video.selection.stride, lacking=video.lacking)


def progress(view: VideoView, quiet: bool, initial: int = 0) -> "tqdm[Any]":
    """Return a progress bar over the frames of a video, of which some were tracked before."""
    return tqdm(total=view.video.frames, initial=initial, file=sys.stderr, unit="frame", leave=False, disable=quiet)


def camera_state(view: VideoView) -> str | None:
    """Return "moving" or "still", as the health report calls it, or None if the camera was not checked.

    A camera whose motion is compensated counts as still.
    """
    if view.camera is None:
        return None
    return "moving" if view.camera.moves and view.motion is None else "still"
