"""Whether the camera of a video moves, and its motion.

`check_camera` answers the first question within seconds, from a few dozen frames. `estimate_motion` reads the whole
video once. Every frame is aligned to a key frame, an earlier frame whose position is known. So errors do not accumulate
from frame to frame, and a camera that comes back is located where it was. A new key frame is added where no earlier one
shows enough of what is in view.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

from scalor.camera.align import (
    ENOUGH_POINTS,
    Grey,
    Landmarks,
    Match,
    Similarity,
    align,
    compose,
    corners_of,
    evened,
    find,
    glance,
    identity,
    invert,
    look_for,
    move,
    reduction,
    zoom_of,
)
from scalor.camera.stabilise import CameraMotion, in_common_view
from scalor.errors import InputError
from scalor.video.pixels import Picture
from scalor.video.reading import Video

ENOUGH_IN_COMMON = 0.6
"""Smallest share of a frame that a key frame must show, at about the same size, for the frame to be aligned to it."""
ENOUGH_IN_NEED = 0.45
"""The share below which a blurred frame becomes a key frame. It is smaller because blurred frames make poor key frames:
half a pixel of error instead of a twentieth."""
BLURRED = 0.8
"""A frame with less than this share of a key frame's sharpness is blurred. A key frame that is blurred compared to a
frame aligned to it is replaced by that frame."""
AGED = 36
"""Number of agreeing points below which a key frame is replaced by the current frame, because shadows move and cars
park. This must happen while the frame can still be located well."""
MEMORY = 5
"""Number of frames over which the agreement of a key frame's point is averaged (exponential moving average)."""
TRUSTED = 0.3
"""Agreement above which a point is used. A point falls below it after six frames in which it is lost, and rises above
it when it is found again twice."""
SETTLED = 8
"""Smallest age in frames at which a key frame may be replaced because of AGED. By then, moving objects are
distinguished from the background. The nearest key frame is also replaced after this many frames that could be aligned
to the previous frame but to no key frame."""
PATIENCE = 25
"""Number of frames that could not be located (after a cut, or with the lens covered) before the scene counts as new."""
MOST_KEYS = 40
"""Largest number of key frames that are kept: about 10 MB. The least recently used one makes room for a new one."""
MOST_SEARCHED = 8
"""Largest number of key frames in which a lost frame is searched for, the most recently used first."""
SPOTS = np.stack(np.meshgrid(*[(np.arange(8) + 0.5) / 8] * 2), axis=-1).reshape(-1, 2)
"""Grid of points over an image whose sides are 1."""


def estimate_motion(video: Video, progress: Callable[[int], object] | None = None) -> CameraMotion:
    """Estimate the camera's motion over the selected frames of a video.

    >>> video = open_video("drone.mp4")
    >>> motion = estimate_motion(video)
    >>> motion.describe()
    'the camera moves: up to 212 px sideways and 14 px up or down, 1.3 degrees, zoom 1.00 to 1.25'

    `progress` is called with 1 after each frame. Memory grows by some 60 bytes for each frame.
    """
    estimator = MotionEstimator()
    places, indices, failed = [], [], []
    small = (1, 1)
    for frame in video:
        grey = evened(frame.picture)
        small = grey.shape
        place = estimator.step(grey)
        failed.append(place is None)
        places.append(_four_numbers(place))
        indices.append(frame.index)
        if progress is not None:
            progress(1)
    if not indices:
        raise InputError(f"{video.name} has no frame in the selected time: choose a longer one.")
    sure = ~np.array(failed)
    filled = _fill_gaps(np.array(places), sure)
    enlarged = _in_pixels_of(video.size, small, filled)
    return in_common_view(enlarged, np.array(indices), video.size, ~sure)


class Key:
    """A key frame: a frame whose position is known, and which of its corner points belong to the background."""

    def __init__(self, landmarks: Landmarks, place: Similarity, now: int) -> None:
        self.used = now
        """Number of the last frame that was aligned to it."""
        self.become(landmarks, place, now)

    def become(self, landmarks: Landmarks, place: Similarity, now: int) -> None:
        """Replace the key frame by frame `now`."""
        self.landmarks, self.place, self.since = landmarks, place, now
        self.agreement = np.ones(len(landmarks.corners))
        """How often each point was found in its place, as an exponential moving average."""

    @property
    def trusted(self) -> Bool[np.ndarray, " N"]:
        trusted: np.ndarray = self.agreement > TRUSTED
        return trusted

    def learn(self, match: Match) -> None:
        """Update the agreement of the points in view.

        It falls for points of objects that moved away, and rises for background points that are visible again.
        """
        seen = match.in_view
        self.agreement[seen] += (match.agreed[seen] - self.agreement[seen]) / MEMORY


