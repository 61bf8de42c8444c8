"""A video of a moving camera as a still camera would show it: every frame at its position in one common view.

>>> motion = estimate_motion(video)
>>> steady = stabilise(video, motion)
>>> Background.of(steady)

The parts of the view that a frame does not show are filled from other frames, so that nothing moves in them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from scalor.camera.motion import CameraMotion
from scalor.video.reading import Video
from scalor.video.selection import Selection
from scalor.video.sources import Frame, Picture

MOSAIC_FRAMES, FEWEST_FRAMES, MOST_BYTES = 24, 6, 2**29
"""Largest and smallest number of frames, spread over the video, whose median is the mosaic, and their largest memory in
bytes, which limits the number in between."""
ROWS = 64
"""Rows of the view that are sorted at once."""


@dataclass(frozen=True)
class StabilisedSource:
    """The common view of a video as a source of frames."""

    video: Video
    motion: CameraMotion
    mosaic: Picture
    """Image of the background for the parts of the view that a frame does not show."""

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
        return None  # it is only read sequentially

    def frames(self, selection: Selection) -> Iterator[Frame]:
        """Yield the frames of the video at their positions, with the mosaic around them.

        A stride larger than that of the video skips frames.
        """
        every = max(1, selection.stride // self.video.selection.stride)
        for frame in islice(self.video.whole_frames(), 0, None, every):
            yield replace(frame, picture=self.picture(frame))

    def near(self, times: Iterable[float], selection: Selection, run: int = 1) -> Iterator[Picture]:
        """Yield nothing: the view is only read sequentially."""
        return iter(())

    def picture(self, frame: Frame) -> Picture:
        """Return one frame at its position in the view."""
        view, valid = self.motion.to_view(frame.index, frame.picture)
        return np.where(valid[..., None], view, self.mosaic)


def stabilise(video: Video, motion: CameraMotion) -> Video:
    """Return the video in the view in which its scene stands still."""
    source = StabilisedSource(video, motion, mosaic_of(video, motion))
    return Video(source, Selection(stride=video.selection.stride))


def mosaic_of(video: Video, motion: CameraMotion) -> Picture:
    """Return the median, at each pixel of the view, of the frames that show it; black where none does."""
    height, width = motion.view_size
    count = max(FEWEST_FRAMES, min(MOSAIC_FRAMES, MOST_BYTES // (4 * height * width)))
    chosen = sorted(set(motion.indices[np.linspace(0, len(motion.indices) - 1, count).round().astype(int)].tolist()))
    views, valid = np.zeros((len(chosen), height, width, 3), np.uint8), np.zeros((len(chosen), height, width), bool)
    for frame in video.whole_frames():
        if frame.index in chosen:
            place = chosen.index(frame.index)
            views[place], valid[place] = motion.to_view(frame.index, frame.picture)
    mosaic = np.zeros(views.shape[1:], np.uint8)
    for top in range(0, len(mosaic), ROWS):
        rows = slice(top, top + ROWS)
        inside = valid[:, rows, :, None]
        ordered = np.sort(np.where(inside, views[:, rows], 255), axis=0)  # pixels that are not shown come last
        middle = np.maximum(inside.sum(0) - 1, 0) // 2
        median = np.take_along_axis(ordered, np.broadcast_to(middle, ordered.shape[1:])[None], 0)[0]
        mosaic[rows] = np.where(inside.any(0), median, 0)
    return mosaic
