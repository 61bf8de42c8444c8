"""What stands out from a still scene: the pixels that are neither noise nor the scene in a shadow.

Everything scales with the size of an object. The numbers were chosen on the first 477 frames of PETS 2009 S2L1,
view 1, by looking at what they do and by how they score.
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

Picture = Float[np.ndarray, "3 H W"]
"""Colours in [0, 1]."""

DETAIL = 12
"""Objects whose narrower side has at least twice so many pixels are looked at in a coarser picture."""
CONTRAST = 0.1
"""Nothing fainter stands out, pixels in [0, 1];"""
NOISE = 6.0
"""nor anything within so many standard deviations of the noise."""
SHADE = 0.5
"""A shadow leaves at least this share of the light, and the colour as it is."""
SPECK = 0.08
"""What is smaller than this share of an object's size is no part of one."""
GAP = (0.15, 0.1)
"""Holes and gaps of this share of an object's height and width are closed."""


def coarseness(size: tuple[float, float]) -> int:
    """Pixels along a side of the squares in which objects of this height and width are seen well enough."""
    return max(1, int(min(size) // DETAIL))


def shrink(picture: Picture, factor: int) -> Picture:
    """Means of squares of `factor` pixels; what is left over at the right and below is cut off."""
    height, width = (side // factor * factor for side in picture.shape[1:])
    parts = [picture[:, y:height:factor, x:width:factor] for y in range(factor) for x in range(factor)]
    # Frames often come with their channels last in memory, in which everything below would be slow.
    return np.ascontiguousarray(sum(parts[1:], parts[0]) / len(parts))


def stands_out(picture: Picture, background: Picture) -> Bool[np.ndarray, "H W"]:
    """Pixels that are neither noise nor the background in a shadow."""
    contrast = np.abs(picture - background).max(0)
    noise = 1.48 * float(np.median(contrast[::4, ::4]))
    outside: np.ndarray = contrast > max(CONTRAST, NOISE * noise)
    there = picture[:, outside], background[:, outside]
    light = (there[0] * there[1]).sum(0) / np.maximum((there[1] ** 2).sum(0), 1e-6)
    tinted = np.abs(there[0] - light * there[1]).max(0) > CONTRAST / 2
    outside[outside] = tinted | (light < SHADE) | (light > 1)
    return outside


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
