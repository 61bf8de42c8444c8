"""Epochs of a still camera's video: parts in which its scene stays the same, with their lighting equalised."""

import numpy as np
from jaxtyping import Float, UInt8

from scalor.still.light import Light, Points, fit_light, in_light, points_of
from scalor.still.median import EQUAL_LEVELS

Pictures = UInt8[np.ndarray, "N H W 3"]

MIN_CHANGED_SHARE = 0.4
"""Smallest share of the pixels that differ between two epochs. Objects that come and go are not so large."""
MIN_EPOCH = (6, 0.25)
"""Smallest number of sampled frames in an epoch, and smallest share of them. In fewer frames, moving objects may not be
in the minority."""
MAX_EPOCHS = 8
"""Largest number of epochs."""


def parts_in_one_light(pictures: Pictures) -> list[UInt8[np.ndarray, "_ H W 3"]]:
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
        split = change_of_scene(np.stack(even)) if len(parts) + len(done) + 1 < MAX_EPOCHS else None
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
    least = max(MIN_EPOCH[0], round(MIN_EPOCH[1] * len(samples)))
    largest, where = 0.0, None
    for first in range(least, len(samples) - least + 1):
        parts = samples[first - least : first], samples[first : first + least]
        before, after = (np.median(part, 0) for part in parts)
        if (np.abs(after - before).max(0) > EQUAL_LEVELS).mean() < MIN_CHANGED_SHARE:
            continue
        # Medians show whether the scene changes, but not exactly when. Means differ most at the exact time.
        change = float(np.abs(parts[1].mean(0) - parts[0].mean(0)).mean())
        if change > largest:
            largest, where = change, first
    return where
