"""Removal of objects at rest from the background of a plain scene.

No statistics over time can tell an object that never moves from the background. In a plain scene, its surroundings can:
on the even ground of a dish or a tank, whatever stands out is an object if it is as large, and as dark or as bright, as
the moving objects. It is replaced by its surroundings.
"""

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy import ndimage

from scalor.video.pixels import Picture
from scalor.video.resize import resize, scaled_size

SURROUNDINGS_SIDE, WINDOW_SHARE = 128, 0.3
"""Longer side in pixels of the reduced image in which surroundings are estimated, and window of the median filter as a
share of its shorter side. Objects at rest must cover less than half of the window."""
MEASURED_FRAMES = 12
"""Approximate number of frames in which moving objects are measured."""
EVEN_DEVIATIONS, MIN_TOLERANCE = 3.0, 3.0
"""The ground is even up to this many standard deviations of the noise, and at least up to this many levels out of
255."""
OBJECT_TOLERANCES = 3.0
"""An object differs from the ground by more than this many times the tolerance for even ground."""
MIN_EVEN_SHARE = 0.85
"""Smallest share of even ground in a plain scene. Measured shares are .93 to .99 for cells, fish in a tank and
colloids, and .17 to .76 in streets."""
ONE_SIDED_SHARE = 0.9
"""Smallest share of what differs from the ground that must be darker, or that must be brighter."""
MIN_CONTRAST_RATIO = 0.35
"""Smallest contrast of an object at rest, as a share of the median contrast of moving objects."""
MIN_AREA_RATIO, MAX_AREA_RATIO = 0.1, 4.0
"""Smallest and largest area of an object at rest, in typical areas of moving objects. Smaller and larger things are
part of the background."""


def remove_resting(background: Picture, pictures: UInt8[np.ndarray, "N H W 3"]) -> Picture:
    """Return the background without objects at rest if the scene is plain, else unchanged.

    The `pictures` are frames in the lighting of the background.
    """
    ground = surroundings(background)
    height = _excess(background, ground)
    some = pictures[:: max(1, len(pictures) // MEASURED_FRAMES)]
    noise = float(np.median([np.median(np.abs(_excess(picture, ground) - height)[::4, ::4]) for picture in some]))
    tolerance = max(MIN_TOLERANCE, EVEN_DEVIATIONS * 1.48 * noise)
    if np.mean(np.abs(height) < tolerance) < MIN_EVEN_SHARE:
        return background
    threshold = OBJECT_TOLERANCES * tolerance
    heights = [_excess(picture, ground) for picture in some]
    strong = np.concatenate([one[np.abs(one) > threshold] for one in heights])
    if len(strong) == 0 or max(np.mean(strong > 0), np.mean(strong < 0)) < ONE_SIDED_SHARE:
        return background
    sign = 1 if np.mean(strong > 0) > 0.5 else -1
    peak = max(threshold, MIN_CONTRAST_RATIO * float(np.median(np.abs(strong))))
    usual = _usual_area([sign * one > threshold for one in heights])
    resting = _components(sign * height, tolerance, peak, (MIN_AREA_RATIO * usual, MAX_AREA_RATIO * usual))
    painted: np.ndarray = np.where(resting[..., None], ground, background)
    return painted


def surroundings(background: Picture) -> Picture:
    """Return the background without small structures, by a wide median filter, at the size of the background."""
    height, width = background.shape[:2]
    small = resize(background, scaled_size((height, width), min(1.0, SURROUNDINGS_SIDE / max(height, width))))
    window = max(3, round(WINDOW_SHARE * min(small.shape[:2])) | 1)
    return resize(ndimage.median_filter(small, (window, window, 1), mode="nearest"), (height, width))


def _excess(picture: Picture, ground: Picture) -> Float[np.ndarray, "H W"]:
    """Return by how many grey levels an image exceeds the ground, smoothed against the noise of single pixels."""
    difference: np.ndarray = picture.mean(-1, dtype=np.float32) - ground.mean(-1, dtype=np.float32)
    smooth: np.ndarray = ndimage.uniform_filter(difference, 3)
    return smooth


def _usual_area(masks: list[Bool[np.ndarray, "H W"]]) -> float:
    """Return the area in pixels of the connected component to which a typical foreground pixel belongs."""
    areas = np.concatenate([np.bincount(ndimage.label(mask)[0].ravel())[1:] for mask in masks])
    areas = np.sort(areas)
    return float(areas[np.searchsorted(np.cumsum(areas), areas.sum() / 2)])


def _components(
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
