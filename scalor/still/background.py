"""The scene without objects, before a camera that stands still, in the light of each frame.

>>> background = Background.of(video)
>>> for frame in video:
...     empty = background.at(frame.picture)

Each pixel is the most common of what sampled frames show there, once they are brought to one light. A scene that
changes as a whole (a lamp is switched on) has several such pictures, its epochs, of which every frame gets the one
that fits. In a plain scene, such as a dish under a microscope, what rests for all of the video is left out too
(`resting`). Elsewhere a thing that stays for most of the video belongs to the scene: nothing tells them apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from scalor.errors import InputError
from scalor.still.light import USUAL, Light, Points, fit_light, in_light, points_of
from scalor.still.resting import without_resting
from scalor.video import Video
from scalor.video.resize import shrink, shrunken_size

Picture = UInt8[np.ndarray, "H W 3"]
Pictures = UInt8[np.ndarray, "N H W 3"]

SAMPLED, FEWEST = 60, 12
"""Frames from which the scene is made: at most, and of the largest pictures."""
MOST_BYTES = 2**27
"""Of sampled frames, unless there are fewer than FEWEST."""
WIDEST = 640
"""Pixels along a side of the sampled frames that are kept to look at."""
PLENTY = 0.3
"""Share of the frames that make a value common."""
CROWDED = 0.3
"""Share of the frames that show something else than the median, from which on another value may be more common."""
CLEARLY = 0.05
"""Share of the frames by which it must be."""
APART = 12
"""Levels out of 255 between two values that are not one and its noise."""
CHANGED = 0.4
"""Share of the pixels that two epochs differ in. Things that come and go are not so large."""
LEAST_EPOCH = (6, 0.25)
"""Sampled frames, and share of them, that make an epoch: in fewer, things that move are not in the minority."""
MOST_EPOCHS = 8
POOR = 0.75
"""Share of the pixels that agree with an epoch's light; where fewer do, the other epochs are tried."""
BETTER = 0.7
"""How much smaller the remainder of another epoch must be to change to it."""
STEP = 0.06
"""In shares of full brightness: a faster change of the light from one frame to the next is a step."""


@dataclass(frozen=True)
class FrameLight:
    """What a health report may say of the light of one frame."""

    light: Light
    brightness: float
    """Mean of the scene in this light, from 0 to 1."""
    epoch: int
    """Which of the background's pictures fits this frame."""
    stepped: bool
    """Whether the light is clearly another than in the frame before."""


