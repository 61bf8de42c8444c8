"""Alignment of two images of one scene by a similarity transform (shift, rotation, zoom).

Corner points of one image are tracked into the other one by optical flow. The similarity is the one that most of the
points agree on, so objects that move on their own have no influence as long as the background shows between them.

Coordinates are those of boxes: pixel i covers [i, i + 1), so its centre lies at i + 0.5.
"""

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32, UInt8

from scalor.errors import without_extra

Similarity = Float[np.ndarray, "2 3"]
"""Matrix [[a, -b, c], [b, a, d]] that maps (x, y, 1) to (x', y')."""
Points = Float[np.ndarray, "N 2"]
Grey = UInt8[np.ndarray, "h w"]

ALIGNED_SIDE = 480
"""Longer side in pixels to which images are reduced. Corner points reach a tenth of a pixel there, which is half a
pixel of a full-HD image, and a frame takes a few milliseconds."""
NORMALISATION_WINDOW = 31
"""Side in pixels of the window in which brightness and contrast are normalised. Flicker and shadows are larger and
leave no trace. Corners are smaller and stay."""
MIN_CONTRAST = 6.0
"""Contrast in grey levels below which an image is not amplified. Noise of a sensor and of compression is about 2 to
4."""
MAX_CORNERS = 250
"""Largest number of corner points of an image. It leaves some tens where the scene is mostly hidden. With 400, the
error is 0.03 instead of 0.04 pixels and the time is half as much again."""
MIN_CORNER_DISTANCE = 1 / 48
"""Smallest distance between corner points, as a share of the image's longer side. It spreads the points over the image,
where they would crowd on the strongest texture. It is at least 5 pixels, about what a point needs around it."""
UNUSED_BORDER = 6
"""Width in pixels of the image border in which no point is used."""
MAX_ROUND_TRIP_ERROR = 0.7
"""Largest forward-backward error of a tracked point, in pixels. A point that is not found again in the other direction
was not the same point."""
MAX_POINT_ERROR = 1.5
"""Largest error in pixels of a point that agrees with a similarity: the error of a point (up to half a pixel) plus what
a scene with some depth adds."""
FIT_ERRORS = (0.3, 3.0)
"""The similarity is fitted to points with errors below this many pixels or this many times the median error, whichever
is larger. Otherwise objects that move by a pixel from frame to frame would bias it."""
MIN_POINTS = 12
"""Smallest number of agreeing points. Fewer may agree by chance."""
MIN_SHARE_IN_VIEW = 0.2
"""Smallest share of the points in view that must agree with a similarity. A scene that is half hidden by a crowd still
gives 0.4 and more; images of different scenes give below 0.1."""
MIN_SHARE_OF_FOUND = 0.4
"""Smallest share of the points found again that must agree with a similarity. Where a scene shows between moving
objects it is 0.45 to 1. Particles that all move on their own agree with some similarity by chance and give 0.3."""
MAX_DESCRIPTOR_DISTANCE = 64
"""Largest Hamming distance between ORB descriptors of one point, out of 256 bits. Those of different points differ by
about 128."""
MAX_ZOOM = 4.0
"""Largest change of size; a similarity with a larger one is an error."""


def opencv() -> ModuleType:
    """Return OpenCV, which is imported only when camera motion is requested."""
    try:
        import cv2
    except ImportError as error:
        raise without_extra("following a moving camera", "opencv-python-headless") from error
    return cv2


def identity() -> Similarity:
    """Return the similarity that moves no point."""
    return np.eye(2, 3)


def compose(second: Similarity, first: Similarity) -> Similarity:
    """Return the similarity that applies the first one and then the second one."""
    composed: np.ndarray = second[:, :2] @ first
    composed[:, 2] += second[:, 2]
    return composed


def invert(similarity: Similarity) -> Similarity:
    """Return the similarity that moves points back."""
    back = np.linalg.inv(similarity[:, :2])
    return np.column_stack([back, -back @ similarity[:, 2]])


def move(similarity: Similarity, points: Points) -> Points:
    """Apply a similarity to points."""
    moved: np.ndarray = points @ similarity[:, :2].T + similarity[:, 2]
    return moved


def zoom_of(similarity: Similarity) -> float:
    """Return the factor by which a similarity enlarges."""
    return float(np.hypot(similarity[0, 0], similarity[1, 0]))


def corners_of(size: tuple[int, int]) -> Points:
    """Return the corners of an image of this height and width."""
    height, width = size
    return np.array([[0, 0], [width, 0], [width, height], [0, height]], float)


def for_pixels(similarity: Similarity) -> Similarity:
    """Return the similarity for coordinates in which the centre of pixel i is i, as OpenCV warps images."""
    half = np.full(2, 0.5)
    return np.column_stack([similarity[:, :2], move(similarity, half[None])[0] - half])


def reduction(size: tuple[int, int]) -> float:
    """Return the scale to which an image of this height and width is reduced."""
    return min(1.0, ALIGNED_SIDE / max(size))


