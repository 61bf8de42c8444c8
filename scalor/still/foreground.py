"""Foreground test: the pixels that are neither noise nor background in shadow, and their connected components (blobs).

A shadow darkens the background and leaves the rest of it unchanged: its colours if it has several, and otherwise its
texture. If a video has no colours to compare (grey film, one tint throughout) and the background has no texture,
everything that differs is foreground, because most of what is dark there is an object: fish in a light tank, walkers on
a pavement.

>>> test = ForegroundTest.of([(picture, background.at(picture)) for picture in video.sample(20)])
>>> test(to_floats(picture), to_floats(background.at(picture)))

The numbers were chosen on the first 477 frames of PETS 2009 S2L1, view 1, by visual inspection and by score. They were
checked visually on six other videos of streets, fish, cells and colloids.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage

from scalor.boxes import Perspective, sizes_at

Picture = Float[np.ndarray, "3 H W"]
"""Colours in [0, 1]."""
Bytes = UInt8[np.ndarray, "H W 3"]

DETAIL = 12
"""Smallest number of pixels to which the narrower side of an object is reduced. Images are reduced if it has at least
twice as many."""
CONTRAST, FAINTEST = 0.1, 0.012
"""Largest and smallest threshold for the difference from the background, with pixels in [0, 1]."""
NOTABLE = 0.25
"""Threshold as a share of the strongest differences of a video, between FAINTEST and CONTRAST."""
STRONG = 99.9
"""Percentile of the differences that counts as the strongest ones."""
NOISE = 4.0
"""Smallest difference of a foreground pixel, in standard deviations of the noise."""
QUIET, TO_DEVIATION = 25, 3.14
"""Percentile of the differences that is noise even where objects fill half of a frame, and the factor from it to the
standard deviation of a normal distribution."""
LOOKED_AT = 20
"""Largest number of sampled frames by which a test is chosen."""
SHADE = 0.5
"""Smallest share of the light that a shadow leaves. It leaves the colour and the texture unchanged."""
TINT = 0.05
"""Largest difference between equal colours at equal brightness, with pixels in [0, 1]."""
COLOURFUL = 0.1
"""Share of the differing pixels that have another colour, above which colour distinguishes objects from shadows. It is
.2 to .3 in street videos, and at most .05 in grey videos and those of one tint."""
WINDOW = 5
"""Side in pixels of the square in which texture is compared."""
TEXTURE, KEPT = 3.0, 0.6
"""Smallest standard deviation of the background's texture, in standard deviations of the noise, and smallest
correlation of a shadow with it."""
SPECK_SHARE = 0.08
"""Foreground smaller than this share of an object's height or width is removed."""
GAP = (0.15, 0.1)
"""Holes and gaps of up to these shares of an object's height and width are closed."""


@dataclass(frozen=True)
class ForegroundTest:
    """Foreground test for one video.

    The defaults are for clearly visible objects in a colourful video.
    """

    least: float = CONTRAST
    """Smallest difference from the background of a foreground pixel, with pixels in [0, 1]."""
    colourful: bool = True
    """Whether colour distinguishes objects from shadows in this video."""

    @staticmethod
    def of(pairs: Sequence[tuple[Bytes, Bytes]]) -> "ForegroundTest":
        """Choose the test of a video by how sampled frames differ from their backgrounds."""
        if not pairs:
            return ORDINARY
        differences, tinted, outside = [], 0, 0
        floats = [(to_floats(picture), to_floats(background)) for picture, background in thinned(pairs, LOOKED_AT)]
        for picture, background in floats:
            differences.append(np.percentile(difference(picture, background), STRONG))
        least = least_for(float(np.median(differences)))
        for picture, background in floats:
            there = beyond(picture, background, least)
            outside += int(there.sum())
            tinted += int(differs_in_colour(picture[:, there], background[:, there]).sum())
        return ForegroundTest(least, tinted > COLOURFUL * outside)

    def __call__(self, picture: Picture, background: Picture) -> Bool[np.ndarray, "H W"]:
        """Return the pixels of a frame that are neither noise nor background in shadow."""
        outside = beyond(picture, background, self.least)
        there = picture[:, outside], background[:, outside]
        light = relative_light(*there)
        darker = (light >= SHADE) & (light <= 1)
        if self.colourful:
            outside[outside] = ~darker | differs_in_colour(*there)
        elif darker.any():
            rows, columns = (side[darker] for side in np.nonzero(outside))
            kept = keeps_texture(picture.mean(0), background.mean(0), rows, columns)
            outside[rows[kept], columns[kept]] = False
        return outside


ORDINARY = ForegroundTest()
"""Test for a video about which nothing is known."""


def to_floats(picture: Bytes) -> Picture:
    """Return the image with colours in [0, 1], channels first."""
    first: np.ndarray = np.ascontiguousarray(picture.transpose(2, 0, 1))
    floats: np.ndarray = np.multiply(first, np.float32(1 / 255), dtype=np.float32)
    return floats