class Background:
    """Estimate the scene without objects, and follow its light.

    Made by `Background.of(video)`, or from pictures of the scene that are at hand: `Background([picture])`.
    """

    def __init__(self, epochs: Sequence[Picture], samples: Sequence[Picture] = ()) -> None:
        if not epochs:
            raise InputError("epochs is empty: give at least one picture of the scene without objects.")
        self.epochs = tuple(np.ascontiguousarray(picture) for picture in epochs)
        self.samples = tuple(samples)
        """Frames of the video that it was made from, shrunken to WIDEST."""
        self.light: FrameLight | None = None
        """Of the frame that `at` was last asked for; None before the first."""
        self._points = [points_of(picture) for picture in self.epochs]
        self._index: tuple[int, np.ndarray] | None = None

    @staticmethod
    def of(video: Video) -> "Background":
        """Sample frames from all of a video and make its background of them.

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
        """Make a background of frames in their order, sampled from all of a video. They are changed."""
        height, width = pictures.shape[1:3]
        size = shrunken_size((height, width), min(1.0, WIDEST / max(height, width)))
        samples = [shrink(picture, size).copy() for picture in pictures]
        return Background([without_resting(scene(part), part) for part in parts_in_one_light(pictures)], samples)

    @property
    def still(self) -> Picture:
        """The scene in the light that most frames have, of the longest epoch."""
        return self.epochs[0]

    def shrunken(self, size: tuple[int, int]) -> "Background":
        """The same for pictures of another height and width, with a running state of its own."""
        return Background([shrink(picture, size) for picture in self.epochs])

    def sampled_pairs(self) -> list[tuple[Picture, Picture]]:
        """The sampled frames, shrunken, each with the background in its light."""
        if not self.samples:
            return []
        height, width = self.samples[0].shape[:2]
        small = self.shrunken((height, width))
        return [(picture, small.at(picture)) for picture in self.samples]

    def at(self, picture: Picture) -> Picture:
        """The background in the light of this picture. Call it once for each frame, in their order."""
        epoch, light = self._fit(points_of(picture))
        brightness = light.brightness(self._points[epoch])
        stepped = self.light is not None and abs(brightness - self.light.brightness) > STEP
        self.light = FrameLight(light, brightness, epoch, stepped)
        return self._in_light(epoch, light)

    def _fit(self, seen: Points) -> tuple[int, Light]:
        """The epoch that explains a picture, and the light in it."""
        epoch, before = (self.light.epoch, self.light.light) if self.light else (0, USUAL)
        fits = {epoch: fit_light(seen, self._points[epoch], before)}
        if fits[epoch].agreeing < POOR or self.light is None:
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
        # "wrap" only because it spares a check of every pixel.
        lit: np.ndarray = np.take(light.table().ravel(), self._index[1], mode="wrap")
        return lit


def parts_in_one_light(pictures: Pictures) -> list[Pictures]:
    """Sampled frames brought to one light, in place; in several parts, the longest first, where the scene changes."""
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
    """Undo the light of each picture, in place. What it has clipped is taken from a picture that has not."""
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
    """Of each sample beside one that is neither clipped nor unusually bright or dark."""
    clipped = np.array([((points < 5) | (points > 250)).mean() for points in samples])
    brightness = np.array([points.mean() for points in samples])
    allowed = np.flatnonzero(clipped <= clipped.min() + 0.01)
    reference = samples[allowed[np.argsort(brightness[allowed])[len(allowed) // 2]]]
    # Objects are in the first reference; the median of what all frames look like in its light is a better one.
    lights = [fit_light(points, reference) for points in samples]
    median = np.median([in_light(points, light.inverse()) for points, light in zip(samples, lights, strict=True)], 0)
    return [fit_light(points, median.astype(np.float32), light) for points, light in zip(samples, lights, strict=True)]


def change_of_scene(samples: Float[np.ndarray, "N 3 P"]) -> int | None:
    """The first sample of another epoch, where most of the scene looks different from then on."""
    least = max(LEAST_EPOCH[0], round(LEAST_EPOCH[1] * len(samples)))
    largest, where = 0.0, None
    for first in range(least, len(samples) - least + 1):
        parts = samples[first - least : first], samples[first : first + least]
        before, after = (np.median(part, 0) for part in parts)
        if (np.abs(after - before).max(0) > APART).mean() < CHANGED:
            continue
        # Medians say whether the scene changes, and are the same about that time; means are farthest apart just then.
        change = float(np.abs(parts[1].mean(0) - parts[0].mean(0)).mean())
        if change > largest:
            largest, where = change, first
    return where


def scene(pictures: Pictures) -> Picture:
    """The most common value of each pixel: the median, unless another value is in more frames."""
    common: np.ndarray = np.empty(pictures.shape[1:], np.uint8)
    middle = (len(pictures) - 1) // 2
    for row in range(len(common)):  # row by row, as sorting makes copies
        values = pictures[:, row].reshape(len(pictures), -1)
        median = np.partition(values, middle, 0)[middle]
        crowded = holders(values, median) < 1 - CROWDED
        if crowded.any():
            median[crowded] = most_common(values[:, crowded], median[crowded])
        common[row] = median.reshape(common.shape[1:])
    return common


def most_common(values: UInt8[np.ndarray, "N P"], median: UInt8[np.ndarray, " P"]) -> UInt8[np.ndarray, " P"]:
    """The middle of the narrowest range that holds PLENTY of the values of each column, where more frames show about
    that than show about the median."""
    ordered = np.sort(values, 0)
    held = max(2, round(PLENTY * len(values)))
    width = ordered[held - 1 :] - ordered[: len(values) - held + 1]
    dense: np.ndarray = ordered[width.argmin(0) + held // 2, np.arange(values.shape[1])]
    return np.where(holders(values, dense) > holders(values, median) + CLEARLY, dense, median)


def holders(values: UInt8[np.ndarray, "N P"], value: UInt8[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
    """Share of the values of each column that are about this one."""
    about: np.ndarray = (np.maximum(values, value) - np.minimum(values, value) <= APART).mean(0)
    return about
