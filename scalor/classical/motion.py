"""Detect moving objects before a still camera by background subtraction.

The background is that of the whole video or, where frames arrive one by one, the median of earlier frames. All lengths
scale with the size of an object. The constants were chosen on the first 477 frames of PETS 2009 S2L1, view 1, by visual
inspection and by tracking scores.
"""

import math

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy import ndimage

from scalor.classical.detectors import SMALLEST, Labels, Picture, areas, boxes, connected, keep, means
from scalor.still.foreground import DEFAULT_TEST, ForegroundTest, close, coarseness, to_floats
from scalor.still.median import RunningBackground
from scalor.still.still_background import StillBackground
from scalor.tracking.kalman import Detections
from scalor.video.resize import downsample

PIECE = 0.02
"""Smallest area of a piece of an object, as a share of the area of a typical object's box."""
LARGEST = 1.3
"""Largest height and width of a single object, in typical heights and widths. Pieces within this size are joined."""
SEVERAL = 1.8
"""Height or width, in typical heights or widths, from which a blob is more than one object."""

SAME = 0.5
"""Distance of two centres, in typical widths and heights, up to which two expected boxes are one object. Both
directions must be within it."""

GHOST = 0.7
"""Ratio of the edge strength in the picture to that in the background below which a blob is a ghost: the trace that an
object has left in the background."""

Boxes = Float[np.ndarray, "N 4"]
Expected = Float[np.ndarray, "E 4"]
Small = Float[np.ndarray, "3 h w"]
"""A downsampled picture."""


class MotionDetector:
    """Detector of the moving objects of one video, frame by frame."""

    def __init__(
        self, size: tuple[float, float], background: StillBackground | None = None, test: ForegroundTest = DEFAULT_TEST
    ) -> None:
        """Create a detector for one video.

        Parameters
        ----------
        size : tuple of float
            Typical height and width of an object, in pixels.
        background : StillBackground, optional
            Background of the whole video. If None, the background is estimated from the frames so far.
        test : ForegroundTest
            Test that tells foreground from background.
        """
        self.coarse = coarseness(size)
        self.size = (size[0] / self.coarse, size[1] / self.coarse)
        self.test = test
        self.background = RunningBackground() if background is None else background
        self._empty: tuple[UInt8[np.ndarray, ...], Picture] | None = None

    def __call__(self, picture: Picture, expected: Expected) -> Detections:
        """Detect the objects of the next frame. `expected` are the predicted boxes of the known objects."""
        small = downsample(picture, self.coarse)
        labels = self.blobs(small, self._behind(picture, small))
        box, blob = apart(labels, expected / self.coarse, self.size)
        return Detections(box * self.coarse, means(small, labels)[blob])

    def _behind(self, picture: Picture, small: Small) -> Small:
        """Return the downsampled background of a picture, given the picture itself and downsampled."""
        if isinstance(self.background, RunningBackground):
            return self.background.at((small * 255).astype(np.uint8)).astype(np.float32) / 255
        empty = self.background.at((picture * 255).round().astype(np.uint8).transpose(1, 2, 0))
        if self._empty is None or self._empty[0] is not empty:
            self._empty = empty, downsample(to_floats(empty), self.coarse)
        return self._empty[1]

    def blobs(self, picture: Picture, background: Picture) -> Labels:
        """Return the connected components of the foreground: an object each, or several objects that touch."""
        one = self.size[0] * self.size[1]
        labels = connected(close(self.test(picture, background), self.size))
        labels = keep(labels, areas(labels) >= PIECE * one)
        labels = whole(keep(labels, ~ghosts(labels, picture, background)), self.size)
        return keep(labels, areas(labels) >= SMALLEST * one)


def whole(labels: Labels, size: tuple[float, float]) -> Labels:
    """Join pieces into one object if their common bounding box is small enough, the largest piece first."""
    box, largest = boxes(labels), LARGEST * np.array(size[::-1])
    group = np.arange(len(box))
    order = np.argsort(-areas(labels), kind="stable")
    for rank, piece in enumerate(order):
        for other in order[rank + 1 :]:
            low, high = np.minimum(box[piece, :2], box[other, :2]), np.maximum(box[piece, 2:], box[other, 2:])
            if group[piece] == piece and group[other] == other and (high - low <= largest).all():
                box[piece] = (*low, *high)
                group[other] = piece
    group = np.unique(group, return_inverse=True)[1]
    joined: np.ndarray = np.concatenate([[0], group + 1])[labels]
    return joined


