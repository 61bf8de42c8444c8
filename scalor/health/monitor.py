"""A report of health for a tracking run: how far its tracks can be trusted, found without labels while it runs.

>>> monitor = HealthMonitor(frame_size=(576, 768), fps=10, object_size=(80, 28))
>>> for frame, tracks in follow(tracker, video):
...     monitor.step(frame.index, foreground_of(frame), tracks)
>>> monitor.report(promised_frames=video.frames).verdict
'good'

Memory does not grow with the length of a video. docs/health.md tells what each measure means, and how often the
verdict was right where the truth is known.
"""

import math

import numpy as np
from jaxtyping import Bool

from scalor.errors import InputError
from scalor.health.covering import Covering
from scalor.health.facts import Facts
from scalor.health.judging import CAMERAS, judge
from scalor.health.lives import Lives
from scalor.health.report import Health
from scalor.tracks import Tracks

LIGHT_STEP = 0.05
"""Share of full brightness by which a frame's light differs from that before in a step of light: clouds and automatic
exposure take many frames for as much."""


class HealthMonitor:
    """Watches a tracking run frame by frame."""

    def __init__(
        self,
        frame_size: tuple[int, int],
        fps: float,
        object_size: tuple[float, float] | None = None,
        region: tuple[int, int, int, int] | None = None,
        size_limits: tuple[float, float] | None = None,
    ) -> None:
        """`frame_size`: height and width of the video's pictures; `object_size`: typical height and width that the
        tracker works with, if it has any; `region`: x0, y0, x1, y1 of the part that is tracked (none: all of it);
        `size_limits`: the least and the largest side that the tracker can give a box. All in pixels of the video."""
        check("frame_size", frame_size)
        check("fps", (fps,))
        if object_size is not None:
            check("object_size", object_size)
        height, width = frame_size
        self.region = (0, 0, width, height) if region is None else region
        x0, y0, x1, y1 = self.region
        check("region's height and width", (y1 - y0, x1 - x0))
        self.fps, self.size_limits = fps, size_limits
        self.covering = Covering((y1 - y0, x1 - x0), object_size)
        self.lives = Lives(self.region, fps)
        self.dropped = self.dropping_frames = self.light_steps = 0

    def step(
        self,
        number: int,
        foreground: Bool[np.ndarray, "h w"],
        tracks: Tracks,
        light: float | None = None,
        dropped: int = 0,
    ) -> None:
        """Watch one frame.

        `number` is its place in the video; `foreground` is where the region differs from the background, at any scale;
        `tracks` are those of this frame, in pixels of the video; `light` is how much brighter the whole picture is than
        the one before, in shares of full brightness; `dropped` counts detections for which no slot was left.
        """
        self.covering.step(foreground, tracks.box - np.array(self.region[:2] * 2))
        self.lives.step(number, tracks)
        self.light_steps += light is not None and abs(light) > LIGHT_STEP
        self.dropped += dropped
        self.dropping_frames += dropped > 0

    def facts(self) -> Facts:
        """What was counted so far."""
        cover, lives = self.covering, self.lives
        first = 0 if lives.first is None else lives.first
        return Facts(
            frames=cover.frames,
            seconds=(lives.last - first + 1) / self.fps,
            rows=cover.rows,
            moving_frames=cover.moving_frames,
            unseen_frames=cover.unseen_frames,
            foreground=ratio(cover.foreground, cover.area) or 0.0,
            most_foreground=cover.most_foreground,
            explained=ratio(cover.explained, cover.foreground),
            empty=ratio(cover.empty, cover.rows),
            fill=cover.fill.median(),
            pairs=cover.pairs,
            fitting=ratio(cover.fitting, cover.pairs),
            doubles=ratio(cover.doubles, cover.rows),
            object_size=cover.object_size,
            box_size=size_of(cover.box_height.median(), cover.box_width.median()),
            blob_size=size_of(cover.blob_height.median(), cover.blob_width.median()),
            size_limits=self.size_limits,
            ids=lives.ids,
            entered=lives.entered,
            appeared=lives.appeared,
            replaced=lives.replaced,
            jumps=lives.jumps,
            steps=lives.steps,
            life=lives.median_life(),
            crossing=lives.crossing(),
            light_steps=self.light_steps,
            dropped=self.dropped,
            dropping_frames=self.dropping_frames,
        )

    def report(
        self,
        promised_frames: int | None = None,
        camera: str | None = None,
        motion: float | None = None,
        stride: int = 1,
    ) -> Health:
        """The verdict and all measures. `promised_frames`: how many frames the file said that it has for this run;
        `camera`: "still", "shaking" or "moving", with its `motion` in pixels a frame, where either is known; `stride`:
        every so many frames of the video were tracked."""
        if camera not in (None, *CAMERAS):
            raise InputError(f"camera is {camera!r}: choose from {', '.join(CAMERAS)}.")
        return judge(self.facts(), promised_frames, camera, motion, stride)


def check(name: str, values: tuple[float, ...]) -> None:
    if not all(math.isfinite(value) and value > 0 for value in values):
        shown = " x ".join(str(value) for value in values)
        raise InputError(f"{name} is {shown}: give finite numbers above 0.")


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def size_of(height: float | None, width: float | None) -> tuple[float, float] | None:
    return None if height is None or width is None else (height, width)
