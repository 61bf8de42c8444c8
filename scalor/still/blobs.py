"""Blobs: the connected components of the foreground, with their sizes and directions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import ndimage

from scalor.boxes import Perspective, sizes_at

MIN_COMPONENT_PIXELS = 8
"""Smallest number of pixels of a component; smaller ones are noise."""
MIN_AREA_SHARE = 0.15
"""Smallest area of a component that may be an object, as a share of the area of a typical object's box."""


@dataclass(frozen=True)
class Blobs:
    """The connected components of the foreground in one frame, or in several frames one after the other."""

    box: Float[np.ndarray, "N 4"]
    """x0, y0, x1, y1."""
    moments: Float[np.ndarray, "N 6"]
    """Sums of 1, x, y, x x, y y and x y over the pixels. The moments of two blobs together are the sums of theirs."""
    frame: tuple[int, int]
    """Height and width of the image."""

    @property
    def centre(self) -> Float[np.ndarray, "N 2"]:
        """X and y of the centres of the boxes."""
        middle: np.ndarray = (self.box[:, :2] + self.box[:, 2:]) / 2
        return middle

    @property
    def size(self) -> Float[np.ndarray, "N 2"]:
        """Height and width of the boxes."""
        sides: np.ndarray = (self.box[:, 2:] - self.box[:, :2])[:, ::-1]
        return sides

    @property
    def area(self) -> Int[np.ndarray, " N"]:
        """Number of pixels."""
        return self.moments[:, 0].astype(int)

    @property
    def whole(self) -> Bool[np.ndarray, " N"]:
        """Whether each box lies inside the image without touching its border."""
        height, width = self.frame
        x0, y0, x1, y1 = self.box.T
        inside: np.ndarray = (x0 > 0) & (y0 > 0) & (x1 < width) & (y1 < height)
        return inside

    def axes(self) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
        """Return length, breadth and angle of the ellipses with the same moments.

        The angle, in radians, is that of the long axis from the x axis.
        """
        one, x, y, xx, yy, xy = self.moments.T
        one = np.maximum(one, 1)
        pixel = 1 / 12  # the variance within a pixel, which is a square and not a point
        across, down = xx / one - (x / one) ** 2 + pixel, yy / one - (y / one) ** 2 + pixel
        both = xy / one - x * y / one**2
        middle, apart = (across + down) / 2, np.hypot((across - down) / 2, both)
        length, breadth = 4 * np.sqrt(middle + apart), 4 * np.sqrt(np.maximum(middle - apart, pixel))
        return length, breadth, np.arctan2(2 * both, across - down) / 2

    def select(self, kept: Bool[np.ndarray, " N"]) -> "Blobs":
        """Return some of the blobs."""
        return Blobs(self.box[kept], self.moments[kept], self.frame)


def find_blobs(changed: Bool[np.ndarray, "H W"], gap: int = 0) -> Blobs:
    """Return the connected components of at least MIN_COMPONENT_PIXELS pixels.

    Pieces up to twice `gap` pixels apart are one component.
    """
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
    return blobs.select(blobs.area >= MIN_COMPONENT_PIXELS)


def join_blobs(parts: Sequence[Blobs]) -> Blobs:
    """Return the blobs of several frames, one frame after the other."""
    boxes, moments = np.concatenate([one.box for one in parts]), np.concatenate([one.moments for one in parts])
    return Blobs(boxes, moments, parts[0].frame)


def large_enough(
    blobs: Blobs, object_size: tuple[float, float], height: int, perspective: Perspective
) -> Bool[np.ndarray, " N"]:
    """Return which blobs may be objects of this typical size.

    The size depends on the blob's row in an image of this height, as given by the perspective.
    """
    sizes = sizes_at(blobs.centre[:, 1], height, perspective)
    large: np.ndarray = blobs.area >= MIN_AREA_SHARE * math.prod(object_size) * sizes**2
    return large