def apart(labels: Labels, expected: Expected, size: tuple[float, float]) -> tuple[Boxes, np.ndarray]:
    """Return one box per object, and the index of its blob.

    A blob that is too large for one object and contains several expected boxes is split into these. Any other blob that
    is too large is cut into equal parts.
    """
    result, source = [], []
    for blob, box in enumerate(boxes(labels)):
        width, height = (box[2:] - box[:2]) / size[::-1]
        near = min(max(1.0, height), SEVERAL)  # an object that is tall because it is near is also wide
        parts = within(expected, box, size)
        if len(parts) < 2 or max(width / near, height) <= LARGEST:
            parts = cut(box, *(max(1, math.floor(side + 2 - SEVERAL)) for side in (width / near, height)))
        else:
            parts = centred(parts, labels == blob + 1, size)
        result.append(parts)
        source += [blob] * len(parts)
    return np.concatenate([np.zeros((0, 4)), *result]), np.array(source, dtype=int)


def within(expected: Expected, blob: Float[np.ndarray, " 4"], size: tuple[float, float]) -> Boxes:
    """Return the expected boxes centred in a blob, shrunk and moved into it. Of two at one place, keep the first."""
    middle = (expected[:, :2] + expected[:, 2:]) / 2
    chosen: list[int] = []
    for one in np.flatnonzero(((middle >= blob[:2]) & (middle <= blob[2:])).all(1)):
        away = np.abs(middle[chosen] - middle[one]) / size[::-1]
        if (away.max(1, initial=0) > SAME).all():
            chosen.append(int(one))
    inside = expected[chosen]
    side = np.minimum(inside[:, 2:] - inside[:, :2], blob[2:] - blob[:2])
    low = np.clip(inside[:, :2], blob[:2], blob[2:] - side)
    return np.concatenate([low, low + side], 1)


def centred(parts: Boxes, inside: Bool[np.ndarray, "H W"], size: tuple[float, float]) -> Boxes:
    """Centre boxes horizontally on the pixels of their blob that are nearest to them.

    Boxes are not moved vertically: of a person behind another, only the upper part is visible.
    """
    row, column = np.nonzero(inside)
    middle = (parts[:, None, :2] + parts[:, None, 2:]) / 2
    away = (np.stack([column, row], 1) + 0.5 - middle) / size[::-1]  # [N, pixels, 2]
    owner = (away**2).sum(-1).argmin(0)
    count = np.bincount(owner, minlength=len(parts))
    shift = np.bincount(owner, away[owner, np.arange(len(owner)), 0], len(parts)) / np.maximum(count, 1) * size[1]
    moved: np.ndarray = parts + shift[:, None] * (1, 0, 1, 0)
    return moved


def cut(box: Float[np.ndarray, " 4"], columns: int, rows: int) -> Boxes:
    """Cut a box into equal parts."""
    x, y = np.linspace(box[0], box[2], columns + 1), np.linspace(box[1], box[3], rows + 1)
    return np.array([(x[i], y[j], x[i + 1], y[j + 1]) for j in range(rows) for i in range(columns)])


def ghosts(labels: Labels, picture: Picture, background: Picture) -> Bool[np.ndarray, " M"]:
    """Return which blobs have sharper edges in the background than in the picture.

    Such a blob is the trace of an object that was part of the background estimate and has left.
    """
    rim = np.where(ndimage.minimum_filter(labels, 3) == ndimage.maximum_filter(labels, 3), 0, labels).ravel()
    slopes = (np.hypot(*np.gradient(one.sum(0))).ravel() for one in (picture, background))
    now, before = (np.bincount(rim, slope, labels.max() + 1)[1:] for slope in slopes)
    ghostly: np.ndarray = now < GHOST * before
    return ghostly
