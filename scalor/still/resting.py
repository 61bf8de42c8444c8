"""Things that rest for most of a video, taken out of the picture of its scene.

No statistics over time can tell a thing that never moves from the scene. In a plain scene its place does: before the
even ground of a dish or a tank whatever stands out is a thing, if it is as large, and as dark or as bright, as what
does move. It is painted over with its surroundings. Scenes that are not plain, such as streets, stay as they are.
"""

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy import ndimage

from scalor.video.resize import shrink, shrunken_size
from scalor.video.sources import Picture

WIDTH, AROUND = 128, 0.3
"""Pixels along the longer side of the picture in which surroundings are made, and the share of its shorter side over
which a median is taken. Things that rest must cover less than half of that."""
LOOKED_AT = 12
"""Frames in which things that move are measured."""
TOLERANCE, SEEN = 3.0, 3.0
"""The ground is even up to so many deviations of the noise, at least so many levels of 255; a thing is so many times
that above it."""
PLAIN = 0.85
"""Share of the scene that is even ground: .93 to .99 for cells, fish in a tank and colloids, .17 to .76 in streets."""
ONE_SIDED = 0.9
"""Share of what differs from the ground that is darker, or that is brighter."""
AS_STRONG = 0.35
"""Of the usual contrast of things: what differs less is no thing at rest."""
LARGEST, SMALLEST = 4.0, 0.1
"""Of the usual area of things: what is larger or smaller belongs to the scene."""


def without_resting(scene: Picture, pictures: UInt8[np.ndarray, "N H W 3"]) -> Picture:
    """The scene with things at rest painted over, if it is plain. `pictures` are frames in its light."""
    ground = surroundings(scene)
    height = above(scene, ground)
    some = pictures[:: max(1, len(pictures) // LOOKED_AT)]
    noise = float(np.median([np.median(np.abs(above(picture, ground) - height)[::4, ::4]) for picture in some]))
    tolerance = max(TOLERANCE, TOLERANCE * 1.48 * noise)
    if np.mean(np.abs(height) < tolerance) < PLAIN:
        return scene
    heights = [above(picture, ground) for picture in some]
    strong = np.concatenate([one[np.abs(one) > SEEN * tolerance] for one in heights])
    if len(strong) == 0 or max(np.mean(strong > 0), np.mean(strong < 0)) < ONE_SIDED:
        return scene
    sign = 1 if np.mean(strong > 0) > 0.5 else -1
    least = max(SEEN * tolerance, AS_STRONG * float(np.median(np.abs(strong))))
    usual = usual_area([sign * one > SEEN * tolerance for one in heights])
    resting = things(sign * height, tolerance, least, (SMALLEST * usual, LARGEST * usual))
    painted: np.ndarray = np.where(resting[..., None], ground, scene)
    return painted


def surroundings(scene: Picture) -> Picture:
    """The scene without anything small: a wide median, as large as the scene."""
    height, width = scene.shape[:2]
    small = shrink(scene, shrunken_size((height, width), min(1.0, WIDTH / max(height, width))))
    window = max(3, round(AROUND * min(small.shape[:2])) | 1)
    return shrink(ndimage.median_filter(small, (window, window, 1), mode="nearest"), (height, width))


def above(picture: Picture, ground: Picture) -> Float[np.ndarray, "H W"]:
    """By how many levels the grey of a picture is above the ground's, less the noise of single pixels."""
    apart: np.ndarray = picture.mean(-1, dtype=np.float32) - ground.mean(-1, dtype=np.float32)
    smooth: np.ndarray = ndimage.uniform_filter(apart, 3)
    return smooth


def usual_area(masks: list[Bool[np.ndarray, "H W"]]) -> float:
    """Pixels of the thing that a typical pixel of a thing belongs to."""
    areas = np.concatenate([np.bincount(ndimage.label(mask)[0].ravel())[1:] for mask in masks])
    areas = np.sort(areas)
    return float(areas[np.searchsorted(np.cumsum(areas), areas.sum() / 2)])


def things(
    height: Float[np.ndarray, "H W"], low: float, high: float, area: tuple[float, float]
) -> Bool[np.ndarray, "H W"]:
    """Connected pixels above `low` of which some are above `high`, of an area within these bounds, with their rims."""
    labels, count = ndimage.label(height > low)
    areas = np.bincount(labels.ravel(), minlength=count + 1)
    peaks = np.bincount(labels.ravel(), (height > high).ravel(), count + 1)
    chosen = (peaks > 0) & (areas >= area[0]) & (areas <= area[1])
    chosen[0] = False
    rimmed: np.ndarray = ndimage.binary_dilation(chosen[labels], iterations=2)
    return rimmed
