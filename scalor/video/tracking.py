"""A whole video tracked: one pass over its frames, in memory that does not grow with its length.

>>> tracks = scalor.track("ants.mp4", weights="runs/ants")

And with all files that the command writes:

>>> video = open_video("ants.mp4", Selection(region=(0, 0, 640, 480)))
>>> with ResultFolder("tracked", video.full_size, video.fps) as results:
...     track_video(scalor.load("shapes-md"), video, results)
"""

import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from scalor.config import Config, SceneConfig
from scalor.errors import InputError
from scalor.fitting.surveying import empty_scene
from scalor.interface import Tracker
from scalor.model.scalor import SCALOR
from scalor.outputs import ResultFolder
from scalor.perspective import sizes_at
from scalor.tracks import Tracks, join_tracks
from scalor.training import checkpoint
from scalor.video.identity import Identities, without_doubles
from scalor.video.lens import Lens
from scalor.video.reading import Video, open_video
from scalor.video.selection import Selection
from scalor.video.sharpening import Sharpener
from scalor.video.shrinking import shrunken_size
from scalor.video.sources import Frame, Picture

SPARSER = 4
"""Whole frames have so many times fewer objects for their size than clips, which are cut around objects."""


class Streaming(Protocol):
    """What tracks frame by frame: a model, or a classical tracker."""

    def stream(self, frames: Iterable[object]) -> Iterator[Tracks]: ...


def track(
    video: str | Path,
    weights: str | Path,
    region: tuple[int, int, int, int] | None = None,
    start: float | None = None,
    end: float | None = None,
    stride: int | None = None,
    device: str = "auto",
    quiet: bool = False,
) -> Tracks:
    """Every object of a video, as `scalor track` finds it: frames are those of the video, boxes in its pixels."""
    config = checkpoint.read(checkpoint.find(weights)).config
    opened = open_video(video, Selection(region, start, end, stride or config.scene.stride))
    tracker = checkpoint.load_tracker(weights, device, slots_for(config, opened))
    seen = []
    with tqdm(total=opened.frames, file=sys.stderr, unit="frame", leave=False, disable=quiet) as bar:
        for frame, tracks in follow(tracker, opened):
            seen.append(replace(tracks, frame=np.full_like(tracks.frame, frame.index)))
            bar.update()
    return join_tracks(seen)


def track_video(
    tracker: Streaming,
    video: Video,
    results: ResultFolder,
    quiet: bool = False,
    raw: bool = False,
) -> None:
    """Tracks every frame of the video and hands it to the results at once, with a progress bar unless `quiet`.

    Ids of models of a still camera are made to last, unless `raw`.
    """
    with tqdm(total=video.frames, file=sys.stderr, unit="frame", leave=False, disable=quiet) as bar:
        for frame, tracks in follow(tracker, video, results.masks, raw):
            results.add(frame.picture, frame.seconds, frame.index, tracks)
            bar.update()


def follow(tracker: Streaming, video: Video, masks: bool = False, raw: bool = False) -> Iterator[tuple[Frame, Tracks]]:
    """Every frame with its whole picture, and what was seen in it, in pixels of the original video."""
    lens = lens_for(tracker, video)
    tidy = None if raw else tidy_for(tracker, lens)
    waiting: deque[Frame] = deque()

    def frames() -> Iterator[Float[Tensor, "C h w"]]:
        for frame in video.whole_frames():
            waiting.append(frame)
            yield lens.to_frame(frame.picture)

    for tracks in stream(tracker, frames(), masks):
        frame, seen = waiting.popleft(), lens.to_original(tracks)
        yield frame, tidy.step(seen, frame.picture) if tidy else seen


def lens_for(tracker: Streaming, video: Video) -> Lens:
    """Through which the tracker looks at the video: a model, as it looked at the one that it was fitted to."""
    if not isinstance(tracker, SCALOR):
        return Lens(video.full_size, video.selection.region)
    scene = tracker.run.scene if tracker.run else SceneConfig()
    still = empty_scene(video) if tracker.config.still else None
    region, cell = video.selection.region, tracker.config.cell
    return Lens(video.full_size, region, cell, scene.scale, still, scene.contrast, scene.perspective)


class Tidy:
    """What a model of a still camera saw, made better frame by frame: no doubles, sharp boxes, ids that last."""

    def __init__(self, object_size: tuple[float, float], lens: Lens) -> None:
        """`object_size`: typical height and width, pixels of the video."""
        assert lens.still is not None
        self.object_size, self.lens = object_size, lens
        self.sharpen = None
        if lens.scale < 1:  # else the model saw all there is; what is small and faint would not stand out (docs/log.md)
            self.sharpen = Sharpener(lens.still, object_size, lens.corners[:2], lens.contrast)
        self.identities = Identities(object_size, lens.corners)

    def step(self, tracks: Tracks, picture: Picture) -> Tracks:
        seen = self.without_doubles(tracks)
        if self.sharpen:
            seen = self.without_doubles(self.sharpen(seen, picture))
        return self.identities.step(seen)

    def without_doubles(self, tracks: Tracks) -> Tracks:
        _, top, _, bottom = self.lens.corners
        row = tracks.box[:, 1::2].mean(1) - top
        times = sizes_at(row, bottom - top, self.lens.perspective)
        return without_doubles(tracks, times[:, None] * np.array(self.object_size[::-1]))


def tidy_for(tracker: Streaming, lens: Lens) -> Tidy | None:
    """Where the tracker needs it: a model of a camera that stands still."""
    if not (isinstance(tracker, SCALOR) and tracker.config.still):
        return None
    height, width = tracker.config.object_size
    return Tidy((height / lens.scale, width / lens.scale), lens)


def slots_for(config: Config[Any], video: Video) -> int | None:
    """How many objects to make room for in a whole video, of a model that was fitted to clips cut out of one."""
    if config.scene.kind != "footage":
        return None
    clips = math.prod(shrunken_size(video.size, config.scene.scale)) / math.prod(config.scene.frame)
    slots: int = math.ceil(config.model.slots * max(1.0, clips / SPARSER))
    return slots


def stream(tracker: Streaming, frames: Iterator[Tensor], masks: bool) -> Iterator[Tracks]:
    if not masks:
        return tracker.stream(frames)
    if not isinstance(tracker, Tracker):
        raise InputError(f"masks is true and the tracker a {type(tracker).__name__}, which has none: leave them out.")
    return tracker.stream(frames, masks=True)
