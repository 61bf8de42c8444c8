"""Check whether the camera of a video moves, by comparing some of its frames."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from scalor.camera.align import Landmarks, align, corners_of, evened, find, identity, look_for, move, reduction
from scalor.video import Video
from scalor.video.pixels import Picture

COMPARED_FRAMES = 24
"""Number of frames, spread over the video, that are compared with each other."""
COMPARED_PAIRS = 8
"""Number of places in the video at which two consecutive frames are compared."""
MAX_STILL_SHIFT = 1.0
"""Largest shift of a still camera, in pixels of the reduced image (480 along its longer side). Still cameras gave up to
0.4 (eight videos, 24 frames each: sensor noise, compression, crowds, traffic). A shake by one pixel either way gives
2."""
MIN_REST_RATIO = 0.5
"""A camera counts as still if the ratio of points at rest to points that follow the motion is at least this. The moving
points may be a crowd."""
DRIFT_RATIO = 3.0
"""A camera also counts as still if the shift is at most this many times the scatter of the points. Particles that move
on their own drift together by 0.2 to 1.2 times their scatter. Shaken by one pixel, four scenes gave 8 to 39 and an
empty tank 2.3."""
MIN_MATCHED_SHARE = 1 / 3
"""Smallest share of far frames that must match for them to decide. Otherwise consecutive frames decide: either the
camera travels, or nothing in the image keeps its shape (cells, bubbles)."""
FAR_SHIFTED_SHARE = 0.1
"""Share of the matching far frames that must be shifted if the camera moves. At least two must be, because one may be
an error."""
NEAR_SHIFTED_SHARE = 0.5
"""Share of the matching consecutive frames that must be shifted if the camera moves, and at least two. A camera that
travels hardly ever rests, but a bus may fill the image twice."""


@dataclass(frozen=True)
class CameraCheck:
    """Result of the camera check.

    Shifts are in pixels of the video, averaged over the frame.
    """

    moves: bool
    """Whether the camera moves."""
    matched: float
    """Share of the comparisons between far frames in which both showed the same scene."""
    far: tuple[float, float]
    """Median and 90th percentile of the shift between far frames; NaN where none matched."""
    near: tuple[float, float]
    """Median and 90th percentile of the shift between consecutive frames; NaN where none matched."""

    def describe(self) -> str:
        """Return the result in one sentence."""
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
    """Compare frames spread over the video, and consecutive frames, to see whether the camera moves.

    >>> check_camera(open_video("drone.mp4")).moves
    True

    This takes seconds for a video of ten minutes in a file that supports seeking.
    """
    pictures = [Landmarks(evened(picture)) for picture in video.sample(COMPARED_FRAMES)]
    half = len(pictures) // 2
    far = [_compare(*pair) for pair in pairwise(pictures)]
    far += [_compare(*pair) for pair in zip(pictures, pictures[half:], strict=False)] if half > 1 else []
    near = [_compare(Landmarks(evened(one)), Landmarks(evened(other))) for one, other in _neighbours(video)]
    return _judge(np.array(far), np.array(near), reduction(video.size))


def _judge(far: Float[np.ndarray, " M"], near: Float[np.ndarray, " N"], scale: float) -> CameraCheck:
    """Decide whether the camera moves, from shifts in pixels of the reduced image.

    The `scale` is pixels of the reduced image per pixel of the video.
    """
    matched = float(np.mean(~np.isnan(far))) if len(far) else 0.0
    moves = _lie_off(far, FAR_SHIFTED_SHARE) if matched >= MIN_MATCHED_SHARE else _lie_off(near, NEAR_SHIFTED_SHARE)
    return CameraCheck(moves, matched, _summary(far / scale), _summary(near / scale))


def _lie_off(shifts: Float[np.ndarray, " N"], share: float) -> bool:
    return bool(np.sum(shifts > MAX_STILL_SHIFT) >= max(2, share * np.sum(~np.isnan(shifts))))


def _summary(shifts: Float[np.ndarray, " N"]) -> tuple[float, float]:
    shifts = shifts[~np.isnan(shifts)]
    if not len(shifts):
        return float("nan"), float("nan")
    median, most = np.percentile(shifts, [50, 90])
    return float(median), float(most)


def _compare(one: Landmarks, other: Landmarks) -> float:
    """Return the shift between two images in pixels of the reduced image; NaN if they have too little in common.

    A shift that is no sign of a moving camera is limited to that of a still one (MAX_STILL_SHIFT).
    """
    match = align(one, other.grey, identity()) or find(one, other)
    if match is None:
        return float("nan")
    points = look_for(one, other.grey, identity())
    resting = np.sum(np.hypot(*(points.here - one.corners)[points.found].T) < MAX_STILL_SHIFT)
    height, width = other.grey.shape
    spots = np.concatenate([corners_of((height, width)), [[width / 2, height / 2]]])
    shift = float(np.hypot(*(move(match.similarity, spots) - spots).T).mean())
    moved = resting < MIN_REST_RATIO * match.agreeing and shift > DRIFT_RATIO * match.scatter
    return shift if moved else min(shift, MAX_STILL_SHIFT)


def _neighbours(video: Video) -> list[tuple[Picture, Picture]]:
    """Return pairs of consecutive frames, spread over the video if its file supports seeking."""
    pictures = video.sample_runs(COMPARED_PAIRS, 2)
    return list(zip(pictures[::2], pictures[1::2], strict=False))