def evened(picture: UInt8[np.ndarray, "H W 3"]) -> Grey:
    """Return the image reduced, in grey, and with the same brightness and contrast everywhere."""
    cv2 = opencv()
    height, width = picture.shape[:2]
    scale = reduction((height, width))
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    if scale < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    values: Float32[np.ndarray, "h w"] = grey.astype(np.float32)
    mean = cv2.blur(values, (NORMALISATION_WINDOW, NORMALISATION_WINDOW))
    spread = np.sqrt(
        np.maximum(cv2.blur(values * values, (NORMALISATION_WINDOW, NORMALISATION_WINDOW)) - mean * mean, 0)
    )
    even: Grey = np.clip((values - mean) / (spread + MIN_CONTRAST) * 40 + 128, 0, 255).astype(np.uint8)
    return even


@dataclass(frozen=True)
class Landmarks:
    """A normalised image with its corner points, to which other images are aligned."""

    grey: Grey

    @cached_property
    def corners(self) -> Points:
        """X and y of the corner points."""
        apart = max(5, MIN_CORNER_DISTANCE * max(self.grey.shape))
        found = opencv().goodFeaturesToTrack(self.grey, MAX_CORNERS, qualityLevel=0.01, minDistance=apart, blockSize=5)
        return np.zeros((0, 2)) if found is None else found.reshape(-1, 2).astype(float) + 0.5

    @cached_property
    def sharpness(self) -> float:
        """Amount of detail, which is about halved when the image is blurred by motion."""
        return float(opencv().Laplacian(self.grey, opencv().CV_32F).std())

    @cached_property
    def coarse(self) -> Float32[np.ndarray, "h w"]:
        """The image at a quarter of its width and height."""
        height, width = self.grey.shape
        size = max(8, width // 4), max(8, height // 4)
        small: np.ndarray = opencv().resize(self.grey, size, interpolation=opencv().INTER_AREA)
        return small.astype(np.float32)

    @cached_property
    def descriptors(self) -> tuple[Points, UInt8[np.ndarray, "N 32"]]:
        """Points that can be found anywhere in another image, and their appearance (ORB)."""
        found, codes = opencv().ORB_create(nfeatures=600, fastThreshold=10).detectAndCompute(self.grey, None)
        if codes is None:
            return np.zeros((0, 2)), np.zeros((0, 32), np.uint8)
        return np.array([point.pt for point in found]) + 0.5, codes


@dataclass(frozen=True)
class Match:
    """The alignment of an image to another one, with measures of its reliability."""

    similarity: Similarity
    """Similarity from the image to the other one."""
    in_view: Bool[np.ndarray, " N"]
    """Which of the other image's corner points should be visible in the image."""
    agreed: Bool[np.ndarray, " N"]
    """Which corner points are found where the similarity predicts them."""
    scatter: float
    """Median error of the points that agree, in pixels."""

    @property
    def agreeing(self) -> int:
        """Number of points that agree."""
        return int(self.agreed.sum())

    @property
    def share(self) -> float:
        """Share of the points in view that agree."""
        return self.agreeing / max(1, int(self.in_view.sum()))


def align(
    landmarks: Landmarks, grey: Grey, guess: Similarity, trusted: Bool[np.ndarray, " N"] | None = None
) -> Match | None:
    """Return the alignment of an image to landmarks near a guess, or None if it is uncertain.

    The guess may be off by some 40 pixels. The similarity is the one that most of the `trusted` corner points agree on;
    with None, all corner points are trusted.
    """
    match = None
    for _ in range(2):
        match = _align_once(landmarks, grey, guess, trusted)
        if match is None or _distance(match.similarity, guess, grey.shape) < 3:
            break
        # Corners were compared under a wrong rotation and zoom. Repeat with the improved guess.
        guess = match.similarity
    return match


def glance(before: Landmarks, after: Landmarks) -> Similarity:
    """Return the approximate shift from an image to the one before it, by phase correlation.

    It is a guess for `align` and works up to half the width of an image.
    """
    cv2 = opencv()
    height, width = before.coarse.shape
    window = cv2.createHanningWindow((width, height), cv2.CV_32F)
    shift, _ = cv2.phaseCorrelate(after.coarse, before.coarse, window)
    return np.column_stack([np.eye(2), np.array(shift) * before.grey.shape[::-1] / (width, height)])


def find(landmarks: Landmarks, picture: Landmarks, trusted: Bool[np.ndarray, " N"] | None = None) -> Match | None:
    """Return the alignment of an image to landmarks, however far apart they are, or None if it is uncertain."""
    cv2 = opencv()
    (there, codes_there), (here, codes_here) = landmarks.descriptors, picture.descriptors
    if min(len(there), len(here)) < MIN_POINTS:
        return None
    pairs = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(codes_here, codes_there)
    pairs = [(pair.queryIdx, pair.trainIdx) for pair in pairs if pair.distance < MAX_DESCRIPTOR_DISTANCE]
    if len(pairs) < MIN_POINTS:
        return None
    mine, theirs = np.array(pairs).T
    guess = _most_agreed(here[mine], there[theirs], 2 * MAX_POINT_ERROR)
    # Points of similar appearance give a guess only. The corner points decide.
    return None if guess is None else align(landmarks, picture.grey, guess, trusted)


@dataclass(frozen=True)
class Found:
    """The corner points of landmarks, tracked into an image."""

    here: Points
    """Positions in the image, valid for the points that were found."""
    in_view: Bool[np.ndarray, " N"]
    """Which points should be visible in the image."""
    found: Bool[np.ndarray, " N"]
    """Which points were found."""


def look_for(landmarks: Landmarks, grey: Grey, guess: Similarity) -> Found:
    """Track the corner points of landmarks into an image, from a guess of the similarity to the landmarks."""
    cv2 = opencv()
    back_to_picture = invert(guess)
    here = move(back_to_picture, landmarks.corners)
    in_view = _inside(here, grey.shape)
    if in_view.sum() < MIN_POINTS:
        return Found(here, in_view, np.zeros_like(in_view))
    height, width = landmarks.grey.shape
    seen = cv2.warpAffine(grey, for_pixels(guess), (width, height), flags=cv2.INTER_LINEAR, borderValue=128)
    enough = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 15, 0.02)
    options: dict[str, Any] = {"winSize": (15, 15), "maxLevel": 3, "criteria": enough}
    start = (landmarks.corners[in_view] - 0.5).astype(np.float32)
    there, good, _ = cv2.calcOpticalFlowPyrLK(landmarks.grey, seen, start, None, **options)
    back, good_back, _ = cv2.calcOpticalFlowPyrLK(seen, landmarks.grey, there, None, **options)
    here[in_view] = move(back_to_picture, there.astype(float) + 0.5)
    found = in_view.copy()
    found[in_view] = (good[:, 0] > 0) & (good_back[:, 0] > 0) & (np.abs(back - start).max(1) < MAX_ROUND_TRIP_ERROR)
    return Found(here, in_view, found & _inside(here, grey.shape))


