"""Removal of objects that rest for most of a video from the background of a plain scene.

No statistics over time can tell an object that never moves from the background. In a plain scene, its surroundings can:
on the even ground of a dish or a tank, whatever stands out is an object if it is as large, and as dark or as bright, as
the moving objects. It is replaced by its surroundings. Scenes that are not plain, such as streets, stay unchanged.
"""

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy import ndimage

from scalor.video.pixels import shrink, shrunken_size
from scalor.video.sources import Picture

WIDTH, AROUND = 128, 0.3
"""Longer side in pixels of the reduced image in which surroundings are estimated, and window of the median filter as a
share of its shorter side. Objects at rest must cover less than half of the window."""
LOOKED_AT = 12
"""Approximate number of frames in which moving objects are measured."""
TOLERANCE, SEEN = 3.0, 3.0
"""The ground is even up to TOLERANCE standard deviations of the noise, and at least TOLERANCE levels out of 255. An
object differs from it by more than SEEN times that."""
PLAIN = 0.85
"""Smallest share of even ground in a plain scene. Measured shares are .93 to .99 for cells, fish in a tank and
colloids, and .17 to .76 in streets."""
ONE_SIDED = 0.9
"""Smallest share of what differs from the ground that must be darker, or that must be brighter."""
AS_STRONG = 0.35
"""Smallest contrast of an object at rest, as a share of the median contrast of moving objects."""
LARGEST, SMALLEST = 4.0, 0.1
"""Largest and smallest area of an object at rest, in typical areas of moving objects. Larger and smaller things are
part of the background."""


def remove_resting(scene: Picture, pictures: UInt8[np.ndarray, "N H W 3"]) -> Picture:
    """Return the background without objects at rest if the scene is plain, else unchanged.

    The `pictures` are frames in the lighting of the background.
    """
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
    """Return the background without small structures, by a wide median filter, at the size of the background."""
    height, width = scene.shape[:2]
    small = shrink(scene, shrunken_size((height, width), min(1.0, WIDTH / max(height, width))))
    window = max(3, round(AROUND * min(small.shape[:2])) | 1)
    return shrink(ndimage.median_filter(small, (window, window, 1), mode="nearest"), (height, width))


def above(picture: Picture, ground: Picture) -> Float[np.ndarray, "H W"]:
    """Return by how many grey levels an image exceeds the ground, smoothed against the noise of single pixels."""
    apart: np.ndarray = picture.mean(-1, dtype=np.float32) - ground.mean(-1, dtype=np.float32)
    smooth: np.ndarray = ndimage.uniform_filter(apart, 3)
    return smooth


def usual_area(masks: list[Bool[np.ndarray, "H W"]]) -> float:
    """Return the area in pixels of the connected component to which a typical foreground pixel belongs."""
    areas = np.concatenate([np.bincount(ndimage.label(mask)[0].ravel())[1:] for mask in masks])
    areas = np.sort(areas)
    return float(areas[np.searchsorted(np.cumsum(areas), areas.sum() / 2)])


def things(
    height: Float[np.ndarray, "H W"], low: float, high: float, area: tuple[float, float]
) -> Bool[np.ndarray, "H W"]:
    """Return the connected components above `low` that exceed `high` somewhere and whose area is within these bounds.

    They are dilated to include their rims.
    """
    labels, count = ndimage.label(height > low)
    areas = np.bincount(labels.ravel(), minlength=count + 1)
    peaks = np.bincount(labels.ravel(), (height > high).ravel(), count + 1)
    chosen = (peaks > 0) & (areas >= area[0]) & (areas <= area[1])
    chosen[0] = False
    rimmed: np.ndarray = ndimage.binary_dilation(chosen[labels], iterations=2)
    return rimmed
