"""Connected pieces of the foreground: their boxes and their own axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import ndimage

from scalor.boxes import Perspective, sizes_at

SPECK = 8
"""Pieces of fewer pixels are noise."""
LEAST = 0.15
"""Share of the area of an object's box below which a piece is not one."""


@dataclass(frozen=True)
class Blobs:
    """What differs from the scene in a frame, or in several, one thing after another."""

    box: Float[np.ndarray, "N 4"]
    """x0, y0, x1, y1."""
    moments: Float[np.ndarray, "N 6"]
    """Sums over its pixels of 1, x, y, x x, y y and x y: those of two blobs together are their sums."""
    frame: tuple[int, int]
    """Height and width of the picture."""

    @property
    def centre(self) -> Float[np.ndarray, "N 2"]:
        """x and y of the middle of the box."""
        middle: np.ndarray = (self.box[:, :2] + self.box[:, 2:]) / 2
        return middle

    @property
    def size(self) -> Float[np.ndarray, "N 2"]:
        """Height and width of the box."""
        sides: np.ndarray = (self.box[:, 2:] - self.box[:, :2])[:, ::-1]
        return sides

    @property
    def area(self) -> Int[np.ndarray, " N"]:
        """Pixels."""
        return self.moments[:, 0].astype(int)

    @property
    def whole(self) -> Bool[np.ndarray, " N"]:
        """Whether it lies inside the picture, not at its border."""
        height, width = self.frame
        x0, y0, x1, y1 = self.box.T
        inside: np.ndarray = (x0 > 0) & (y0 > 0) & (x1 < width) & (y1 < height)
        return inside

    def axes(self) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
        """Length and breadth of the ellipse with the same moments, and the angle of its length from the x axis."""
        one, x, y, xx, yy, xy = self.moments.T
        one = np.maximum(one, 1)
        pixel = 1 / 12  # the variance of one, which is a square and not a point
        across, down = xx / one - (x / one) ** 2 + pixel, yy / one - (y / one) ** 2 + pixel
        both = xy / one - x * y / one**2
        middle, apart = (across + down) / 2, np.hypot((across - down) / 2, both)
        length, breadth = 4 * np.sqrt(middle + apart), 4 * np.sqrt(np.maximum(middle - apart, pixel))
        return length, breadth, np.arctan2(2 * both, across - down) / 2

    def select(self, kept: Bool[np.ndarray, " N"]) -> "Blobs":
        return Blobs(self.box[kept], self.moments[kept], self.frame)


def find_blobs(changed: Bool[np.ndarray, "H W"], gap: int = 0) -> Blobs:
    """Each connected piece of more than a few pixels; pieces up to twice `gap` pixels apart are one."""
    grown = changed
    for axis in (0, 1) if gap else ():
        grown = ndimage.maximum_filter1d(grown, 2 * gap + 1, axis)
    labels, count = ndimage.label(grown)
    row, column = np.nonzero(changed)
    number = labels[row, column] - 1
    x, y = column + 0.5, row + 0.5
    sums = [np.bincount(number, weights, count) for weights in (None, x, y, x * x, y * y, x * y)]
    parts = ndimage.find_objects(np.where(changed, labels, 0) if gap else labels)
    edges = [(part[1].start, part[0].start, part[1].stop, part[0].stop) for part in parts]
    height, width = changed.shape
    blobs = Blobs(np.array(edges, float).reshape(-1, 4), np.stack(sums, 1).astype(float), (height, width))
    return blobs.select(blobs.area >= SPECK)


def join_blobs(parts: Sequence[Blobs]) -> Blobs:
    """Those of several frames, one after the other."""
    boxes, moments = np.concatenate([one.box for one in parts]), np.concatenate([one.moments for one in parts])
    return Blobs(boxes, moments, parts[0].frame)


def large_enough(
    blobs: Blobs, object_size: tuple[float, float], height: int, perspective: Perspective
) -> Bool[np.ndarray, " N"]:
    """Those that may be an object of this typical size, for where they are in a picture of this height."""
    sizes = sizes_at(blobs.centre[:, 1], height, perspective)
    large: np.ndarray = blobs.area >= LEAST * math.prod(object_size) * sizes**2
    return large
