"""What a video says of itself before anything is learned: the empty scene, and how large, fast and many its objects
are. The camera must stand still."""

import math
from dataclasses import dataclass, fields
from itertools import islice

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from scipy import ndimage, stats

from scalor.errors import InputError
from scalor.perspective import FLAT, Perspective, sizes_at
from scalor.video import Video
from scalor.video.shrinking import shrink, shrunken_size

SAMPLED = 60
"""Frames from which the empty scene is made: the median of each pixel."""
WATCHED = 200
"""Frames in a row in which speeds are measured."""
GAPS, FAR = (1, 2, 4, 8), 2.0
"""Speeds are measured over the first of these numbers of frames in which things move so many pixels, or the last."""
WIDEST = 640
"""Pixels: larger videos are surveyed at a smaller size."""
CLEARLY, NOTABLY = 3.0, 0.25
"""A pixel has changed when it differs by this many noise deviations (of the colour that is farthest off, which is some
half more than of one alone), and by this share of what strong ones do."""
STRONG = 99.9
"""Percentile of the differences that strong ones reach."""
LEAST = 0.15
"""Share of the area of an object's box below which a change is not one."""
SPECK = 8
"""Changes of fewer pixels are noise."""
MANY, AGREEING = 40, 0.7
"""Things seen, and the rank correlation of their height and their place, that make a perspective."""
ALIKE = 0.3
"""How far apart the logarithms of height by width of single things may be."""
APART = 0.1
"""Things are compared that are farther apart than this share of the picture's height."""


@dataclass(frozen=True)
class Survey:
    """All in pixels of the video and frames of the video."""

    object_size: tuple[float, float]
    """Typical height and width."""
    speed: float
    """Pixels a frame; 0 where it could not be measured."""
    objects: float
    """In a frame, on average."""
    strength: float
    """How much the objects' pixels differ from the scene, in shares of full brightness."""
    perspective: Perspective


@dataclass(frozen=True)
class Blobs:
    """What differs from the empty scene in a frame, one connected piece after another."""

    centre: Float[np.ndarray, "N 2"]
    """x and y."""
    size: Float[np.ndarray, "N 2"]
    """Height and width."""
    area: Int[np.ndarray, " N"]
    whole: Bool[np.ndarray, " N"]
    """Whether it lies inside the picture, not at its border."""


BLOB_FIELDS = tuple(field.name for field in fields(Blobs))


def empty_scene(video: Video) -> UInt8[np.ndarray, "H W 3"]:
    """The median of frames from all of the video: objects that move on are in few of them."""
    pictures = video.sample(SAMPLED)
    if len(pictures) < 2:
        raise InputError(f"{video.name} has 1 frame: finding what moves needs at least 2.")
    still: np.ndarray = np.empty(pictures.shape[1:], np.uint8)
    for row in range(len(still)):  # row by row: the median makes copies of what it sorts
        still[row] = np.median(pictures[:, row], axis=0)
    return still


def changes(
    picture: UInt8[np.ndarray, "H W 3"], still: UInt8[np.ndarray, "H W 3"], strength: float
) -> Bool[np.ndarray, "H W"]:
    """The pixels that clearly differ from the empty scene; `strength` is what strong differences are."""
    apart = difference(picture, still)
    noise = 1.48 * float(np.median(apart))
    changed = apart > max(CLEARLY * noise, NOTABLY * strength)
    without_specks_and_gaps: np.ndarray = ndimage.binary_closing(ndimage.binary_opening(changed), iterations=2)
    return without_specks_and_gaps


def difference(picture: UInt8[np.ndarray, "H W 3"], still: UInt8[np.ndarray, "H W 3"]) -> Float[np.ndarray, "H W"]:
    """Of each pixel with those around it from the empty scene, in shares of full brightness."""
    apart: np.ndarray = picture.astype(np.float32) - still
    smooth: np.ndarray = np.abs(ndimage.uniform_filter(apart, (3, 3, 0))).max(-1) / 255
    return smooth


def find_blobs(changed: Bool[np.ndarray, "H W"]) -> Blobs:
    labels, count = ndimage.label(changed)
    boxes = ndimage.find_objects(labels)
    area = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    edges = np.array([(b[1].start, b[0].start, b[1].stop, b[0].stop) for b in boxes], float).reshape(-1, 4)
    height, width = changed.shape
    whole = (edges[:, :2] > 0).all(1) & (edges[:, 2] < width) & (edges[:, 3] < height)
    blobs = Blobs((edges[:, :2] + edges[:, 2:]) / 2, (edges[:, 2:] - edges[:, :2])[:, ::-1], area, whole)
    large = area >= SPECK
    return Blobs(blobs.centre[large], blobs.size[large], area[large], whole[large])


