"""Measures of tracks without labels: boxes against the foreground, and statistics of ids.

Boxes are compared with the foreground by coverage, content and fit. The foreground mask is downsampled to squares of
several pixels, as fine as the objects need; blobs are the connected components of the downsampled mask. Of ids it is
counted where they begin and end, how long they last, and whether their motion is plausible.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt8, UInt16
from scipy import ndimage

from scalor.health.records import Tally
from scalor.tracks import Tracks

SQUARES = 6
"""Smallest number of squares along an object's shorter side, where the mask is fine enough."""
WIDEST = 192
"""Largest number of squares along the longer side of the picture, where the object size is unknown."""
SPECK = 4
"""Smallest area of a blob, in squares. Smaller blobs are noise."""
MOST = 200
"""Largest number of blobs used per frame, the largest first. It bounds the cost of a frame full of noise."""
EMPTY = 0.1
"""Share of foreground below which a box is empty. An object fills a third to three quarters of its box."""
FITS = 0.5
"""Smallest intersection over union of a box that fits its blobs. Tracking scores ask the same of a true box."""
DOUBLE = 0.5
"""Smallest intersection over union at which two boxes are counted as duplicates."""
INSIDE = 0.8
"""Share of the smaller box that the intersection must cover for two boxes to be counted as duplicates."""

Boxes = Float[np.ndarray, "N 4"]


