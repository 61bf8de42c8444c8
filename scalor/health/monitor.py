"""Health report of a tracking run, measured without labels during the run.

>>> monitor = HealthMonitor(frame_size=(576, 768), fps=10, object_size=(80, 28))
>>> for step in follow(tracker, view):
...     monitor.step(step.frame.index, step.foreground, step.in_view, step.brighter)
>>> monitor.report(promised_frames=view.video.promised).verdict
'good'

Memory does not grow with the length of the video. docs/health.md explains each measure, and reports how often the
verdict was right where the ground truth is known.
"""

import math

import numpy as np
from jaxtyping import Bool

from scalor.errors import InputError
from scalor.health.coverage import Coverage
from scalor.health.facts import Facts, Tally
from scalor.health.lifetimes import IdPosition, Lifetimes, LivingId
from scalor.health.rules import CAMERA_LEVELS, judge
from scalor.health.verdict import Health
from scalor.tracks import Tracks

LIGHT_STEP = 0.05
"""Smallest change of brightness between frames that counts as a sudden change of the light, as a share of full
brightness. Clouds and automatic exposure take many frames for the same change."""


class HealthMonitor:
    """Monitor that measures the health of a tracking run frame by frame."""

    def __init__(
        self,
        frame_size: tuple[int, int],
        fps: float,
        object_size: tuple[float, float] | None = None,
        region: tuple[int, int, int, int] | None = None,
        size_limits: tuple[float, float] | None = None,
    ) -> None:
        """Create a monitor. All lengths are in pixels of the video.

        Parameters
        ----------
        frame_size : tuple of int
            Height and width of a frame.
        fps : float
            Frames a second of the video.
        object_size : tuple of float, optional
            Typical height and width of an object that the tracker works with; None if it has none.
        region : tuple of int, optional
            x0, y0, x1, y1 of the tracked part of the frame. By default, the whole frame.
        size_limits : tuple of float, optional
            Smallest and largest side of a box that the tracker can report.
        """
        check("frame_size", frame_size)
        check("fps", (fps,))
        if object_size is not None:
            check("object_size", object_size)
        height, width = frame_size
        self.region = (0, 0, width, height) if region is None else region
        x0, y0, x1, y1 = self.region
        check("region's height and width", (y1 - y0, x1 - x0))
        self.fps, self.size_limits = fps, size_limits
        self.coverage = Coverage((y1 - y0, x1 - x0), object_size)
        self.lifetimes = Lifetimes(self.region, fps)
        self.dropped = self.dropping_frames = self.light_steps = 0

    def step(
        self,
        number: int,
        foreground: Bool[np.ndarray, "h w"],
        tracks: Tracks,
        light: float | None = None,
        dropped: int = 0,
    ) -> None:
        """Add one frame.

        Parameters
        ----------
        number : int
            Index of the frame in the video.
        foreground : array of bool
            Mask of the pixels of the region that differ from the background, at any scale.
        tracks : Tracks
            Tracks of this frame, in pixels of the video.
        light : float, optional
            Change of the mean brightness since the previous frame, as a share of full brightness.
        dropped : int
            Number of detections for which no slot was left.
        """
        self.coverage.step(foreground, tracks.box - np.array(self.region[:2] * 2))
        self.lifetimes.step(number, tracks)
        self.light_steps += light is not None and abs(light) > LIGHT_STEP
        self.dropped += dropped
        self.dropping_frames += dropped > 0

    def facts(self) -> Facts:
        """Return the counts so far."""
        cover, lives = self.coverage, self.lifetimes
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
        lacking: str | None = None,
    ) -> Health:
        """Return the verdict and all measures of the frames so far.

        Parameters
        ----------
        promised_frames : int, optional
            Number of frames that this run should read, by what the file says.
        camera : str, optional
            "still", "shaking" or "moving", where known.
        motion : float, optional
            Motion of the camera in pixels a frame, where known.
        stride : int
            Distance between tracked frames, in frames of the video.
        lacking : str, optional
            What the file lacks, in words, where its structure shows that it is cut short.

        Returns
        -------
        Health
            The report; its verdict is that of the worst measure.
        """
        if camera not in (None, *CAMERA_LEVELS):
            raise InputError(f"camera is {camera!r}: choose from {', '.join(CAMERA_LEVELS)}.")
        return judge(self.facts(), promised_frames, camera, motion, stride, lacking)


SAVED_CLASSES = (HealthMonitor, Coverage, Lifetimes, LivingId, IdPosition, Tally)
"""Classes that make up a monitor, which can be saved with `scalor.snapshots`."""


def check(name: str, values: tuple[float, ...]) -> None:
    """Raise an InputError unless all values are positive and finite."""
    if not all(math.isfinite(value) and value > 0 for value in values):
        shown = " x ".join(str(value) for value in values)
        raise InputError(f"{name} is {shown}: give finite numbers above 0.")


def ratio(part: float, whole: float) -> float | None:
    """Return `part / whole`, or None if `whole` is zero."""
    return part / whole if whole else None


def size_of(height: float | None, width: float | None) -> tuple[float, float] | None:
    """Return height and width as a pair, or None if either is unknown."""
    return None if height is None or width is None else (height, width)