def large_enough(
    blobs: Blobs, object_size: tuple[float, float], height: int, perspective: Perspective
) -> Bool[np.ndarray, " N"]:
    """Those that may be an object of this typical size, for where they are in a picture of this height."""
    sizes = sizes_at(blobs.centre[:, 1], height, perspective)
    large: np.ndarray = blobs.area >= LEAST * math.prod(object_size) * sizes**2
    return large


def survey(video: Video, still: UInt8[np.ndarray, "H W 3"], object_size: tuple[float, float] | None = None) -> Survey:
    """What the video says, with an object's size taken for granted where it is given."""
    scale = min(1.0, WIDEST / max(video.size))
    small = shrunken_size(video.size, scale)
    scene = shrink(still, small)

    pictures = [shrink(picture, small) for picture in video.sample(SAMPLED)]
    strength = float(np.percentile([difference(picture, scene) for picture in pictures], STRONG))

    def blobs_of(picture: UInt8[np.ndarray, "H W 3"]) -> Blobs:
        return find_blobs(changes(picture, scene, strength))

    sampled = [blobs_of(picture) for picture in pictures]
    seen = Blobs(*(np.concatenate([getattr(blobs, name)[blobs.whole] for blobs in sampled]) for name in BLOB_FIELDS))
    if object_size is None and len(seen.area) == 0:
        raise InputError(
            f"{video.name} shows nothing that moves: choose another part of it with --start, --end or --region, or "
            "say --object-size if the objects are very small."
        )
    perspective = find_perspective(seen, small[0])
    if object_size is None:
        grown = sizes_at(seen.centre[:, 1], small[0], perspective)
        height, width = (weighted_median(seen.size[:, side] / grown, np.sqrt(seen.area)) for side in (0, 1))
    else:
        height, width = object_size[0] * scale, object_size[1] * scale
    large = [large_enough(blobs, (height, width), small[0], perspective) for blobs in sampled]
    row = [blobs_of(shrink(frame.picture, small)) for frame in islice(video, WATCHED)]
    return Survey(
        object_size=(height / scale, width / scale),
        speed=find_speed(row, (height, width)) / scale / video.selection.stride,
        objects=float(np.mean([mask.sum() for mask in large])),
        strength=strength,
        perspective=perspective,
    )


def find_perspective(seen: Blobs, height: int) -> Perspective:
    """A line through the heights of things by their rows, as the median of all pairs has it. Pieces of things, and
    several that touch, have another shape than most. Flat where there is none."""
    if len(seen.area) < MANY:
        return FLAT
    shape, extent = np.log(seen.size[:, 0] / seen.size[:, 1]), seen.size.prod(1)
    single = np.abs(shape - weighted_median(shape, seen.area)) < ALIKE
    single &= seen.area > LEAST * weighted_median(extent, seen.area)
    tall, row = seen.size[single, 0], seen.centre[single, 1]
    if len(tall) < MANY or np.ptp(tall) == 0 or stats.spearmanr(row, tall).statistic < AGREEING:
        return FLAT
    one, other = np.triu_indices(len(row), 1)
    apart = row[other] - row[one]
    far = np.abs(apart) > APART * height
    if not far.any():
        return FLAT
    slope = float(np.median((tall[other] - tall[one])[far] / apart[far]))
    middle = float(np.median(row))
    typical = float(np.median(tall - slope * (row - middle)))
    return round(1 - slope * middle / typical, 3), round(1 + slope * (height - middle) / typical, 3)


def find_speed(row: list[Blobs], size: tuple[float, float]) -> float:
    """Pixels a frame, as the median has it; 0 where it cannot be measured. From one frame to the next slow things move
    by less than a pixel, which is not seen."""
    speed = 0.0
    for gap in GAPS:
        pairs = zip(row[:-gap], row[gap:], strict=True)
        steps = [step for before, after in pairs for step in steps_between(before, after, size)]
        if not steps:
            break
        speed = float(np.median(steps)) / gap
        if speed * gap >= FAR:
            break
    return speed


def steps_between(before: Blobs, after: Blobs, size: tuple[float, float]) -> list[float]:
    """How far blobs of about an object's size have moved, by the nearest one in the later frame."""
    steps = []
    for centre, extent in zip(before.centre, before.size, strict=True):
        alike = (np.abs(np.log(after.size / extent)) < 0.2).all(1) if len(after.size) else np.zeros(0, bool)
        if not alike.any() or extent.prod() < 0.3 * size[0] * size[1]:
            continue
        distance = np.linalg.norm(after.centre[alike] - centre, axis=1).min()
        if distance < min(size):
            steps.append(float(distance))
    return steps


def weighted_median(values: Float[np.ndarray, " N"], weights: Float[np.ndarray, " N"]) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) >= weights.sum() / 2
    return float(values[order][np.argmax(reached)])
