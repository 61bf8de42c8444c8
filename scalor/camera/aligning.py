"""How two pictures of one scene lie over each other: the similarity (shift, rotation, zoom) that most of them follows.

Corner points of one picture are looked for in the other one; the similarity is the one that most of the points agree
on, so that things which move on their own do not matter as long as the scene shows between them.

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
"""Takes (x, y, 1) to (x', y'): [[a, -b, x], [b, a, y]]."""
Points = Float[np.ndarray, "N 2"]
Grey = UInt8[np.ndarray, "h w"]

LONG_SIDE = 480
"""Pixels. Pictures are reduced until their longer side has so many: a tenth of a pixel there, which corner points
reach, is half a pixel of a full-HD picture, and a frame takes a few milliseconds."""
WINDOW = 31
"""Pixels. Brightness and contrast are evened out within squares of this side, so that flicker and shadows, which are
larger, leave no trace, and corners, which are smaller, stay."""
FLOOR = 6.0
"""Grey levels. Contrast below this is not amplified: noise of a sensor and of compression is about 2 to 4."""
CORNERS = 250
"""Corner points of a picture: enough that some tens are left where the scene is mostly hidden. With 400 the error
is 0.03 instead of 0.04 pixels and the time half as much again."""
APART = 1 / 48
"""Distance between corner points as a share of the picture's longer side, so that they cover the picture instead of
crowding on its strongest texture; at least 5 pixels, about what a point needs around it."""
EDGE = 6
"""Pixels at the border of a picture in which no point is trusted."""
THERE_AND_BACK = 0.7
"""Pixels. A point that is not found again when looked for in the other direction was not the same point."""
AGREE = 1.5
"""Pixels by which a point may lie off and still follow the similarity: the error of a point (up to half a pixel) plus
what a scene with some depth adds."""
TIGHT = (0.3, 3.0)
"""The similarity is fitted to points that lie off by less than so many pixels or so many times the median error,
whichever is more. Things that move by a pixel from frame to frame would else drag it along."""
ENOUGH_POINTS = 12
"""Fewer points that agree may agree by chance."""
ENOUGH_SHARE = 0.2
"""Nor is a similarity trusted that less than this share of the points in view follows. Half hidden by a crowd, a scene
still gives 0.4 and more; pictures of different scenes give below 0.1."""
ENOUGH_OF_FOUND = 0.4
"""Nor one that less than this share of the points found again follows. Where a scene shows between moving things it is
0.45 to 1; particles that all move on their own, which follow some similarity by chance, give 0.3."""
ALIKE = 64
"""Bits of 256 by which descriptions (ORB) of one point may differ: unlike points differ by about 128."""
LARGEST_ZOOM = 4.0
"""A similarity that changes the size by more than this is an error."""


def opencv() -> ModuleType:
    """OpenCV, which is imported only when a camera's motion is asked for."""
    try:
        import cv2
    except ImportError as error:
        raise without_extra("following a moving camera", "opencv-python-headless") from error
    return cv2


def identity() -> Similarity:
    return np.eye(2, 3)


def compose(second: Similarity, first: Similarity) -> Similarity:
    """The first similarity, and then the second one."""
    composed: np.ndarray = second[:, :2] @ first
    composed[:, 2] += second[:, 2]
    return composed


def invert(similarity: Similarity) -> Similarity:
    back = np.linalg.inv(similarity[:, :2])
    return np.column_stack([back, -back @ similarity[:, 2]])


def move(similarity: Similarity, points: Points) -> Points:
    moved: np.ndarray = points @ similarity[:, :2].T + similarity[:, 2]
    return moved


def zoom_of(similarity: Similarity) -> float:
    """By how much it enlarges."""
    return float(np.hypot(similarity[0, 0], similarity[1, 0]))


def corners_of(size: tuple[int, int]) -> Points:
    """The corners of a picture of this height and width."""
    height, width = size
    return np.array([[0, 0], [width, 0], [width, height], [0, height]], float)


def for_pixels(similarity: Similarity) -> Similarity:
    """The same similarity for coordinates in which the centre of pixel i is i, as OpenCV warps pictures."""
    half = np.full(2, 0.5)
    return np.column_stack([similarity[:, :2], move(similarity, half[None])[0] - half])


def reduction(size: tuple[int, int]) -> float:
    """How much smaller a picture of this height and width is looked at."""
    return min(1.0, LONG_SIDE / max(size))