def thinned(pairs: Sequence[tuple[Bytes, Bytes]], most: int) -> Sequence[tuple[Bytes, Bytes]]:
    """Return at most `most` of the pairs, evenly spaced."""
    return [pairs[number * len(pairs) // most] for number in range(most)] if len(pairs) > most else pairs


def difference(picture: Picture, background: Picture) -> Float[np.ndarray, "H W"]:
    """Return the difference of each pixel, in the channel that differs most."""
    apart: np.ndarray = np.abs(picture - background).max(0)
    return apart


def least_for(strength: float) -> float:
    """Return the threshold for a video whose strongest differences are this large.

    It is lower where all differences are faint.
    """
    return min(CONTRAST, max(FAINTEST, NOTABLE * strength))


def noise_of(picture: Float[np.ndarray, "C H W"], background: Float[np.ndarray, "C H W"]) -> float:
    """Return the standard deviation of the differences where nothing moves, in the noisiest channel."""
    apart = np.abs(picture[:, ::4, ::4] - background[:, ::4, ::4]).reshape(len(picture), -1)
    return TO_DEVIATION * float(np.percentile(apart, QUIET, axis=1).max())


def beyond(picture: Picture, background: Picture, least: float) -> Bool[np.ndarray, "H W"]:
    """Return the pixels that differ by more than noise."""
    apart = difference(picture, background)
    outside: np.ndarray = apart > max(least, NOISE * noise_of(picture, background))
    return outside


def relative_light(seen: Float[np.ndarray, "3 P"], scene: Float[np.ndarray, "3 P"]) -> Float[np.ndarray, " P"]:
    """Return the brightness of pixels relative to the background."""
    light: np.ndarray = (seen * scene).sum(0) / np.maximum((scene**2).sum(0), 1e-6)
    return light


def differs_in_colour(seen: Float[np.ndarray, "3 P"], scene: Float[np.ndarray, "3 P"]) -> Bool[np.ndarray, " P"]:
    """Return whether pixels differ from the background in colour, whatever their brightness."""
    tinted: np.ndarray = np.abs(seen - relative_light(seen, scene) * scene).max(0) > TINT
    return tinted


def keeps_texture(
    picture: Float[np.ndarray, "H W"], scene: Float[np.ndarray, "H W"], rows: np.ndarray, columns: np.ndarray
) -> Bool[np.ndarray, " P"]:
    """Return whether the surroundings of pixels show the texture of the background, only darker.

    The result is false where the background has no texture.
    """
    if min(picture.shape) < WINDOW:
        return np.zeros(len(rows), bool)
    edge = WINDOW // 2
    rows, columns = (
        np.clip(at - edge, 0, side - WINDOW) for at, side in zip((rows, columns), picture.shape, strict=True)
    )
    seen, empty = (
        sliding_window_view(one, (WINDOW, WINDOW))[rows, columns].reshape(len(rows), -1) for one in (picture, scene)
    )
    seen, empty = (one - one.mean(1, keepdims=True) for one in (seen, empty))
    spread = np.sqrt((empty**2).mean(1))
    noise = noise_of(picture[None], scene[None])
    alike = (seen * empty).mean(1) / np.maximum(spread * np.sqrt((seen**2).mean(1)), 1e-9)
    kept: np.ndarray = (spread > max(TEXTURE * noise, FAINTEST)) & (alike > KEPT)
    return kept


def coarseness(size: tuple[float, float]) -> int:
    """Return the factor by which images can be reduced while objects of this height and width stay visible enough."""
    return max(1, int(min(size) // DETAIL))


def close(inside: Bool[np.ndarray, "H W"], size: tuple[float, float]) -> Bool[np.ndarray, "H W"]:
    """Remove specks, then close gaps."""
    share = inside.astype(np.float32)
    for axis, side in enumerate(size):
        share = ndimage.uniform_filter1d(share, round(SPECK_SHARE * side) | 1, axis)
    closed = (share > 0.45).astype(np.uint8)
    for grow in (ndimage.maximum_filter1d, ndimage.minimum_filter1d):
        for axis, (side, gap) in enumerate(zip(size, GAP, strict=True)):
            closed = grow(closed, round(gap * side) | 1, axis)
    return closed > 0


SMALLEST_AREA = 8
"""Smallest number of pixels of a component; smaller ones are noise."""
LEAST = 0.15
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
        """x and y of the centres of the boxes."""
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
        return Blobs(self.box[kept], self.moments[kept], self.frame)


def find_blobs(changed: Bool[np.ndarray, "H W"], gap: int = 0) -> Blobs:
    """Return the connected components of at least SMALLEST_AREA pixels.

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
    return blobs.select(blobs.area >= SMALLEST_AREA)


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
    large: np.ndarray = blobs.area >= LEAST * math.prod(object_size) * sizes**2
    return large
