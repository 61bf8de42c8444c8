"""Coverage: running counts of boxes against the foreground, by coverage, content and fit.

The foreground mask is downsampled to squares of several pixels, as fine as the objects need. Blobs are the connected
components of the downsampled mask.
"""

import math

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from scalor.health.facts import Tally
from scalor.video.resize import downsample_mask

SQUARES_PER_SIDE = 6
"""Smallest number of squares along an object's shorter side, where the mask is fine enough."""
MAX_SQUARES = 192
"""Largest number of squares along the longer side of the picture, where the object size is unknown."""
MIN_BLOB_SQUARES = 4
"""Smallest area of a blob, in squares. Smaller blobs are noise."""
MAX_BLOBS = 200
"""Largest number of blobs used per frame, the largest first. It bounds the cost of a frame full of noise."""
EMPTY_SHARE = 0.1
"""Share of foreground below which a box is empty. An object fills a third to three quarters of its box."""
MIN_FIT_IOU = 0.5
"""Smallest intersection over union of a box that fits its blobs. Tracking scores ask the same of a true box."""
DUPLICATE_IOU = 0.5
"""Smallest intersection over union at which two boxes are counted as duplicates."""
DUPLICATE_COVER = 0.8
"""Share of the smaller box that the intersection must cover for two boxes to be counted as duplicates."""

Boxes = Float[np.ndarray, "N 4"]


class Coverage:
    """Running counts of boxes against the foreground of a video.

    Boxes are x0, y0, x1, y1 in pixels of the view.
    """

    def __init__(self, view: tuple[int, int], object_size: tuple[float, float] | None) -> None:
        """Set all counts to zero.

        Parameters
        ----------
        view : tuple of int
            Height and width, in pixels, of the area that the masks show.
        object_size : tuple of float or None
            Height and width of an object in pixels; None if unknown.
        """
        self.view, self.object_size = view, object_size
        self.frames = self.rows = 0
        self.area = self.foreground = self.explained = 0.0
        self.most_foreground = 0.0
        self.moving_frames = self.unseen_frames = 0
        self.empty = self.doubles = 0
        self.pairs = self.fitting = 0
        self.fill = Tally()
        self.blob_height, self.blob_width = Tally(), Tally()
        self.box_height, self.box_width = Tally(), Tally()

    def step(self, foreground: Bool[np.ndarray, "h w"], boxes: Boxes) -> None:
        """Count one frame. The mask covers the view at any scale."""
        inside = downsample_mask(foreground, self._factor(foreground.shape))
        scale = np.array([inside.shape[1] / self.view[1], inside.shape[0] / self.view[0]] * 2)
        limit = np.array([inside.shape[1], inside.shape[0]] * 2)
        boxes = np.clip(boxes * scale, 0, limit)
        seen = boxes[(boxes[:, 2:] - boxes[:, :2] > 0).all(1)]
        inside, blobs, area = clean(inside)
        self.frames += 1
        self.rows += len(seen)
        self._cover(inside, seen, grown=len(blobs) > 0)
        self._overlap(seen)
        whole = whole_in(blobs, inside.shape)
        weights = np.sqrt(area[whole])
        self._sizes(self.blob_height, self.blob_width, blobs[whole] / scale, weights)
        self._sizes(self.box_height, self.box_width, seen[whole_in(seen, inside.shape)] / scale, None)
        self._fit(blobs, seen, inside.shape)

    def _factor(self, shape: tuple[int, ...]) -> int:
        """Return the downsampling factor for a mask of this shape, which leaves at least one square."""
        if self.object_size is None:
            return max(1, min(math.ceil(max(shape) / MAX_SQUARES), *shape))
        narrow = min(side * have / want for side, have, want in zip(self.object_size, shape, self.view, strict=True))
        return max(1, min(int(narrow / SQUARES_PER_SIDE), *shape))

    def _cover(self, inside: Bool[np.ndarray, "h w"], boxes: Boxes, grown: bool) -> None:
        """Count the foreground inside boxes, and the share of foreground in each box.

        `grown` says whether the frame has any blob.
        """
        total = float(inside.sum())
        painted = np.zeros(inside.shape, bool)
        low, high = np.floor(boxes[:, :2]).astype(int), np.ceil(boxes[:, 2:]).astype(int)
        for (x0, y0), (x1, y1) in zip(low, high, strict=True):
            painted[y0:y1, x0:x1] = True
        self.area += inside.size
        self.foreground += total
        self.most_foreground = max(self.most_foreground, total / inside.size)
        self.explained += float((painted & inside).sum())
        self.moving_frames += grown
        self.unseen_frames += grown and len(boxes) == 0
        sums = np.zeros((inside.shape[0] + 1, inside.shape[1] + 1))
        sums[1:, 1:] = inside.cumsum(0).cumsum(1)
        (x0, y0), (x1, y1) = low.T, high.T
        held = sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0]
        share = held / ((x1 - x0) * (y1 - y0))
        self.empty += int((share < EMPTY_SHARE).sum())
        self.fill.add(share)

    def _overlap(self, boxes: Boxes) -> None:
        """Count the boxes that duplicate another box."""
        shared, area = intersections(boxes, boxes), areas(boxes)
        np.fill_diagonal(shared, 0)
        union = area[:, None] + area - shared
        double = (shared >= DUPLICATE_IOU * union) | (shared >= DUPLICATE_COVER * np.minimum(area[:, None], area))
        np.fill_diagonal(double, False)
        self.doubles += int(double.any(1).sum())

    def _sizes(self, heights: Tally, widths: Tally, boxes: Boxes, weights: Float[np.ndarray, " N"] | None) -> None:
        widths.add(boxes[:, 2] - boxes[:, 0], weights)
        heights.add(boxes[:, 3] - boxes[:, 1], weights)

    def _fit(self, blobs: Float[np.ndarray, "M 4"], boxes: Boxes, shape: tuple[int, ...]) -> None:
        """Count the isolated boxes that fit their blobs.

        A box is isolated if it does not touch the border and if every blob that touches it lies inside the picture and
        touches no other box. It is compared with the bounding box of its blobs.
        """
        if not len(blobs) or not len(boxes):
            return
        touch = intersections(blobs, boxes) > 0
        own = touch.sum(1) == 1
        good = whole_in(boxes, shape) & touch.any(0) & ~(touch & ~(own & whole_in(blobs, shape))[:, None]).any(0)
        piece, owner = np.nonzero(touch & good)
        around = np.tile([np.inf, np.inf, -np.inf, -np.inf], (len(boxes), 1))
        np.minimum.at(around[:, :2], owner, blobs[piece, :2])
        np.maximum.at(around[:, 2:], owner, blobs[piece, 2:])
        around, alone = around[good], boxes[good]
        shared = (np.minimum(around, alone)[:, 2:] - np.maximum(around, alone)[:, :2]).clip(min=0).prod(1)
        fit = shared / (areas(around) + areas(alone) - shared)
        self.pairs += len(fit)
        self.fitting += int((fit >= MIN_FIT_IOU).sum())


