"""Moving objects before a camera that stands still: what differs from the scene, which is made from all of a video, or
else, where frames come one by one, the median of earlier ones.

Everything scales with the size of an object. The numbers were chosen on the first 477 frames of PETS 2009 S2L1,
view 1, by looking at what they do and by how they score.
"""

import math

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy import ndimage

from scalor.classical.detecting import SMALLEST, Labels, Picture, areas, boxes, connected, keep, means
from scalor.still.background import Background
from scalor.still.foreground import ORDINARY, ForegroundTest, close, coarseness, shrink, to_floats
from scalor.tracking.linking import Detections

MEMORY = 25
"""Pictures whose median is the background."""
LONGEST_STRIDE = 16
"""Frames between two of these pictures, once a video has gone on for long."""
PIECE = 0.02
"""Of the area of a typical object's box; anything smaller is no piece of one."""
LARGEST = 1.3
"""Pieces that together are not larger than so many objects are one."""
SEVERAL = 1.8
"""What is wider or higher than so many objects is more than one."""

SAME = 0.5
"""Objects whose centres are nearer than this share of a size, in both directions, are one."""

GHOST = 0.7
"""How much fainter the rim of an object's trace in the background is in the picture."""

Boxes = Float[np.ndarray, "N 4"]


class MotionDetector:
    """Finds the moving objects of one video, frame by frame."""

    def __init__(
        self, size: tuple[float, float], background: Background | None = None, test: ForegroundTest = ORDINARY
    ) -> None:
        """`size` of an object; without a background of the whole video, that of the frames so far."""
        self.coarse = coarseness(size)
        self.size = (size[0] / self.coarse, size[1] / self.coarse)
        self.test = test
        self.scene = RecentScene() if background is None else WholeScene(background, self.coarse)

    def __call__(self, picture: Picture, expected: Boxes) -> Detections:
        """The objects of the next frame; `expected` are the boxes of those that should be there."""
        small = shrink(picture, self.coarse)
        labels = self.blobs(small, self.scene.behind(picture, small))
        box, blob = apart(labels, expected / self.coarse, self.size)
        return Detections(box * self.coarse, means(small, labels)[blob])

    def blobs(self, picture: Picture, background: Picture) -> Labels:
        """What moves and hangs together: an object each, or several that touch."""
        one = self.size[0] * self.size[1]
        labels = connected(close(self.test(picture, background), self.size))
        labels = keep(labels, areas(labels) >= PIECE * one)
        labels = whole(keep(labels, ~ghosts(labels, picture, background)), self.size)
        return keep(labels, areas(labels) >= SMALLEST * one)


class WholeScene:
    """The background of a whole video in the light of each frame, as coarse as objects allow."""

    def __init__(self, background: Background, coarse: int) -> None:
        self.background, self.coarse = background, coarse
        self.last: tuple[UInt8[np.ndarray, "H W 3"], Picture] | None = None

    def behind(self, picture: Picture, small: Picture) -> Picture:
        """The scene without objects, where `picture` shows it with them."""
        empty = self.background.at((picture * 255).round().astype(np.uint8).transpose(1, 2, 0))
        if self.last is None or self.last[0] is not empty:
            self.last = empty, shrink(to_floats(empty), self.coarse)
        return self.last[1]


class RecentScene:
    """The median of pictures that lie the farther apart the longer a video goes on."""

    def __init__(self) -> None:
        self.pictures: list[UInt8[np.ndarray, "3 H W"]] = []
        self.stride, self.seen = 1, 0
        self.median: Picture = np.zeros((3, 0, 0), np.float32)

    def behind(self, picture: Picture, small: Picture) -> Picture:
        """The background when this picture has been seen too."""
        if self.seen % self.stride == 0:
            self.pictures.append((small * 255).astype(np.uint8))
            if len(self.pictures) > MEMORY:
                far = self.stride == LONGEST_STRIDE
                self.pictures = self.pictures[1:] if far else self.pictures[::2]
                self.stride *= 1 if far else 2
            middle = (len(self.pictures) - 1) // 2
            self.median = np.partition(np.stack(self.pictures), middle, 0)[middle].astype(np.float32) / 255
        self.seen += 1
        return self.median


def whole(labels: Labels, size: tuple[float, float]) -> Labels:
    """Pieces as one object, where together they are small enough for it."""
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


def apart(labels: Labels, expected: Boxes, size: tuple[float, float]) -> tuple[Boxes, np.ndarray]:
    """One box an object, and the blob it is part of.

    A blob too large for one object that holds several expected ones is these. Any other that is too large is cut into
    equal parts.
    """
    result, source = [], []
    for blob, box in enumerate(boxes(labels)):
        width, height = (box[2:] - box[:2]) / size[::-1]
        near = min(max(1.0, height), SEVERAL)  # what is high because it is near is wide, too
        parts = within(expected, box, size)
        if len(parts) < 2 or max(width / near, height) <= LARGEST:
            parts = cut(box, *(max(1, math.floor(side + 2 - SEVERAL)) for side in (width / near, height)))
        else:
            parts = centred(parts, labels == blob + 1, size)
        result.append(parts)
        source += [blob] * len(parts)
    return np.concatenate([np.zeros((0, 4)), *result]), np.array(source, dtype=int)


def within(expected: Boxes, blob: Float[np.ndarray, " 4"], size: tuple[float, float]) -> Boxes:
    """Those expected in a blob, moved into it; of two at one place the first."""
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
    """Boxes moved sideways to the middle of those pixels of their blob that are nearest to them. Not up or down: who
    stands behind another shows a head and no feet."""
    row, column = np.nonzero(inside)
    middle = (parts[:, None, :2] + parts[:, None, 2:]) / 2
    away = (np.stack([column, row], 1) + 0.5 - middle) / size[::-1]  # [N, pixels, 2]
    owner = (away**2).sum(-1).argmin(0)
    count = np.bincount(owner, minlength=len(parts))
    shift = np.bincount(owner, away[owner, np.arange(len(owner)), 0], len(parts)) / np.maximum(count, 1) * size[1]
    moved: np.ndarray = parts + shift[:, None] * (1, 0, 1, 0)
    return moved


def cut(box: Float[np.ndarray, " 4"], columns: int, rows: int) -> Boxes:
    x, y = np.linspace(box[0], box[2], columns + 1), np.linspace(box[1], box[3], rows + 1)
    return np.array([(x[i], y[j], x[i + 1], y[j + 1]) for j in range(rows) for i in range(columns)])


def ghosts(labels: Labels, picture: Picture, background: Picture) -> Bool[np.ndarray, " M"]:
    """Blobs whose rim is sharper in the background than in the picture: something stood there and has left."""
    rim = np.where(ndimage.minimum_filter(labels, 3) == ndimage.maximum_filter(labels, 3), 0, labels).ravel()
    slopes = (np.hypot(*np.gradient(one.sum(0))).ravel() for one in (picture, background))
    now, before = (np.bincount(rim, slope, labels.max() + 1)[1:] for slope in slopes)
    ghostly: np.ndarray = now < GHOST * before
    return ghostly