class Covering:
    """Running counts of boxes against the foreground of a video.

    Boxes are x0, y0, x1, y1 in pixels of the view.
    """

    def __init__(self, view: tuple[int, int], object_size: tuple[float, float] | None) -> None:
        """Set all counts to zero.

        Parameters
        ----------
        view : tuple of int
            Height and width, in pixels, of the area that the masks show.
        object_size : tuple of float or None
            Height and width of an object in pixels; None if unknown.
        """
        self.view, self.object_size = view, object_size
        self.frames = self.rows = 0
        self.area = self.foreground = self.explained = 0.0
        self.most_foreground = 0.0
        self.moving_frames = self.unseen_frames = 0
        self.empty = self.doubles = 0
        self.pairs = self.fitting = 0
        self.fill = Tally()
        self.blob_height, self.blob_width = Tally(), Tally()
        self.box_height, self.box_width = Tally(), Tally()

    def step(self, foreground: Bool[np.ndarray, "h w"], boxes: Boxes) -> None:
        """Count one frame. The mask covers the view at any scale."""
        inside = shrunken(foreground, self._factor(foreground.shape))
        scale = np.array([inside.shape[1] / self.view[1], inside.shape[0] / self.view[0]] * 2)
        limit = np.array([inside.shape[1], inside.shape[0]] * 2)
        boxes = np.clip(boxes * scale, 0, limit)
        seen = boxes[(boxes[:, 2:] - boxes[:, :2] > 0).all(1)]
        inside, blobs, area = clean(inside)
        self.frames += 1
        self.rows += len(seen)
        self._cover(inside, seen, grown=len(blobs) > 0)
        self._overlap(seen)
        whole = whole_in(blobs, inside.shape)
        weights = np.sqrt(area[whole])
        self._sizes(self.blob_height, self.blob_width, blobs[whole] / scale, weights)
        self._sizes(self.box_height, self.box_width, seen[whole_in(seen, inside.shape)] / scale, None)
        self._fit(blobs, seen, inside.shape)

    def _factor(self, shape: tuple[int, ...]) -> int:
        """Return the downsampling factor for a mask of this shape."""
        if self.object_size is None:
            return max(1, math.ceil(max(shape) / WIDEST))
        narrow = min(side * have / want for side, have, want in zip(self.object_size, shape, self.view, strict=True))
        return max(1, int(narrow / SQUARES))

    def _cover(self, inside: Bool[np.ndarray, "h w"], boxes: Boxes, grown: bool) -> None:
        """Count the foreground inside boxes, and the share of foreground in each box.

        `grown` says whether the frame has any blob.
        """
        total = float(inside.sum())
        painted = np.zeros(inside.shape, bool)
        low, high = np.floor(boxes[:, :2]).astype(int), np.ceil(boxes[:, 2:]).astype(int)
        for (x0, y0), (x1, y1) in zip(low, high, strict=True):
            painted[y0:y1, x0:x1] = True
        self.area += inside.size
        self.foreground += total
        self.most_foreground = max(self.most_foreground, total / inside.size)
        self.explained += float((painted & inside).sum())
        self.moving_frames += grown
        self.unseen_frames += grown and len(boxes) == 0
        sums = np.zeros((inside.shape[0] + 1, inside.shape[1] + 1))
        sums[1:, 1:] = inside.cumsum(0).cumsum(1)
        (x0, y0), (x1, y1) = low.T, high.T
        held = sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0]
        share = held / ((x1 - x0) * (y1 - y0))
        self.empty += int((share < EMPTY).sum())
        self.fill.add(share)

    def _overlap(self, boxes: Boxes) -> None:
        """Count the boxes that duplicate another box."""
        shared, area = intersections(boxes, boxes), areas(boxes)
        np.fill_diagonal(shared, 0)
        union = area[:, None] + area - shared
        double = (shared >= DOUBLE * union) | (shared >= INSIDE * np.minimum(area[:, None], area))
        np.fill_diagonal(double, False)
        self.doubles += int(double.any(1).sum())

    def _sizes(self, heights: Tally, widths: Tally, boxes: Boxes, weights: Float[np.ndarray, " N"] | None) -> None:
        widths.add(boxes[:, 2] - boxes[:, 0], weights)
        heights.add(boxes[:, 3] - boxes[:, 1], weights)

    def _fit(self, blobs: Boxes, boxes: Boxes, shape: tuple[int, ...]) -> None:
        """Count the isolated boxes that fit their blobs.

        A box is isolated if it does not touch the border and if every blob that touches it lies inside the picture and
        touches no other box. It is compared with the bounding box of its blobs.
        """
        if not len(blobs) or not len(boxes):
            return
        touch = intersections(blobs, boxes) > 0
        own = touch.sum(1) == 1
        good = whole_in(boxes, shape) & touch.any(0) & ~(touch & ~(own & whole_in(blobs, shape))[:, None]).any(0)
        piece, owner = np.nonzero(touch & good)
        around = np.tile([np.inf, np.inf, -np.inf, -np.inf], (len(boxes), 1))
        np.minimum.at(around[:, :2], owner, blobs[piece, :2])
        np.maximum.at(around[:, 2:], owner, blobs[piece, 2:])
        around, alone = around[good], boxes[good]
        shared = (np.minimum(around, alone)[:, 2:] - np.maximum(around, alone)[:, :2]).clip(min=0).prod(1)
        fit = shared / (areas(around) + areas(alone) - shared)
        self.pairs += len(fit)
        self.fitting += int((fit >= FITS).sum())