class MotionEstimator:
    """Estimator of each frame's position relative to the first frame, in pixels of the reduced images."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.place = identity()
        self.before: Landmarks | None = None
        self.count = 0
        self.loose = 0
        """Frames since one was aligned to a key frame."""
        self.lost = False
        """Whether no frame has been aligned to a key frame since one that could not be located."""

    def step(self, grey: Grey) -> Similarity | None:
        """Return the similarity from the frame to the first one, or None if it could not be located."""
        self.count += 1
        picture = Landmarks(grey)
        sure = self._locate(picture) if self.keys else self._begin(picture)
        self.before = picture
        return self.place if sure else None

    def _begin(self, picture: Landmarks) -> bool:
        """Start with the first frame that has enough corner points (videos may begin black)."""
        if len(picture.corners) < ENOUGH_POINTS:
            return False
        self._add_key(picture)
        return True

    def _locate(self, picture: Landmarks) -> bool:
        assert self.before is not None
        guesses = (compose(self.place, glance(self.before, picture)), self.place)
        if any(self._lay_over_key(picture, guess) for guess in guesses):
            return True
        step = align(self.before, picture.grey, identity())
        if step is not None:
            place = compose(self.place, step.similarity)
            if self._lay_over_key(picture, place):
                return True
            self.place = place
        self.loose += 1
        if (step is None or self.lost) and self._search(picture):
            return True
        self.lost = self.lost or step is None
        if self.lost:
            return self._begin_again(picture)
        if not self._widen(picture) and self.loose >= SETTLED:
            self.loose = 0
            self._nearest_key(self.place).become(picture, self.place, self.count)
        return True

    def _begin_again(self, picture: Landmarks) -> bool:
        """Start a new scene if no frame could be located for too long; it gets the position of the last one."""
        if self.loose < PATIENCE or len(picture.corners) < ENOUGH_POINTS:
            return False
        self.keys.clear()
        self._add_key(picture)
        return True

    def _lay_over_key(self, picture: Landmarks, guess: Similarity) -> bool:
        key = self._nearest_key(guess)
        guess = compose(invert(key.place), guess)
        return self._hold(key, align(key.landmarks, picture.grey, guess, key.trusted), picture)

    def _search(self, picture: Landmarks) -> bool:
        recent = sorted(self.keys, key=lambda key: -key.used)[:MOST_SEARCHED]
        return any(self._hold(key, find(key.landmarks, picture, key.trusted), picture) for key in recent)

    def _hold(self, key: Key, match: Match | None, picture: Landmarks) -> bool:
        """Take the position given by the match, if there is one, and maintain the key frames."""
        if match is None:
            return False
        key.learn(match)
        self.place = compose(key.place, match.similarity)
        self.loose, self.lost, key.used = 0, False, self.count
        detail = picture.sharpness / key.landmarks.sharpness
        aged = match.agreeing < AGED and self.count - key.since >= SETTLED
        if not self._widen(picture) and (detail > 1 / BLURRED or (aged and detail > BLURRED)):
            key.become(picture, self.place, self.count)
        return True

    def _widen(self, picture: Landmarks) -> bool:
        """Make the frame a key frame if no key frame shows enough of it; a blurred frame only if necessary."""
        key = self._nearest_key(self.place)
        blurred = picture.sharpness < BLURRED * key.landmarks.sharpness
        if self._in_common(key, self.place) >= (ENOUGH_IN_NEED if blurred else ENOUGH_IN_COMMON):
            return False
        self._add_key(picture)
        return True

    def _nearest_key(self, place: Similarity) -> Key:
        """Return the first key frame that overlaps a frame at this position enough, or else the most."""
        shares = [self._in_common(key, place) for key in self.keys]
        return self.keys[int(np.argmax(np.minimum(shares, ENOUGH_IN_COMMON)))]

    def _in_common(self, key: Key, place: Similarity) -> float:
        """Return the share of a frame at this position that the key frame shows, reduced if their scales differ."""
        height, width = key.landmarks.grey.shape
        spots = SPOTS * np.array([width, height])
        between = compose(invert(key.place), place)
        inside = np.all((move(between, spots) >= 0) & (move(between, spots) <= (width, height)), axis=1)
        zoom = zoom_of(between)
        return float(inside.mean()) * min(zoom, 1 / zoom)

    def _add_key(self, picture: Landmarks) -> None:
        """Make the frame a key frame, with its position taken as known from now on."""
        if len(self.keys) == MOST_KEYS:
            self.keys.remove(min(self.keys, key=lambda key: key.used))
        self.keys.append(Key(picture, self.place, self.count))
        self.loose, self.lost = 0, False


def _four_numbers(place: Similarity | None) -> tuple[float, float, float, float]:
    return (1.0, 0.0, 0.0, 0.0) if place is None else (place[0, 0], place[1, 0], place[0, 2], place[1, 2])


def _fill_gaps(numbers: Float[np.ndarray, "T 4"], sure: Bool[np.ndarray, " T"]) -> Float[np.ndarray, "T 2 3"]:
    """Return the positions as matrices, linearly interpolated for frames that could not be located."""
    if sure.any():
        times = np.arange(len(numbers))
        numbers = np.stack([np.interp(times, times[sure], column[sure]) for column in numbers.T], axis=1)
    a, b, x, y = numbers.T
    return np.stack([np.stack([a, -b, x], axis=1), np.stack([b, a, y], axis=1)], axis=1)


def _in_pixels_of(
    size: tuple[int, int], small: tuple[int, int], places: Float[np.ndarray, "T 2 3"]
) -> Float[np.ndarray, "T 2 3"]:
    """Convert positions of reduced images to positions of the frames themselves.

    Height and width were rounded, so their scales differ slightly. The nearest similarity is used, which maps the
    frame's centre to the same point.
    """
    times = np.array(size[::-1]) / small[::-1]
    middle = np.array(size[::-1]) / 2
    turned = places[:, :, :2] * times[:, None] / times
    a, b = (turned[:, 0, 0] + turned[:, 1, 1]) / 2, (turned[:, 1, 0] - turned[:, 0, 1]) / 2
    turn = np.stack([np.stack([a, -b], axis=1), np.stack([b, a], axis=1)], axis=1)
    shift = (turned - turn) @ middle + places[:, :, 2] * times
    return np.concatenate([turn, shift[:, :, None]], axis=2)


PLACES = 24
"""Number of frames, spread over the video, that are compared with each other."""
PAIRS = 8
"""Number of places in the video at which two consecutive frames are compared."""
STILL = 1.0
"""Largest shift of a still camera, in pixels of the reduced image (480 along its longer side). Still cameras gave up to
0.4 (eight videos, 24 frames each: sensor noise, compression, crowds, traffic). A shake by one pixel either way gives
2."""
RESTING = 0.5
"""A camera counts as still if the ratio of points at rest to points that follow the motion is at least this. The moving
points may be a crowd."""
TOGETHER = 3.0
"""A camera also counts as still if the shift is at most this many times the scatter of the points. Particles that move
on their own drift together by 0.2 to 1.2 times their scatter. Shaken by one pixel, four scenes gave 8 to 39 and an
empty tank 2.3."""
ENOUGH_MATCHED = 1 / 3
"""Smallest share of far frames that must match for them to decide. Otherwise consecutive frames decide: either the
camera travels, or nothing in the image keeps its shape (cells, bubbles)."""
FAR_MOVED = 0.1
"""Share of the matching far frames that must be shifted if the camera moves. At least two must be, because one may be
an error."""
NEAR_MOVED = 0.5
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
    pictures = [Landmarks(evened(picture)) for picture in video.sample(PLACES)]
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
    """Return the shift between two images in pixels of the reduced image; NaN if they have too little in common.

    A shift that is no sign of a moving camera is limited to that of a still one (STILL).
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
    """Return pairs of consecutive frames, spread over the video if its file supports seeking."""
    pictures = video.sample_runs(PAIRS, 2)
    return list(zip(pictures[::2], pictures[1::2], strict=False))
