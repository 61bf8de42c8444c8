"""Background of a still camera, in the lighting of each frame.

>>> background = Background.of(video)
>>> for frame in video:
...     empty = background.at(frame.picture)

Each pixel of the background is the most common value in sampled frames, after their lighting has been equalised. If the
scene changes as a whole (a lamp is switched on), there are several such images, called epochs, and each frame gets the
one that fits. In a plain scene, such as a dish under a microscope, objects that rest for the whole video are removed
too (`remove_resting`). In other scenes, an object that stays for most of the video is part of the background, because
nothing distinguishes the two.

No statistics over time can tell an object that never moves from the background. In a plain scene, its surroundings can:
on the even ground of a dish or a tank, whatever stands out is an object if it is as large, and as dark or as bright, as
the moving objects. It is replaced by its surroundings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy import ndimage

from scalor.errors import InputError
from scalor.still.light import IDENTITY_LIGHT, Light, Points, fit_light, in_light, points_of
from scalor.video import Video
from scalor.video.sources import Picture, shrink, shrunken_size

Pictures = UInt8[np.ndarray, "N H W 3"]

SAMPLED, FEWEST = 60, 12
"""Number of frames from which the background is estimated: SAMPLED, or fewer if images are large, but at least
FEWEST."""
MOST_BYTES = 2**27
"""Largest memory in bytes for the sampled frames, unless it holds fewer than FEWEST."""
WIDEST = 640
"""Largest side in pixels of the reduced sampled frames that are kept for measurements."""
MODE_SHARE = 0.3
"""Share of the frames that must show about the same value for that value to be common."""
CROWDED = 0.3
"""Share of the frames that differ from the median of a pixel, above which another value may be more common."""
MODE_MARGIN = 0.05
"""Share of the frames by which another value must be more common than the median to replace it."""
APART = 12
"""Largest difference, in levels out of 255, between values that are equal up to noise."""
CHANGED = 0.4
"""Smallest share of the pixels that differ between two epochs. Objects that come and go are not so large."""
LEAST_EPOCH = (6, 0.25)
"""Smallest number of sampled frames in an epoch, and smallest share of them. In fewer frames, moving objects may not be
in the minority."""
MOST_EPOCHS = 8
"""Largest number of epochs."""
MIN_AGREEING = 0.75
"""Share of the pixels that agree with the lighting of an epoch, below which the other epochs are tried."""
BETTER = 0.7
"""Largest ratio of the residual of another epoch to that of the current one for a change of epoch."""
STEP = 0.06
"""Smallest change of brightness between two frames that counts as a step, as a share of full brightness."""


@dataclass(frozen=True)
class FrameLight:
    """The lighting of one frame, for the health report."""

    light: Light
    brightness: float
    """Mean of the background in this lighting, from 0 to 1."""
    epoch: int
    """Index of the background image that fits this frame."""
    stepped: bool
    """Whether the brightness changed abruptly since the previous frame."""


class Background:
    """The background of a still camera, and a fit of its lighting that follows the frames.

    Create it with `Background.of(video)`, or from existing images of the background: `Background([picture])`.
    """

    def __init__(self, epochs: Sequence[Picture], samples: Sequence[Picture] = ()) -> None:
        if not epochs:
            raise InputError("epochs is empty: give at least one picture of the scene without objects.")
        self.epochs = tuple(np.ascontiguousarray(picture) for picture in epochs)
        self.samples = tuple(samples)
        """Frames from which the background was estimated, reduced to at most WIDEST pixels along a side."""
        self.light: FrameLight | None = None
        """Lighting of the last frame that was given to `at`; None before the first."""
        self._points = [points_of(picture) for picture in self.epochs]
        self._index: tuple[int, np.ndarray] | None = None

    @staticmethod
    def of(video: Video) -> "Background":
        """Estimate the background from frames sampled over the whole video.

        >>> background = Background.of(open_video("ants.mp4"))
        """
        height, width = video.size
        count = min(SAMPLED, max(FEWEST, MOST_BYTES // (3 * height * width)))
        pictures = video.sample(count)
        if len(pictures) < 2:
            raise InputError(f"{video.name} has 1 frame: finding what moves needs at least 2.")
        return Background.from_pictures(pictures)

    @staticmethod
    def from_pictures(pictures: Pictures) -> "Background":
        """Estimate the background from frames sampled over the whole video, in order.

        The frames are modified in place.
        """
        height, width = pictures.shape[1:3]
        size = shrunken_size((height, width), min(1.0, WIDEST / max(height, width)))
        samples = [shrink(picture, size).copy() for picture in pictures]
        return Background([remove_resting(scene(part), part) for part in parts_in_one_light(pictures)], samples)

    @property
    def still(self) -> Picture:
        """The background of the longest epoch, in the lighting of most frames."""
        return self.epochs[0]

    def shrunken(self, size: tuple[int, int]) -> "Background":
        """Return the background for images of another height and width, with a lighting state of its own."""
        return Background([shrink(picture, size) for picture in self.epochs])

    def sampled_pairs(self) -> list[tuple[Picture, Picture]]:
        """Return the reduced sampled frames, each with the background in its lighting."""
        if not self.samples:
            return []
        height, width = self.samples[0].shape[:2]
        small = self.shrunken((height, width))
        return [(picture, small.at(picture)) for picture in self.samples]

    def at(self, picture: Picture) -> Picture:
        """Return the background in the lighting of this image.

        Call it once for each frame, in order.
        """
        epoch, light = self._fit(points_of(picture))
        brightness = light.brightness(self._points[epoch])
        stepped = self.light is not None and abs(brightness - self.light.brightness) > STEP
        self.light = FrameLight(light, brightness, epoch, stepped)
        return self._in_light(epoch, light)

    def _fit(self, seen: Points) -> tuple[int, Light]:
        """Return the epoch that explains an image, and the lighting in it."""
        epoch, before = (self.light.epoch, self.light.light) if self.light else (0, IDENTITY_LIGHT)
        fits = {epoch: fit_light(seen, self._points[epoch], before)}
        if fits[epoch].agreeing < MIN_AGREEING or self.light is None:
            others = {n: fit_light(seen, scene) for n, scene in enumerate(self._points) if n != epoch}
            best = min(others, key=lambda n: others[n].remainder, default=epoch)
            if best != epoch and others[best].remainder < BETTER * fits[epoch].remainder:
                return best, others[best]
        return epoch, fits[epoch]

    def _in_light(self, epoch: int, light: Light) -> Picture:
        if light.is_usual():
            return self.epochs[epoch]
        if self._index is None or self._index[0] != epoch:
            self._index = epoch, self.epochs[epoch] + np.array([0, 256, 512], np.intp)
        # Mode "wrap" only avoids a range check of every pixel.
        lit: np.ndarray = np.take(light.table().ravel(), self._index[1], mode="wrap")
        return lit


def parts_in_one_light(pictures: Pictures) -> list[Pictures]:
    """Equalise the lighting of sampled frames, in place, and split them where the scene changes.

    Return the parts, the longest first.
    """
    parts = [pictures]
    done: list[Pictures] = []
    while parts:
        part = parts.pop()
        samples = [points_of(picture) for picture in part]
        lights = lights_of(samples)
        even = [in_light(points, light.inverse()) for points, light in zip(samples, lights, strict=True)]
        split = change_of_scene(np.stack(even)) if len(parts) + len(done) + 1 < MOST_EPOCHS else None
        if split is not None:
            parts += [part[:split], part[split:]]
            continue
        bring_to_one_light(part, lights)
        done.append(part)
    return sorted(done, key=len, reverse=True)


def bring_to_one_light(pictures: Pictures, lights: list[Light]) -> None:
    """Undo the lighting of each image, in place.

    Pixels that the lighting clipped are copied from an image that needed no correction.
    """
    usual = [number for number, light in enumerate(lights) if light.is_usual()]
    for number, light in enumerate(lights):
        if light.is_usual():
            continue
        picture, back = pictures[number], light.inverse()
        table = back.table()
        clipped = ((picture > 250) & (table[:, 255] < 250)) | ((picture < 5) & (table[:, 0] > 5))
        picture[:] = back.applied(picture)
        if usual and clipped.any():
            np.copyto(picture, pictures[usual[number % len(usual)]], where=clipped)


def lights_of(samples: list[Points]) -> list[Light]:
    """Return the lighting of each sample, relative to a common reference.

    The lighting of the reference is that of a sample that is neither clipped nor unusually bright or dark.
    """
    clipped = np.array([((points < 5) | (points > 250)).mean() for points in samples])
    brightness = np.array([points.mean() for points in samples])
    allowed = np.flatnonzero(clipped <= clipped.min() + 0.01)
    reference = samples[allowed[np.argsort(brightness[allowed])[len(allowed) // 2]]]
    # The first reference contains objects. The median of all samples in its lighting is a better reference.
    lights = [fit_light(points, reference) for points in samples]
    median = np.median([in_light(points, light.inverse()) for points, light in zip(samples, lights, strict=True)], 0)
    return [fit_light(points, median.astype(np.float32), light) for points, light in zip(samples, lights, strict=True)]


def change_of_scene(samples: Float[np.ndarray, "N 3 P"]) -> int | None:
    """Return the first sample of another epoch, from which on most of the scene looks different, or None."""
    least = max(LEAST_EPOCH[0], round(LEAST_EPOCH[1] * len(samples)))
    largest, where = 0.0, None
    for first in range(least, len(samples) - least + 1):
        parts = samples[first - least : first], samples[first : first + least]
        before, after = (np.median(part, 0) for part in parts)
        if (np.abs(after - before).max(0) > APART).mean() < CHANGED:
            continue
        # Medians show whether the scene changes, but not exactly when. Means differ most at the exact time.
        change = float(np.abs(parts[1].mean(0) - parts[0].mean(0)).mean())
        if change > largest:
            largest, where = change, first
    return where


def scene(pictures: Pictures) -> Picture:
    """Return the most common value of each pixel: the median, unless another value is in more frames."""
    common: np.ndarray = np.empty(pictures.shape[1:], np.uint8)
    middle = (len(pictures) - 1) // 2
    for row in range(len(common)):  # row by row, because sorting makes copies
        values = pictures[:, row].reshape(len(pictures), -1)
        median = np.partition(values, middle, 0)[middle]
        crowded = share_near(values, median) < 1 - CROWDED
        if crowded.any():
            median[crowded] = most_common(values[:, crowded], median[crowded])
        common[row] = median.reshape(common.shape[1:])
    return common


def most_common(values: UInt8[np.ndarray, "N P"], median: UInt8[np.ndarray, " P"]) -> UInt8[np.ndarray, " P"]:
    """Return the most common value of each column, which is its median unless another value is clearly more common.

    The other value is the middle of the narrowest range that holds a share of MODE_SHARE of the values.
    """
    ordered = np.sort(values, 0)
    held = max(2, round(MODE_SHARE * len(values)))
    width = ordered[held - 1 :] - ordered[: len(values) - held + 1]
    dense: np.ndarray = ordered[width.argmin(0) + held // 2, np.arange(values.shape[1])]
    return np.where(share_near(values, dense) > share_near(values, median) + MODE_MARGIN, dense, median)


def share_near(values: UInt8[np.ndarray, "N P"], value: UInt8[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
    """Return the share of the values of each column that are within APART of a given value."""
    about: np.ndarray = (np.maximum(values, value) - np.minimum(values, value) <= APART).mean(0)
    return about


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
