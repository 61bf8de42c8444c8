"""Foreground test: the pixels that are neither noise nor background in shadow.

A shadow darkens the background and leaves the rest of it unchanged: its colours if it has several, and otherwise its
texture. If a video has no colours to compare (grey film, one tint throughout) and the background has no texture,
everything that differs is foreground, because most of what is dark there is an object: fish in a light tank, walkers on
a pavement.

>>> test = ForegroundTest.of([(picture, background.at(picture)) for picture in video.sample(20)])
>>> test(to_floats(picture), to_floats(background.at(picture)))

The numbers were chosen on the first 477 frames of PETS 2009 S2L1, view 1, by visual inspection and by score. They were
checked visually on six other videos of streets, fish, cells and colloids.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage

from scalor.video.pixels import Picture

FloatPicture = Float[np.ndarray, "3 H W"]
"""Colours in [0, 1]."""

MIN_OBJECT_PIXELS = 12
"""Smallest number of pixels to which the narrower side of an object is reduced. Images are reduced if it has at least
twice as many."""
MAX_THRESHOLD, MIN_THRESHOLD = 0.1, 0.012
"""Largest and smallest threshold for the difference from the background, with pixels in [0, 1]."""
THRESHOLD_SHARE = 0.25
"""Threshold as a share of the strongest differences of a video, between MIN_THRESHOLD and MAX_THRESHOLD."""
STRONG_PERCENTILE = 99.9
"""Percentile of the differences that counts as the strongest ones."""
NOISE_DEVIATIONS = 4.0
"""Smallest difference of a foreground pixel, in standard deviations of the noise."""
NOISE_PERCENTILE, PERCENTILE_TO_DEVIATION = 25, 3.14
"""Percentile of the differences that is noise even where objects fill half of a frame, and the factor from it to the
standard deviation of a normal distribution."""
MEASURED_FRAMES = 20
"""Largest number of sampled frames by which a test is chosen."""
MIN_SHADOW_LIGHT = 0.5
"""Smallest share of the light that a shadow leaves. It leaves the colour and the texture unchanged."""
MAX_COLOUR_DIFFERENCE = 0.05
"""Largest difference between equal colours at equal brightness, with pixels in [0, 1]."""
COLOURFUL_SHARE = 0.1
"""Share of the differing pixels that have another colour, above which colour distinguishes objects from shadows. It is
.2 to .3 in street videos, and at most .05 in grey videos and those of one tint."""
TEXTURE_WINDOW = 5
"""Side in pixels of the square in which texture is compared."""
MIN_TEXTURE, MIN_TEXTURE_CORRELATION = 3.0, 0.6
"""Smallest standard deviation of the background's texture, in standard deviations of the noise, and smallest
correlation of a shadow with it."""
MIN_NEIGHBOUR_SHARE = 0.45
"""Share of foreground in the pixels around a pixel, above which the pixel is foreground."""
SPECK_SHARE = 0.08
"""Foreground smaller than this share of an object's height or width is removed."""
GAP_SHARES = (0.15, 0.1)
"""Holes and gaps of up to these shares of an object's height and width are closed."""


@dataclass(frozen=True)
class ForegroundTest:
    """Foreground test for one video.

    The defaults are for clearly visible objects in a colourful video.
    """

    least: float = MAX_THRESHOLD
    """Smallest difference from the background of a foreground pixel, with pixels in [0, 1]."""
    colourful: bool = True
    """Whether colour distinguishes objects from shadows in this video."""

    @staticmethod
    def of(pairs: Sequence[tuple[Picture, Picture]]) -> "ForegroundTest":
        """Choose the test of a video by how sampled frames differ from their backgrounds."""
        if not pairs:
            return DEFAULT_TEST
        differences, tinted, outside = [], 0, 0
        floats = [
            (to_floats(picture), to_floats(background)) for picture, background in thinned(pairs, MEASURED_FRAMES)
        ]
        for picture, background in floats:
            differences.append(np.percentile(difference(picture, background), STRONG_PERCENTILE))
        least = least_for(float(np.median(differences)))
        for picture, background in floats:
            there = beyond(picture, background, least)
            outside += int(there.sum())
            tinted += int(differs_in_colour(picture[:, there], background[:, there]).sum())
        return ForegroundTest(least, tinted > COLOURFUL_SHARE * outside)

    def __call__(self, picture: FloatPicture, background: FloatPicture) -> Bool[np.ndarray, "H W"]:
        """Return the pixels of a frame that are neither noise nor background in shadow."""
        outside = beyond(picture, background, self.least)
        there = picture[:, outside], background[:, outside]
        light = relative_light(*there)
        darker = (light >= MIN_SHADOW_LIGHT) & (light <= 1)
        if self.colourful:
            outside[outside] = ~darker | differs_in_colour(*there)
        elif darker.any():
            rows, columns = (side[darker] for side in np.nonzero(outside))
            kept = keeps_texture(picture.mean(0), background.mean(0), rows, columns)
            outside[rows[kept], columns[kept]] = False
        return outside


DEFAULT_TEST = ForegroundTest()
"""Test for a video about which nothing is known."""


def to_floats(picture: Picture) -> FloatPicture:
    """Return the image with colours in [0, 1], channels first."""
    first: np.ndarray = np.ascontiguousarray(picture.transpose(2, 0, 1))
    floats: np.ndarray = np.multiply(first, np.float32(1 / 255), dtype=np.float32)
    return floats