def _align_once(
    landmarks: Landmarks, grey: Grey, guess: Similarity, trusted: Bool[np.ndarray, " N"] | None
) -> Match | None:
    seen = look_for(landmarks, grey, guess)
    asked = seen.in_view if trusted is None else seen.in_view & trusted
    heard = asked & seen.found
    similarity = _most_agreed(seen.here[heard], landmarks.corners[heard], MAX_POINT_ERROR)
    if similarity is None:
        return None
    error = np.hypot(*(move(similarity, seen.here) - landmarks.corners).T)
    agreed = seen.found & (error < MAX_POINT_ERROR)
    agreeing = np.sum(agreed & asked)
    if agreeing < max(MIN_POINTS, MIN_SHARE_IN_VIEW * asked.sum(), MIN_SHARE_OF_FOUND * heard.sum()):
        return None
    return Match(similarity, seen.in_view, agreed, float(np.median(error[agreed])))


def _most_agreed(here: Points, there: Points, within: float) -> Similarity | None:
    """Return the similarity from `here` to `there` that takes the most points to within `within` pixels (RANSAC)."""
    cv2 = opencv()
    if len(here) < MIN_POINTS:
        return None
    similarity: Similarity | None
    similarity, agree = cv2.estimateAffinePartial2D(
        here, there, method=cv2.RANSAC, ransacReprojThreshold=within, maxIters=2000, confidence=0.999
    )
    if similarity is None or agree.sum() < MIN_POINTS or not 1 / MAX_ZOOM < zoom_of(similarity) < MAX_ZOOM:
        return None
    for _ in range(2):
        error = np.hypot(*(move(similarity, here) - there).T)
        close = error < min(within, max(FIT_ERRORS[0], FIT_ERRORS[1] * float(np.median(error[error < within]))))
        if close.sum() >= MIN_POINTS:
            similarity = _fitted(here[close], there[close])
    return similarity


def _fitted(here: Points, there: Points) -> Similarity:
    """Return the least-squares similarity. With points as complex numbers, there = turn * here + shift."""
    one, other = here @ (1, 1j), there @ (1, 1j)
    spread = one - one.mean()
    turn = np.vdot(spread, other - other.mean()) / np.vdot(spread, spread)
    shift = other.mean() - turn * one.mean()
    return np.array([[turn.real, -turn.imag, shift.real], [turn.imag, turn.real, shift.imag]])


def _inside(points: Points, size: tuple[int, ...]) -> Bool[np.ndarray, " N"]:
    inside: np.ndarray = np.all((points >= UNUSED_BORDER) & (points <= np.array(size[::-1]) - UNUSED_BORDER), axis=1)
    return inside


def _distance(one: Similarity, other: Similarity, size: tuple[int, ...]) -> float:
    """Return how far apart the two similarities move a corner of the image, at most."""
    corners = corners_of((size[0], size[1]))
    return float(np.abs(move(one, corners) - move(other, corners)).max())