def evened(picture: UInt8[np.ndarray, "H W 3"]) -> Grey:
    """The picture reduced, grey, with the same brightness and contrast everywhere."""
    cv2 = opencv()
    height, width = picture.shape[:2]
    scale = reduction((height, width))
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    if scale < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    values: Float32[np.ndarray, "h w"] = grey.astype(np.float32)
    mean = cv2.blur(values, (WINDOW, WINDOW))
    spread = np.sqrt(np.maximum(cv2.blur(values * values, (WINDOW, WINDOW)) - mean * mean, 0))
    even: Grey = np.clip((values - mean) / (spread + FLOOR) * 40 + 128, 0, 255).astype(np.uint8)
    return even


@dataclass(frozen=True)
class Landmarks:
    """A picture, evened out, with its corner points: what other pictures are laid over."""

    grey: Grey

    @cached_property
    def corners(self) -> Points:
        apart = max(5, APART * max(self.grey.shape))
        found = opencv().goodFeaturesToTrack(self.grey, CORNERS, qualityLevel=0.01, minDistance=apart, blockSize=5)
        return np.zeros((0, 2)) if found is None else found.reshape(-1, 2).astype(float) + 0.5

    @cached_property
    def sharpness(self) -> float:
        """How much detail it shows; about half of what it was when the picture is blurred by motion."""
        return float(opencv().Laplacian(self.grey, opencv().CV_32F).std())

    @cached_property
    def coarse(self) -> Float32[np.ndarray, "h w"]:
        """A quarter of the width and height."""
        height, width = self.grey.shape
        size = max(8, width // 4), max(8, height // 4)
        small: np.ndarray = opencv().resize(self.grey, size, interpolation=opencv().INTER_AREA)
        return small.astype(np.float32)

    @cached_property
    def descriptors(self) -> tuple[Points, UInt8[np.ndarray, "N 32"]]:
        """Points that can be found wherever they lie in another picture, and what they look like (ORB)."""
        found, codes = opencv().ORB_create(nfeatures=600, fastThreshold=10).detectAndCompute(self.grey, None)
        if codes is None:
            return np.zeros((0, 2)), np.zeros((0, 32), np.uint8)
        return np.array([point.pt for point in found]) + 0.5, codes


@dataclass(frozen=True)
class Match:
    """How a picture lies over another one, and how sure that is."""

    similarity: Similarity
    """From the picture to the other one."""
    in_view: Bool[np.ndarray, " N"]
    """Which of the other one's corner points should show in the picture."""
    agreed: Bool[np.ndarray, " N"]
    """Which of them are found where the similarity says."""
    scatter: float
    """Pixels by which these lie off, the median."""

    @property
    def agreeing(self) -> int:
        return int(self.agreed.sum())

    @property
    def share(self) -> float:
        return self.agreeing / max(1, int(self.in_view.sum()))


def align(
    landmarks: Landmarks, grey: Grey, guess: Similarity, trusted: Bool[np.ndarray, " N"] | None = None
) -> Match | None:
    """The similarity from the picture to the landmarks, near a guess (some 40 pixels at most); None where unsure.

    It is the one that most of the `trusted` corner points agree on, or of all of them.
    """
    match = None
    for _ in range(2):
        match = _align_once(landmarks, grey, guess, trusted)
        if match is None or _distance(match.similarity, guess, grey.shape) < 3:
            break
        # Corners were compared under a wrong rotation and zoom: once more, now nearly right.
        guess = match.similarity
    return match


def glance(before: Landmarks, after: Landmarks) -> Similarity:
    """About the shift from a picture to the one before it: a guess for `align`, good for half a picture's width."""
    cv2 = opencv()
    height, width = before.coarse.shape
    window = cv2.createHanningWindow((width, height), cv2.CV_32F)
    shift, _ = cv2.phaseCorrelate(after.coarse, before.coarse, window)
    return np.column_stack([np.eye(2), np.array(shift) * before.grey.shape[::-1] / (width, height)])


def find(landmarks: Landmarks, picture: Landmarks, trusted: Bool[np.ndarray, " N"] | None = None) -> Match | None:
    """The similarity from the picture to the landmarks, however far they lie apart; None where unsure."""
    cv2 = opencv()
    (there, codes_there), (here, codes_here) = landmarks.descriptors, picture.descriptors
    if min(len(there), len(here)) < ENOUGH_POINTS:
        return None
    pairs = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(codes_here, codes_there)
    pairs = [(pair.queryIdx, pair.trainIdx) for pair in pairs if pair.distance < ALIKE]
    if len(pairs) < ENOUGH_POINTS:
        return None
    mine, theirs = np.array(pairs).T
    guess = _most_agreed(here[mine], there[theirs], 2 * AGREE)
    # What points that look alike agree on is a guess; the corner points have the last word.
    return None if guess is None else align(landmarks, picture.grey, guess, trusted)


@dataclass(frozen=True)
class Found:
    """Corner points of landmarks looked for in a picture."""

    here: Points
    """Where they lie in the picture, as far as they were found."""
    in_view: Bool[np.ndarray, " N"]
    """Which of them should show in it."""
    found: Bool[np.ndarray, " N"]
    """Which of them were found."""


def look_for(landmarks: Landmarks, grey: Grey, guess: Similarity) -> Found:
    """Look for the corner points of landmarks near where a guess of the similarity to them says."""
    cv2 = opencv()
    back_to_picture = invert(guess)
    here = move(back_to_picture, landmarks.corners)
    in_view = _inside(here, grey.shape)
    if in_view.sum() < ENOUGH_POINTS:
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
    found[in_view] = (good[:, 0] > 0) & (good_back[:, 0] > 0) & (np.abs(back - start).max(1) < THERE_AND_BACK)
    return Found(here, in_view, found & _inside(here, grey.shape))


def _align_once(
    landmarks: Landmarks, grey: Grey, guess: Similarity, trusted: Bool[np.ndarray, " N"] | None
) -> Match | None:
    seen = look_for(landmarks, grey, guess)
    asked = seen.in_view if trusted is None else seen.in_view & trusted
    heard = asked & seen.found
    similarity = _most_agreed(seen.here[heard], landmarks.corners[heard], AGREE)
    if similarity is None:
        return None
    error = np.hypot(*(move(similarity, seen.here) - landmarks.corners).T)
    agreed = seen.found & (error < AGREE)
    agreeing = np.sum(agreed & asked)
    if agreeing < max(ENOUGH_POINTS, ENOUGH_SHARE * asked.sum(), ENOUGH_OF_FOUND * heard.sum()):
        return None
    return Match(similarity, seen.in_view, agreed, float(np.median(error[agreed])))


def _most_agreed(here: Points, there: Points, within: float) -> Similarity | None:
    """The similarity from `here` to `there` that takes the most points to within so many pixels."""
    cv2 = opencv()
    if len(here) < ENOUGH_POINTS:
        return None
    similarity: Similarity | None
    similarity, agree = cv2.estimateAffinePartial2D(
        here, there, method=cv2.RANSAC, ransacReprojThreshold=within, maxIters=2000, confidence=0.999
    )
    if similarity is None or agree.sum() < ENOUGH_POINTS or not 1 / LARGEST_ZOOM < zoom_of(similarity) < LARGEST_ZOOM:
        return None
    for _ in range(2):
        error = np.hypot(*(move(similarity, here) - there).T)
        close = error < min(within, max(TIGHT[0], TIGHT[1] * float(np.median(error[error < within]))))
        if close.sum() >= ENOUGH_POINTS:
            similarity = _fitted(here[close], there[close])
    return similarity


def _fitted(here: Points, there: Points) -> Similarity:
    """The similarity with the least squared error: with points as complex numbers, there = turn * here + shift."""
    one, other = here @ (1, 1j), there @ (1, 1j)
    spread = one - one.mean()
    turn = np.vdot(spread, other - other.mean()) / np.vdot(spread, spread)
    shift = other.mean() - turn * one.mean()
    return np.array([[turn.real, -turn.imag, shift.real], [turn.imag, turn.real, shift.imag]])


def _inside(points: Points, size: tuple[int, ...]) -> Bool[np.ndarray, " N"]:
    inside: np.ndarray = np.all((points >= EDGE) & (points <= np.array(size[::-1]) - EDGE), axis=1)
    return inside


def _distance(one: Similarity, other: Similarity, size: tuple[int, ...]) -> float:
    """By how much the two move a corner of the picture apart, at most."""
    corners = corners_of((size[0], size[1]))
    return float(np.abs(move(one, corners) - move(other, corners)).max())