def thinned(pairs: Sequence[tuple[Picture, Picture]], most: int) -> Sequence[tuple[Picture, Picture]]:
    """Return at most `most` of the pairs, evenly spaced."""
    return [pairs[number * len(pairs) // most] for number in range(most)] if len(pairs) > most else pairs


def difference(picture: FloatPicture, background: FloatPicture) -> Float[np.ndarray, "H W"]:
    """Return the difference of each pixel, in the channel that differs most."""
    apart: np.ndarray = np.abs(picture - background).max(0)
    return apart


def least_for(strength: float) -> float:
    """Return the threshold for a video whose strongest differences are this large.

    It is lower where all differences are faint.
    """
    return min(MAX_THRESHOLD, max(MIN_THRESHOLD, THRESHOLD_SHARE * strength))


def noise_of(picture: Float[np.ndarray, "C H W"], background: Float[np.ndarray, "C H W"]) -> float:
    """Return the standard deviation of the differences where nothing moves, in the noisiest channel."""
    apart = np.abs(picture[:, ::4, ::4] - background[:, ::4, ::4]).reshape(len(picture), -1)
    return PERCENTILE_TO_DEVIATION * float(np.percentile(apart, NOISE_PERCENTILE, axis=1).max())


def beyond(picture: FloatPicture, background: FloatPicture, least: float) -> Bool[np.ndarray, "H W"]:
    """Return the pixels that differ by more than noise."""
    apart = difference(picture, background)
    outside: np.ndarray = apart > max(least, NOISE_DEVIATIONS * noise_of(picture, background))
    return outside


def relative_light(seen: Float[np.ndarray, "3 P"], scene: Float[np.ndarray, "3 P"]) -> Float[np.ndarray, " P"]:
    """Return the brightness of pixels relative to the background."""
    light: np.ndarray = (seen * scene).sum(0) / np.maximum((scene**2).sum(0), 1e-6)
    return light


def differs_in_colour(seen: Float[np.ndarray, "3 P"], scene: Float[np.ndarray, "3 P"]) -> Bool[np.ndarray, " P"]:
    """Return whether pixels differ from the background in colour, whatever their brightness."""
    tinted: np.ndarray = np.abs(seen - relative_light(seen, scene) * scene).max(0) > MAX_COLOUR_DIFFERENCE
    return tinted


def keeps_texture(
    picture: Float[np.ndarray, "H W"], scene: Float[np.ndarray, "H W"], rows: np.ndarray, columns: np.ndarray
) -> Bool[np.ndarray, " P"]:
    """Return whether the surroundings of pixels show the texture of the background, only darker.

    The result is false where the background has no texture.
    """
    if min(picture.shape) < TEXTURE_WINDOW:
        return np.zeros(len(rows), bool)
    edge = TEXTURE_WINDOW // 2
    rows, columns = (
        np.clip(at - edge, 0, side - TEXTURE_WINDOW) for at, side in zip((rows, columns), picture.shape, strict=True)
    )
    seen, empty = (
        sliding_window_view(one, (TEXTURE_WINDOW, TEXTURE_WINDOW))[rows, columns].reshape(len(rows), -1)
        for one in (picture, scene)
    )
    seen, empty = (one - one.mean(1, keepdims=True) for one in (seen, empty))
    spread = np.sqrt((empty**2).mean(1))
    noise = noise_of(picture[None], scene[None])
    alike = (seen * empty).mean(1) / np.maximum(spread * np.sqrt((seen**2).mean(1)), 1e-9)
    kept: np.ndarray = (spread > max(MIN_TEXTURE * noise, MIN_THRESHOLD)) & (alike > MIN_TEXTURE_CORRELATION)
    return kept


def coarseness(size: tuple[float, float]) -> int:
    """Return the factor by which images can be reduced while objects of this height and width stay visible enough."""
    return max(1, int(min(size) // MIN_OBJECT_PIXELS))


def close(inside: Bool[np.ndarray, "H W"], size: tuple[float, float]) -> Bool[np.ndarray, "H W"]:
    """Remove specks, then close gaps."""
    share = inside.astype(np.float32)
    for axis, side in enumerate(size):
        share = ndimage.uniform_filter1d(share, round(SPECK_SHARE * side) | 1, axis)
    closed = (share > MIN_NEIGHBOUR_SHARE).astype(np.uint8)
    for grow in (ndimage.maximum_filter1d, ndimage.minimum_filter1d):
        for axis, (side, gap) in enumerate(zip(size, GAP_SHARES, strict=True)):
            closed = grow(closed, round(gap * side) | 1, axis)
    return closed > 0


def clean_foreground(picture: Picture, empty: Picture, test: ForegroundTest) -> Bool[np.ndarray, "h w"]:
    """Return the foreground of a frame without specks.

    Faint objects are detected in slightly blurred images.
    """
    if test.least < MAX_THRESHOLD:
        return test(blurred(picture), blurred(empty))
    changed = test(to_floats(picture), to_floats(empty))
    without_specks: np.ndarray = ndimage.uniform_filter(changed.astype(np.float32), 3) > MIN_NEIGHBOUR_SHARE
    return without_specks


def blurred(picture: Picture) -> Float[np.ndarray, "3 h w"]:
    """Return the image smoothed by means of 3 x 3 pixels."""
    smooth: np.ndarray = ndimage.uniform_filter(to_floats(picture), (0, 3, 3))
    return smooth
