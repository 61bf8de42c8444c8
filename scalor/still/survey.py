"""Survey of a video before anything is learned: size, speed and number of its objects.

The camera must stand still.

>>> video = open_video("ants.mp4")
>>> found = survey(video, StillBackground.of(video))
>>> found.object_size, found.objects, found.confidence

The size is the one that most of the foreground has. Blobs of sampled frames vote for their length and breadth, with
nearby pieces joined at several distances. A whole, separate object has the same size at every distance, so its votes
agree. Votes of parts and groups are scattered.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Num
from scipy import ndimage

from scalor.boxes import FLAT, Perspective, sizes_at
from scalor.errors import InputError
from scalor.still.blobs import MIN_AREA_SHARE, Blobs, find_blobs, join_blobs, large_enough
from scalor.still.foreground import (
    DEFAULT_TEST,
    STRONG_PERCENTILE,
    ForegroundTest,
    blurred,
    clean_foreground,
    difference,
    noise_of,
    thinned,
    to_floats,
)
from scalor.still.speed import find_speed
from scalor.still.still_background import StillBackground
from scalor.video import Video

GAPS_JOINED = (0, 1, 2, 4, 7)
"""Pixels of the reduced frames by which pieces are dilated before they are joined."""
VOTE_EXPONENT = 0.35
"""Exponent of a blob's area in the weight of its vote. With 1, groups dominate; with 0, specks do."""
BIN_WIDTH, BIN_BLUR = 0.1, 3.0
"""Bin width of the histogram of votes, in logarithms of a length, and standard deviation of its blur, in bins."""
MAX_LOG_DIFFERENCE = 0.35
"""Largest difference of the logarithms of length and breadth between an object and the typical one, for similar
objects."""
LONG_RATIO, MAX_DIRECTION_AGREEMENT = 1.6, 0.6
"""Ratio of length to breadth above which objects have a direction, and how well directions must agree (1: all the same)
for height and width of a box to have separate typical values."""
GROUP_AREAS = 1.8
"""Area of a blob, in areas of a typical object, above which it counts as several objects."""
MAX_SIZE_FRAMES, MAX_NOISE_FRAMES = 40, 20
"""Largest number of sampled frames by which sizes are measured, and by which noise and strength are."""
MIN_PERSPECTIVE_OBJECTS, MIN_ROW_CORRELATION = 40, 0.7
"""Smallest number of objects, and smallest rank correlation between their height and their row, for a perspective."""
MAX_SHAPE_DIFFERENCE = 0.3
"""Largest difference between the logarithm of a single object's height by width and the typical one."""
MIN_ROW_DISTANCE = 0.1
"""Smallest vertical distance between two compared objects, as a share of the image's height."""


@dataclass(frozen=True)
class Survey:
    """Measurements of a video, in pixels and frames of the video."""

    object_size: tuple[float, float]
    """Typical height and width of a box. Long objects that lie in all directions have boxes of every shape; then both
    are a typical side."""
    speed: float
    """Median speed in pixels per frame; 0 where it could not be measured."""
    objects: float
    """Mean number of objects in a frame."""
    strength: float
    """Difference between the objects' pixels and the background, as a share of full brightness."""
    perspective: Perspective
    """Relative size of objects at the upper and lower edge of the image."""
    body: tuple[float, float] = (0.0, 0.0)
    """Typical length and breadth along an object's own axes, whatever its direction."""
    any_direction: bool = False
    """Whether long objects lie in all directions, as fish seen from above do."""
    confidence: float = 1.0
    """Share of the votes for about this size. Above .5, objects are alike and separate. Below .2, they overlap, are in
    pieces or have many sizes, and the size should be checked."""
    noise: float = 0.0
    """Standard deviation of the pixels where nothing moves, as a share of full brightness."""
    moving: float = 0.0
    """Mean share of the image that is foreground."""
    test: ForegroundTest = DEFAULT_TEST
    """Test that separates objects from the background."""


