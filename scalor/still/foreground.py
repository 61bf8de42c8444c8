"""Foreground: the pixels that are neither noise nor the scene in a shadow.

A shadow darkens the scene and leaves the rest of it as it is: its colours, where it has several, and else its texture.
Where a video has no colours that could tell (grey film, one tint throughout) and the scene no texture, everything
that differs counts, since most that is dark there is an object: fish in a light tank, walkers on a pavement.

>>> test = ForegroundTest.of([(picture, background.at(picture)) for picture in video.sample(20)])
>>> test(to_floats(picture), to_floats(background.at(picture)))

The numbers were chosen on the first 477 frames of PETS 2009 S2L1, view 1, by looking at what they do and by how they
score, and looked at on six other videos of streets, fish, cells and colloids.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt8
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage

Picture = Float[np.ndarray, "3 H W"]
"""Colours in [0, 1]."""
Bytes = UInt8[np.ndarray, "H W 3"]

DETAIL = 12
"""Objects whose narrower side has at least twice so many pixels are looked at in a coarser picture."""
CONTRAST, FAINTEST = 0.1, 0.012
"""How much objects differ from the scene, pixels in [0, 1]: strong ones at least so much, and any;"""
NOTABLE = 0.25
"""and this share of what the strongest differences of a video are."""
STRONG = 99.9
"""Percentile of the differences that strong ones reach."""
NOISE = 4.0
"""Nothing within so many deviations of the noise stands out."""
QUIET, TO_DEVIATION = 25, 3.14
"""Percentile of the differences that is noise even where objects fill half of a frame, and what makes it the standard
deviation of a normal distribution."""
LOOKED_AT = 20
"""Sampled frames by which a test is chosen, at most."""
SHADE = 0.5
"""A shadow leaves at least this share of the light, and the colour and the texture as they are."""
TINT = 0.05
"""How far off a colour may be, at the same light, pixels in [0, 1]."""
COLOURFUL = 0.1
"""Share of what differs from the scene that has another colour, from which on colour tells objects from shadows. It is
.2 to .3 in street videos, and at most .05 in grey ones and in those of one tint."""
WINDOW = 5
"""Pixels along a side of the square in which texture is compared,"""
TEXTURE, KEPT = 3.0, 0.6
"""where the scene varies by so many deviations of the noise, and the correlation that a shadow keeps."""
SPECK = 0.08
"""What is smaller than this share of an object's size is no part of one."""
GAP = (0.15, 0.1)
"""Holes and gaps of this share of an object's height and width are closed."""


@dataclass(frozen=True)
class ForegroundTest:
    """Tell objects from the scene, for one video. Without numbers: of strong things in a colourful video."""

    least: float = CONTRAST
    """Nothing fainter stands out."""
    colourful: bool = True
    """Whether colour tells objects from shadows in this video."""

    @staticmethod
    def of(pairs: Sequence[tuple[Bytes, Bytes]]) -> "ForegroundTest":
        """Choose it by what sampled frames, each with its background, differ in."""
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
            tinted += int(tints(picture[:, there], background[:, there]).sum())
        return ForegroundTest(least, tinted > COLOURFUL * outside)

    def __call__(self, picture: Picture, background: Picture) -> Bool[np.ndarray, "H W"]:
        """The pixels of a frame that are neither noise nor the background in a shadow."""
        outside = beyond(picture, background, self.least)
        there = picture[:, outside], background[:, outside]
        light = relative_light(*there)
        darker = (light >= SHADE) & (light <= 1)
        if self.colourful:
            outside[outside] = ~darker | tints(*there)
        elif darker.any():
            rows, columns = (side[darker] for side in np.nonzero(outside))
            kept = keeps_texture(picture.mean(0), background.mean(0), rows, columns)
            outside[rows[kept], columns[kept]] = False
        return outside


ORDINARY = ForegroundTest()
"""For a video of which nothing is known."""