def shrunken(mask: Bool[np.ndarray, "h w"], factor: int) -> Bool[np.ndarray, "H W"]:
    """Downsample a mask by an integer factor.

    A square is true if at least half of its pixels are true. Incomplete squares at the right and bottom are cut off.
    """
    if factor == 1:
        return mask
    height, width = (side // factor * factor for side in mask.shape)
    cut = mask[:height, :width].view(np.uint8)
    rows = sum_of([cut[first::factor] for first in range(factor)])
    squares = sum_of([rows[:, first::factor] for first in range(factor)])
    half: np.ndarray = squares * 2 >= factor * factor
    return half


def sum_of(parts: list[UInt8[np.ndarray, "h w"]] | list[UInt16[np.ndarray, "h w"]]) -> UInt16[np.ndarray, "h w"]:
    """Return the sum of small integer arrays as uint16."""
    total = parts[0].astype(np.uint16)
    for part in parts[1:]:
        total += part
    return total


def clean(mask: Bool[np.ndarray, "h w"]) -> tuple[Bool[np.ndarray, "h w"], Boxes, Float[np.ndarray, " N"]]:
    """Return the mask without blobs smaller than SPECK, and the boxes and areas of its MOST largest blobs."""
    labels, count = ndimage.label(mask)
    area = np.bincount(labels.ravel(), minlength=count + 1)
    area[0] = 0
    large = area >= SPECK
    order = np.flatnonzero(large)
    order = order[np.argsort(-area[order], kind="stable")][:MOST]
    found = ndimage.find_objects(labels)
    edges = [(found[n - 1][1].start, found[n - 1][0].start, found[n - 1][1].stop, found[n - 1][0].stop) for n in order]
    return large[labels], np.array(edges, float).reshape(-1, 4), area[order].astype(float)


def whole_in(boxes: Boxes, shape: tuple[int, ...]) -> Bool[np.ndarray, " N"]:
    """Return which boxes do not touch the border of a picture of this shape."""
    inside = np.concatenate([boxes[:, :2] > 0, boxes[:, 2:] < (shape[1], shape[0])], 1)
    return np.asarray(inside.all(1))


def areas(boxes: Boxes) -> Float[np.ndarray, " N"]:
    """Return the area of each box."""
    area: np.ndarray = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    return area


def intersections(one: Boxes, other: Boxes) -> Float[np.ndarray, "N M"]:
    """Return the intersection area of each box of `one` with each box of `other`."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared: np.ndarray = (high - low).clip(min=0).prod(-1)
    return shared


SETTLING = 1.0
"""Seconds at the start of a video in which an id may begin anywhere and counts as entered."""
SETTLING_FRAMES = 10
"""Smallest number of tracked frames at the start of a video in which an id may begin anywhere."""
FORGOTTEN = 2.0
"""Seconds without a sighting after which an id has ended. An id that returns later counts as new."""
AT_BORDER = 1.0
"""Distance from the border, in object sizes, up to which an object may be entering or leaving."""
LEAP = 1.0
"""Distance in object sizes. An id that is farther than this from its last and from its predicted position has jumped. A
new id that is nearer than this to an id that has just ended replaces it."""
BRIDGED = 0.5
"""Longest gap in seconds over which jumps and replaced ids are counted. A gap of one tracked frame is never too
long."""
SMOOTHING = 0.5
"""Weight of the newest step in the exponential moving average of an id's velocity."""

STANDING = 0.01
"""Speed in pixels a second below which objects count as standing still."""


@dataclass(frozen=True)
class Sight:
    """One object in one frame, in pixels of the video."""

    x: float
    """x of the box centre."""
    y: float
    """y of the box centre."""
    size: float
    """Geometric mean of height and width."""
    inside: bool
    """True if the object is not near the border."""


@dataclass
class Life:
    """State of an id that has not ended."""

    first: int
    """Index of the video frame of the first sighting."""
    last: int
    """Index of the video frame of the last sighting."""
    step: int
    """Number of frames tracked up to the last sighting."""
    sight: Sight
    """The last sighting."""
    vx: float = 0.0
    """Horizontal velocity in pixels a frame."""
    vy: float = 0.0
    """Vertical velocity in pixels a frame."""

    def off(self, sight: Sight, number: int) -> float:
        """Return the distance of a sighting from the last or the predicted position, whichever is nearer.

        The unit is the larger of the two object sizes. `number` is the index of the video frame of the sighting.
        """
        dx, dy, frames = sight.x - self.sight.x, sight.y - self.sight.y, number - self.last
        far = min(math.hypot(dx, dy), math.hypot(dx - self.vx * frames, dy - self.vy * frames))
        return far / max(sight.size, self.sight.size)

    def move(self, sight: Sight, number: int, step: int) -> None:
        """Update position and velocity with a new sighting."""
        frames = max(1, number - self.last)
        self.vx += SMOOTHING * ((sight.x - self.sight.x) / frames - self.vx)
        self.vy += SMOOTHING * ((sight.y - self.sight.y) / frames - self.vy)
        self.sight, self.last, self.step = sight, number, step


class Lives:
    """Running counts of the ids of a video."""

    def __init__(self, view: tuple[float, float, float, float], fps: float) -> None:
        """Set all counts to zero. `view` is x0, y0, x1, y1 of the tracked region, in pixels of the video."""
        self.view, self.fps = view, fps
        self.alive: dict[int, Life] = {}
        self.ids = self.entered = self.appeared = self.replaced = 0
        self.steps = self.jumps = self.frames = 0
        self.first: int | None = None
        self.last = 0
        self.life, self.speed = Tally(), Tally()

    def step(self, number: int, tracks: Tracks) -> None:
        """Count one frame; `number` is its index in the video."""
        self.first = number if self.first is None else self.first
        self.last, self.frames = number, self.frames + 1
        seen = dict(zip(tracks.id.tolist(), self._sights(tracks.box), strict=True))
        known = {id: sight for id, sight in seen.items() if id in self.alive}
        for id, sight in known.items():
            self._go_on(self.alive[id], number, sight)
        moving = [self.alive[id] for id in known]
        self.speed.add(np.array([math.hypot(one.vx, one.vy) * self.fps for one in moving]))
        for id, sight in seen.items():
            if id not in known:
                self._begin(id, number, sight)
        for id in [id for id, one in self.alive.items() if number - one.last > FORGOTTEN * self.fps]:
            self.life.add(np.array([self._seconds(self.alive.pop(id))]))

    def median_life(self) -> float | None:
        """Return the median lifetime of ids in seconds, ids that have not ended included; None without ids."""
        now = Tally()
        now.weight += self.life.weight
        now.add(np.array([self._seconds(one) for one in self.alive.values()]))
        return now.median()

    def crossing(self) -> float | None:
        """Return the seconds that an object of median speed needs to cross the view; None if nothing moves."""
        speed = self.speed.median()
        x0, y0, x1, y1 = self.view
        return None if not speed or speed < STANDING else math.sqrt((x1 - x0) * (y1 - y0)) / speed

    def _sights(self, box: Float[np.ndarray, "N 4"]) -> list[Sight]:
        """Return one sighting per box."""
        box = box.astype(float)
        size = np.sqrt((box[:, 2:] - box[:, :2]).clip(min=1e-3).prod(1))
        low, high = box[:, :2] - np.array(self.view[:2]), np.array(self.view[2:]) - box[:, 2:]
        inside: Bool[np.ndarray, " N"] = np.minimum(low, high).min(1) > AT_BORDER * size
        centre = ((box[:, :2] + box[:, 2:]) / 2).tolist()
        rows = zip(centre, size.tolist(), inside.tolist(), strict=True)
        return [Sight(x, y, one, far) for (x, y), one, far in rows]

    def _begin(self, id: int, number: int, sight: Sight) -> None:
        """Count a new id as replaced, appeared or entered."""
        assert self.first is not None
        early = self.frames <= SETTLING_FRAMES or number - self.first <= SETTLING * self.fps
        gone = self._just_gone(number, sight)
        self.ids += 1
        if gone is not None:
            self.replaced += 1
            self.life.add(np.array([self._seconds(self.alive.pop(gone))]))
        elif sight.inside and not early:
            self.appeared += 1
        else:
            self.entered += 1
        self.alive[id] = Life(number, number, self.frames, sight)

    def _just_gone(self, number: int, sight: Sight) -> int | None:
        """Return an id that was recently near this sighting and is missing in this frame, or None."""
        for id, one in self.alive.items():
            recent = number - one.last <= BRIDGED * self.fps or one.step == self.frames - 1
            if one.step < self.frames and recent and one.off(sight, number) < LEAP:
                return id
        return None

    def _go_on(self, one: Life, number: int, sight: Sight) -> None:
        """Count a step of a known id, and whether it is a jump."""
        if number - one.last <= BRIDGED * self.fps or one.step == self.frames - 1:
            self.steps += 1
            self.jumps += one.off(sight, number) > LEAP
        one.move(sight, number, self.frames)

    def _seconds(self, one: Life) -> float:
        """Return the lifetime of an id in seconds."""
        return (one.last - one.first + 1) / self.fps