def clean(mask: Bool[np.ndarray, "h w"]) -> tuple[Bool[np.ndarray, "h w"], Boxes, Float[np.ndarray, " N"]]:
    """Return the mask without specks, and the boxes and areas of its largest blobs."""
    labels, count = ndimage.label(mask)
    area = np.bincount(labels.ravel(), minlength=count + 1)
    area[0] = 0
    large = area >= MIN_BLOB_SQUARES
    order = np.flatnonzero(large)
    order = order[np.argsort(-area[order], kind="stable")][:MAX_BLOBS]
    found = ndimage.find_objects(labels)
    edges = [(found[n - 1][1].start, found[n - 1][0].start, found[n - 1][1].stop, found[n - 1][0].stop) for n in order]
    return large[labels], np.array(edges, float).reshape(-1, 4), area[order].astype(float)


def whole_in(boxes: Boxes, shape: tuple[int, ...]) -> Bool[np.ndarray, " N"]:
    """Return which boxes do not touch the border of a picture of this shape."""
    inside = np.concatenate([boxes[:, :2] > 0, boxes[:, 2:] < (shape[1], shape[0])], 1)
    return np.asarray(inside.all(1))


def areas(boxes: Boxes) -> Float[np.ndarray, " N"]:
    """Return the area of each box."""
    area: np.ndarray = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    return area


def intersections(one: Float[np.ndarray, "N 4"], other: Float[np.ndarray, "M 4"]) -> Float[np.ndarray, "N M"]:
    """Return the intersection area of each box of `one` with each box of `other`."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared: np.ndarray = (high - low).clip(min=0).prod(-1)
    return shared
