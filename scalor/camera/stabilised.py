"""A video of a moving camera as one that stands still: every frame in its place in one common view.

>>> motion = estimate_motion(video)
>>> steady = stabilise(video, motion)
>>> Background.of(steady)

What a frame does not show of the view is filled with what other frames show there, so that nothing moves in it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from scalor.camera.motion import CameraMotion
from scalor.video.reading import Video
from scalor.video.selection import Selection
from scalor.video.sources import Frame, Picture

MOSAIC_FRAMES = 24
"""Frames, spread over the video, that the filling is the median of."""
ROWS = 64
"""Rows of the view that are sorted at once."""


@dataclass(frozen=True)
class StabilisedSource:
    """The common view of a video as a source of frames."""

    video: Video
    motion: CameraMotion
    mosaic: Picture
    """What the scene looks like, for what a frame does not show of it."""

    @property
    def name(self) -> str:
        return self.video.name

    @property
    def size(self) -> tuple[int, int]:
        return self.motion.view_size

    @property
    def fps(self) -> float:
        return self.video.fps

    @property
    def count(self) -> int | None:
        return None  # it is only read from beginning to end

    def frames(self, selection: Selection) -> Iterator[Frame]:
        """Every frame of the video in its place, with the mosaic around it."""
        for frame in self.video.whole_frames():
            yield replace(frame, picture=self.picture(frame))

    def near(self, times: Iterable[float], selection: Selection) -> Iterator[Picture]:
        return iter(())

    def picture(self, frame: Frame) -> Picture:
        """One frame in its place."""
        view, valid = self.motion.to_view(frame.index, frame.picture)
        return np.where(valid[..., None], view, self.mosaic)


def stabilise(video: Video, motion: CameraMotion) -> Video:
    """Show a video in the view in which its scene stands still."""
    return Video(StabilisedSource(video, motion, mosaic_of(video, motion)), Selection())


def mosaic_of(video: Video, motion: CameraMotion) -> Picture:
    """The median, at each pixel of the view, of the frames that show it; black where none does."""
    chosen = set(motion.indices[np.linspace(0, len(motion.indices) - 1, MOSAIC_FRAMES).round().astype(int)].tolist())
    shown = [motion.to_view(frame.index, frame.picture) for frame in video.whole_frames() if frame.index in chosen]
    views, valid = np.stack([view for view, _ in shown]), np.stack([inside for _, inside in shown])
    mosaic = np.zeros(views.shape[1:], np.uint8)
    for top in range(0, len(mosaic), ROWS):
        rows = slice(top, top + ROWS)
        inside = valid[:, rows, :, None]
        ordered = np.sort(np.where(inside, views[:, rows], 255), axis=0)  # what is not shown comes last
        middle = np.maximum(inside.sum(0) - 1, 0) // 2
        median = np.take_along_axis(ordered, np.broadcast_to(middle, ordered.shape[1:])[None], 0)[0]
        mosaic[rows] = np.where(inside.any(0), median, 0)
    return mosaic