def to_floats(picture: Bytes) -> Picture:
    """The picture with colours in [0, 1], channels first."""
    first: np.ndarray = np.ascontiguousarray(picture.transpose(2, 0, 1))
    floats: np.ndarray = np.multiply(first, np.float32(1 / 255), dtype=np.float32)
    return floats


def thinned(pairs: Sequence[tuple[Bytes, Bytes]], most: int) -> Sequence[tuple[Bytes, Bytes]]:
    """So many of them at most, evenly spread."""
    return [pairs[number * len(pairs) // most] for number in range(most)] if len(pairs) > most else pairs


def difference(picture: Picture, background: Picture) -> Float[np.ndarray, "H W"]:
    """Of each pixel, in the colour that is farthest off."""
    apart: np.ndarray = np.abs(picture - background).max(0)
    return apart


def least_for(strength: float) -> float:
    """What counts in a video whose strong differences are so large: less where all is faint."""
    return min(CONTRAST, max(FAINTEST, NOTABLE * strength))


def noise_of(picture: Float[np.ndarray, "C H W"], background: Float[np.ndarray, "C H W"]) -> float:
    """Standard deviation of the differences where nothing moves, of the noisiest colour."""
    apart = np.abs(picture[:, ::4, ::4] - background[:, ::4, ::4]).reshape(len(picture), -1)
    return TO_DEVIATION * float(np.percentile(apart, QUIET, axis=1).max())


def beyond(picture: Picture, background: Picture, least: float) -> Bool[np.ndarray, "H W"]:
    """Pixels that are no noise."""
    apart = difference(picture, background)
    outside: np.ndarray = apart > max(least, NOISE * noise_of(picture, background))
    return outside


def relative_light(seen: Float[np.ndarray, "3 P"], scene: Float[np.ndarray, "3 P"]) -> Float[np.ndarray, " P"]:
    """How bright pixels are beside the scene."""
    light: np.ndarray = (seen * scene).sum(0) / np.maximum((scene**2).sum(0), 1e-6)
    return light


def tints(seen: Float[np.ndarray, "3 P"], scene: Float[np.ndarray, "3 P"]) -> Bool[np.ndarray, " P"]:
    """Whether pixels have another colour than the scene, whatever their light."""
    tinted: np.ndarray = np.abs(seen - relative_light(seen, scene) * scene).max(0) > TINT
    return tinted


def keeps_texture(
    picture: Float[np.ndarray, "H W"], scene: Float[np.ndarray, "H W"], rows: np.ndarray, columns: np.ndarray
) -> Bool[np.ndarray, " P"]:
    """Whether the surroundings of pixels show the texture of the scene, only darker. Where that has none: no."""
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
    """Pixels along a side of the squares in which objects of this height and width are seen well enough."""
    return max(1, int(min(size) // DETAIL))


def shrink(picture: Picture, factor: int) -> Picture:
    """Means of squares of `factor` pixels; what is left over at the right and below is cut off."""
    height, width = (side // factor * factor for side in picture.shape[1:])
    parts = [picture[:, y:height:factor, x:width:factor] for y in range(factor) for x in range(factor)]
    # Frames often come with their channels last in memory, in which everything below would be slow.
    return np.ascontiguousarray(sum(parts[1:], parts[0]) / len(parts))


def close(inside: Bool[np.ndarray, "H W"], size: tuple[float, float]) -> Bool[np.ndarray, "H W"]:
    """Without specks, then without gaps."""
    share = inside.astype(np.float32)
    for axis, side in enumerate(size):
        share = ndimage.uniform_filter1d(share, round(SPECK * side) | 1, axis)
    closed = (share > 0.45).astype(np.uint8)
    for grow in (ndimage.maximum_filter1d, ndimage.minimum_filter1d):
        for axis, (side, gap) in enumerate(zip(size, GAP, strict=True)):
            closed = grow(closed, round(gap * side) | 1, axis)
    return closed > 0