@dataclass(frozen=True)
class Size:
    """Size of typical objects, in pixels of the reduced frames."""

    box: tuple[float, float]
    """Height and width."""
    body: tuple[float, float]
    """Length and breadth along their own axes."""
    area: float
    """Number of pixels."""
    gap: int
    """Pixels by which pieces are best dilated before they are joined."""
    any_direction: bool
    confidence: float


def survey(video: Video, background: StillBackground, object_size: tuple[float, float] | None = None) -> Survey:
    """Measure the size, speed, number and contrast of what moves in a video.

    Parameters
    ----------
    video
        A video of a still camera.
    background
        Its background, made by `StillBackground.of`.
    object_size
        Height and width of a typical object in pixels of the video; None to measure it.

    Raises
    ------
    InputError
        If nothing moves and no size is given.
    """
    pairs = thinned(background.sampled_pairs(), MAX_SIZE_FRAMES)
    test = ForegroundTest.of(pairs)
    masks = [clean_foreground(picture, empty, test) for picture, empty in pairs]
    levels = [[find_blobs(mask, gap) for mask in masks] for gap in GAPS_JOINED]
    scale, height = pairs[0][0].shape[0] / video.size[0], pairs[0][0].shape[0]
    perspective = find_perspective(whole(levels[1]), height)
    found = find_size(levels, perspective, height)
    if object_size is not None:
        found = given_size(object_size, scale, found)
    if found is None:
        raise InputError(
            f"{video.name} shows nothing that moves: choose another part of it with --start, --end or --region, or "
            "give --object-size if the objects are very small."
        )
    some = thinned(pairs, MAX_NOISE_FRAMES)
    return Survey(
        object_size=(found.box[0] / scale, found.box[1] / scale),
        speed=find_speed(video, background, test, found.box, found.gap) / scale / video.selection.stride,
        objects=count(levels[GAPS_JOINED.index(found.gap)], found, perspective, height),
        strength=float(np.percentile([difference(*map(blurred, pair)) for pair in some], STRONG_PERCENTILE)),
        perspective=perspective,
        body=(found.body[0] / scale, found.body[1] / scale),
        any_direction=found.any_direction,
        confidence=found.confidence,
        noise=float(np.median([noise_of(*map(to_floats, pair)) for pair in some])),
        moving=float(np.mean(masks)),
        test=test,
    )


def whole(level: list[Blobs]) -> Blobs:
    """Return the blobs of all frames that the border of the image does not cut."""
    every = join_blobs(level)
    return every.select(every.whole)


def find_size(levels: list[list[Blobs]], perspective: Perspective, height: int) -> Size | None:
    """Return the size on which blobs agree over all joining distances; None if there are no blobs."""
    seen = [whole(level) for level in levels]
    every = join_blobs(seen)
    if len(every.box) == 0:
        return None
    grown = sizes_at(every.centre[:, 1], height, perspective)
    length, breadth, angle = every.axes()
    length, breadth, box, area = length / grown, breadth / grown, every.size / grown[:, None], every.area / grown**2
    weight = every.area**VOTE_EXPONENT
    typical = most_voted(np.log(length), np.log(breadth), weight)
    alike = (np.abs(np.log(length) - typical[0]) < MAX_LOG_DIFFERENCE) & (
        np.abs(np.log(breadth) - typical[1]) < MAX_LOG_DIFFERENCE
    )
    level = np.repeat(np.arange(len(seen)), [len(one.box) for one in seen])
    votes, all_votes = (np.bincount(level, weight * chosen, len(seen)) for chosen in (alike, 1))
    share = votes / np.maximum(all_votes, 1e-9)
    body = weighted_median(length[alike], weight[alike]), weighted_median(breadth[alike], weight[alike])
    shared = np.abs(np.average(np.exp(2j * angle[alike]), weights=weight[alike]))
    any_direction = bool(body[0] > LONG_RATIO * body[1] and shared < MAX_DIRECTION_AGREEMENT)
    sides = (weighted_median(box[alike, 0], weight[alike]), weighted_median(box[alike, 1], weight[alike]))
    if any_direction:
        # At any angle, the squares of height and width add up to about the square of the length.
        side = weighted_median(np.sqrt((box[alike] ** 2).mean(1)), weight[alike])
        sides = (side, side)
    best = int(share.argmax())
    own_area = weighted_median(area[alike], weight[alike])
    return Size(sides, body, own_area, GAPS_JOINED[best], any_direction, float(share[best]))


