"""Estimate the motion of a camera, in one pass over the video.

Every frame is aligned to a key frame, an earlier frame whose position is known. So errors do not accumulate
from frame to frame, and a camera that comes back is located where it was. A new key frame is added where no earlier one
shows enough of what is in view.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from scalor.camera.align import (
    MIN_POINTS,
    Grey,
    Landmarks,
    Match,
    Similarity,
    align,
    compose,
    evened,
    find,
    glance,
    identity,
    invert,
    move,
    zoom_of,
)
from scalor.camera.stabilise import CameraMotion, in_common_view
from scalor.errors import InputError
from scalor.video.reading import Video

MIN_OVERLAP = 0.6
"""Smallest share of a frame that a key frame must show, at about the same size, for the frame to be aligned to it."""
MIN_OVERLAP_OF_BLURRED = 0.45
"""The share below which a blurred frame becomes a key frame. It is smaller because blurred frames make poor key frames:
half a pixel of error instead of a twentieth."""
BLURRED_RATIO = 0.8
"""A frame with less than this share of a key frame's sharpness is blurred. A key frame that is blurred compared to a
frame aligned to it is replaced by that frame."""
FEW_POINTS = 36
"""Number of agreeing points below which a key frame is replaced by the current frame, because shadows move and cars
park. This must happen while the frame can still be located well."""
AGREEMENT_FRAMES = 5
"""Number of frames over which the agreement of a key frame's point is averaged (exponential moving average)."""
MIN_AGREEMENT = 0.3
"""Agreement above which a point is used. A point falls below it after six frames in which it is lost, and rises above
it when it is found again twice."""
SETTLED_FRAMES = 8
"""Smallest age in frames at which a key frame may be replaced because of FEW_POINTS. By then, moving objects are
distinguished from the background. The nearest key frame is also replaced after this many frames that could be aligned
to the previous frame but to no key frame."""
MAX_LOST_FRAMES = 25
"""Number of frames that could not be located (after a cut, or with the lens covered) before the scene counts as new."""
MAX_KEYS = 40
"""Largest number of key frames that are kept: about 10 MB. The least recently used one makes room for a new one."""
MAX_SEARCHED_KEYS = 8
"""Largest number of key frames in which a lost frame is searched for, the most recently used first."""
UNIT_GRID = np.stack(np.meshgrid(*[(np.arange(8) + 0.5) / 8] * 2), axis=-1).reshape(-1, 2)
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
        """Which landmarks belong to the background, as they were often found in their places."""
        trusted: np.ndarray = self.agreement > MIN_AGREEMENT
        return trusted

    def learn(self, match: Match) -> None:
        """Update the agreement of the points in view.

        It falls for points of objects that moved away, and rises for background points that are visible again.
        """
        seen = match.in_view
        self.agreement[seen] += (match.agreed[seen] - self.agreement[seen]) / AGREEMENT_FRAMES


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
        if len(picture.corners) < MIN_POINTS:
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
        if not self._widen(picture) and self.loose >= SETTLED_FRAMES:
            self.loose = 0
            self._nearest_key(self.place).become(picture, self.place, self.count)
        return True

    def _begin_again(self, picture: Landmarks) -> bool:
        """Start a new scene if no frame could be located for too long; it gets the position of the last one."""
        if self.loose < MAX_LOST_FRAMES or len(picture.corners) < MIN_POINTS:
            return False
        self.keys.clear()
        self._add_key(picture)
        return True

    def _lay_over_key(self, picture: Landmarks, guess: Similarity) -> bool:
        key = self._nearest_key(guess)
        guess = compose(invert(key.place), guess)
        return self._hold(key, align(key.landmarks, picture.grey, guess, key.trusted), picture)

    def _search(self, picture: Landmarks) -> bool:
        recent = sorted(self.keys, key=lambda key: -key.used)[:MAX_SEARCHED_KEYS]
        return any(self._hold(key, find(key.landmarks, picture, key.trusted), picture) for key in recent)

    def _hold(self, key: Key, match: Match | None, picture: Landmarks) -> bool:
        """Take the position given by the match, if there is one, and maintain the key frames."""
        if match is None:
            return False
        key.learn(match)
        self.place = compose(key.place, match.similarity)
        self.loose, self.lost, key.used = 0, False, self.count
        detail = picture.sharpness / key.landmarks.sharpness
        aged = match.agreeing < FEW_POINTS and self.count - key.since >= SETTLED_FRAMES
        if not self._widen(picture) and (detail > 1 / BLURRED_RATIO or (aged and detail > BLURRED_RATIO)):
            key.become(picture, self.place, self.count)
        return True

    def _widen(self, picture: Landmarks) -> bool:
        """Make the frame a key frame if no key frame shows enough of it; a blurred frame only if necessary."""
        key = self._nearest_key(self.place)
        blurred = picture.sharpness < BLURRED_RATIO * key.landmarks.sharpness
        if self._in_common(key, self.place) >= (MIN_OVERLAP_OF_BLURRED if blurred else MIN_OVERLAP):
            return False
        self._add_key(picture)
        return True

    def _nearest_key(self, place: Similarity) -> Key:
        """Return the first key frame that overlaps a frame at this position enough, or else the most."""
        shares = [self._in_common(key, place) for key in self.keys]
        return self.keys[int(np.argmax(np.minimum(shares, MIN_OVERLAP)))]

    def _in_common(self, key: Key, place: Similarity) -> float:
        """Return the share of a frame at this position that the key frame shows, reduced if their scales differ."""
        height, width = key.landmarks.grey.shape
        spots = UNIT_GRID * np.array([width, height])
        between = compose(invert(key.place), place)
        inside = np.all((move(between, spots) >= 0) & (move(between, spots) <= (width, height)), axis=1)
        zoom = zoom_of(between)
        return float(inside.mean()) * min(zoom, 1 / zoom)

    def _add_key(self, picture: Landmarks) -> None:
        """Make the frame a key frame, with its position taken as known from now on."""
        if len(self.keys) == MAX_KEYS:
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
