"""Whether the camera of a video moves, told from a few dozen frames within seconds."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from scalor.camera.aligning import Landmarks, align, corners_of, evened, find, identity, look_for, move, reduction
from scalor.video.reading import Video
from scalor.video.sources import Picture

PLACES = 24
"""Frames, spread over the video, that are compared with each other."""
PAIRS = 8
"""Places at which two neighbouring frames are compared."""
STILL = 1.0
"""Pixels of the reduced picture (480 along its longer side) that a frame may lie off and count as not moved. Cameras
that stand still gave up to 0.4 (eight videos, 24 frames each: sensor noise, compression, crowds, traffic); a shake by
one pixel either way gives 2."""
RESTING = 0.5
"""Nor has a camera moved if points at rest are this share of those that follow the motion: these may be a crowd."""
TOGETHER = 3.0
"""Nor if the points moved by less than so many times what they lie off each other: particles that move on their own
drift together by 0.2 to 1.2 times that; shaken by one pixel, four scenes gave 8 to 39 and an empty tank 2.3."""
ENOUGH_MATCHED = 1 / 3
"""Where fewer of the far frames have something in common, neighbouring frames decide: either the camera travels, or
nothing in the picture keeps its form (cells, bubbles)."""
FAR_MOVED = 0.1
"""Share of the far frames with something in common that must lie off, and at least two: one may be an error."""
NEAR_MOVED = 0.5
"""The same for neighbouring frames: a camera that travels hardly ever rests, but a bus may fill the picture twice."""


@dataclass(frozen=True)
class CameraCheck:
    """What comparing some frames tells about the camera. Shifts are in pixels of the video, averaged over the frame."""

    moves: bool
    matched: float
    """Share of the comparisons between far frames in which both showed the same scene."""
    far: tuple[float, float]
    """By how much far frames lie off each other: the median, and what 9 of 10 stay below. NaN where none matched."""
    near: tuple[float, float]
    """The same for neighbouring frames: the motion from frame to frame."""

    def describe(self) -> str:
        """What was found, in one sentence."""
        if np.isnan(self.far[0]) and np.isnan(self.near[0]):
            return "nothing in the picture keeps its place or form: the camera is taken to stand still"
        state = "the camera moves" if self.moves else "the camera stands still"
        parts = [
            f"{shift:.1f} px (median; 9 of 10 below {most:.1f} px) {when}"
            for (shift, most), when in ((self.near, "from frame to frame"), (self.far, "over the video"))
            if not np.isnan(shift)
        ]
        return f"{state}: {' and '.join(parts)}"


def check_camera(video: Video) -> CameraCheck:
    """Compare frames spread over the video, and some with their neighbours, to see whether the camera moves.

    >>> check_camera(open_video("drone.mp4")).moves
    True

    Takes seconds for a video of ten minutes whose file can be searched.
    """
    pictures = [Landmarks(evened(picture)) for picture in video.sample(PLACES)]
    half = len(pictures) // 2
    far = [_compare(*pair) for pair in pairwise(pictures)]
    far += [_compare(*pair) for pair in zip(pictures, pictures[half:], strict=False)] if half > 1 else []
    near = [_compare(Landmarks(evened(one)), Landmarks(evened(other))) for one, other in _neighbours(video)]
    return _judge(np.array(far), np.array(near), reduction(video.size))


def _judge(far: Float[np.ndarray, " M"], near: Float[np.ndarray, " N"], scale: float) -> CameraCheck:
    """`scale`: pixels of the reduced picture, in which the shifts are, for a pixel of the video."""
    matched = float(np.mean(~np.isnan(far))) if len(far) else 0.0
    moves = _lie_off(far, FAR_MOVED) if matched >= ENOUGH_MATCHED else _lie_off(near, NEAR_MOVED)
    return CameraCheck(moves, matched, _summary(far / scale), _summary(near / scale))


def _lie_off(shifts: Float[np.ndarray, " N"], share: float) -> bool:
    return bool(np.sum(shifts > STILL) >= max(2, share * np.sum(~np.isnan(shifts))))


def _summary(shifts: Float[np.ndarray, " N"]) -> tuple[float, float]:
    shifts = shifts[~np.isnan(shifts)]
    if not len(shifts):
        return float("nan"), float("nan")
    median, most = np.percentile(shifts, [50, 90])
    return float(median), float(most)


def _compare(one: Landmarks, other: Landmarks) -> float:
    """By how many pixels of the reduced picture the other one lies off; NaN where they have too little in common.

    A shift that is no sign of a moving camera is cut to what a still one may show.
    """
    match = align(one, other.grey, identity()) or find(one, other)
    if match is None:
        return float("nan")
    points = look_for(one, other.grey, identity())
    resting = np.sum(np.hypot(*(points.here - one.corners)[points.found].T) < STILL)
    height, width = other.grey.shape
    spots = np.concatenate([corners_of((height, width)), [[width / 2, height / 2]]])
    shift = float(np.hypot(*(move(match.similarity, spots) - spots).T).mean())
    moved = resting < RESTING * match.agreeing and shift > TOGETHER * match.scatter
    return shift if moved else min(shift, STILL)


def _neighbours(video: Video) -> list[tuple[Picture, Picture]]:
    """Pairs of frames that follow each other, spread over the video where it can be searched."""
    pictures = video.sample_runs(PAIRS, 2)
    return list(zip(pictures[::2], pictures[1::2], strict=False))