def most_voted(
    length: Float[np.ndarray, " N"], breadth: Float[np.ndarray, " N"], weight: Float[np.ndarray, " N"]
) -> tuple[float, float]:
    """Return the logarithms of length and breadth around which most votes lie."""
    edges = np.arange(
        min(length.min(), breadth.min()) - 5 * BIN_WIDTH, max(length.max(), breadth.max()) + 6 * BIN_WIDTH, BIN_WIDTH
    )
    votes, _, _ = np.histogram2d(length, breadth, (edges, edges), weights=weight)
    row, column = np.unravel_index(ndimage.gaussian_filter(votes, BIN_BLUR).argmax(), votes.shape)
    return float(edges[row] + BIN_WIDTH / 2), float(edges[column] + BIN_WIDTH / 2)


def given_size(object_size: tuple[float, float], scale: float, found: Size | None) -> Size:
    """Return a given size, completed with what was measured."""
    box = (object_size[0] * scale, object_size[1] * scale)
    if found is None:
        return Size(box, (max(box), min(box)), 0.6 * box[0] * box[1], 0, False, 0.0)
    return replace(found, box=box, body=(max(box), min(box)), area=0.6 * box[0] * box[1])


def count(level: list[Blobs], found: Size, perspective: Perspective, height: int) -> float:
    """Return the mean number of objects in a frame, where a large blob counts as several."""
    total = 0.0
    for blobs in level:
        large = blobs.select(large_enough(blobs, found.box, height, perspective))
        times = large.area / (found.area * sizes_at(large.centre[:, 1], height, perspective) ** 2)
        total += float(np.where(times > GROUP_AREAS, times, 1).sum())
    return total / len(level)


def find_perspective(seen: Blobs, height: int) -> Perspective:
    """Fit a line to object heights by row, with the median slope of all pairs.

    Return `FLAT` where there is no clear perspective. Parts of objects, and several that touch, are excluded because
    their shape differs from most.
    """
    if len(seen.area) < MIN_PERSPECTIVE_OBJECTS:
        return FLAT
    shape, extent = np.log(seen.size[:, 0] / seen.size[:, 1]), seen.size.prod(1)
    single = np.abs(shape - weighted_median(shape, seen.area)) < MAX_SHAPE_DIFFERENCE
    single &= seen.area > MIN_AREA_SHARE * weighted_median(extent, seen.area)
    tall, row = seen.size[single, 0], seen.centre[single, 1]
    if len(tall) < MIN_PERSPECTIVE_OBJECTS or np.ptp(tall) == 0 or rank_correlation(row, tall) < MIN_ROW_CORRELATION:
        return FLAT
    one, other = np.triu_indices(len(row), 1)
    apart = row[other] - row[one]
    far = np.abs(apart) > MIN_ROW_DISTANCE * height
    if not far.any():
        return FLAT
    slope = float(np.median((tall[other] - tall[one])[far] / apart[far]))
    middle = float(np.median(row))
    typical = float(np.median(tall - slope * (row - middle)))
    return round(1 - slope * middle / typical, 3), round(1 + slope * (height - middle) / typical, 3)


def rank_correlation(one: Float[np.ndarray, " N"], other: Num[np.ndarray, " N"]) -> float:
    """Return Spearman's rank correlation.

    `scipy.stats`, which has it, takes a quarter of a second to import.
    """
    ranks = []
    for values in (one, other):
        _, place, times = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(times) - (times - 1) / 2)[place])  # equal values share the mean of their ranks
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def weighted_median(values: Float[np.ndarray, " N"], weights: Num[np.ndarray, " N"]) -> float:
    """Return the smallest value at which half of the total weight is reached."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) >= weights.sum() / 2
    return float(values[order][np.argmax(reached)])
