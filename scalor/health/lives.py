"""How ids live and move: where they begin and end, how long they last, and whether their motion is plausible."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from scalor.health.tally import Tally
from scalor.tracks import Tracks

SETTLING = 1.0
"""Seconds at the beginning of a video in which an id may begin anywhere, and at least"""
SETTLING_FRAMES = 10
"""so many frames."""
FORGOTTEN = 2.0
"""Seconds after which an id that is not seen has ended; one that returns later counts as new."""
AT_BORDER = 1.0
"""What is nearer to the border than so many sizes of itself may be entering or leaving."""
LEAP = 1.0
"""Sizes of itself. What is farther than this from where it was and from where it was going has jumped; a new id that
is nearer than this to one that has just gone takes its place."""
BRIDGED = 0.5
"""Seconds: after a longer gap neither is looked for."""
SMOOTHING = 0.5
"""The weight of the newest step in an id's velocity."""

STANDING = 0.01
"""Pixels a second: what is slower does not move."""


@dataclass(frozen=True)
class Sight:
    """One object in one frame."""

    x: float
    y: float
    size: float
    """The geometric mean of its height and width."""
    inside: bool
    """Whether it is far from the border."""


@dataclass
class Life:
    """An id that is alive."""

    first: int
    last: int
    """Frames of the video."""
    step: int
    """When it was last seen, counted in frames that were looked at."""
    sight: Sight
    """How it was last seen."""
    vx: float = 0.0
    vy: float = 0.0
    """Pixels a frame."""

    def off(self, sight: Sight, number: int) -> float:
        """How far something is from where this was and from where it was going, whichever is nearer; in sizes."""
        dx, dy, frames = sight.x - self.sight.x, sight.y - self.sight.y, number - self.last
        far = min(math.hypot(dx, dy), math.hypot(dx - self.vx * frames, dy - self.vy * frames))
        return far / max(sight.size, self.sight.size)

    def move(self, sight: Sight, number: int, step: int) -> None:
        frames = max(1, number - self.last)
        self.vx += SMOOTHING * ((sight.x - self.sight.x) / frames - self.vx)
        self.vy += SMOOTHING * ((sight.y - self.sight.y) / frames - self.vy)
        self.sight, self.last, self.step = sight, number, step


class Lives:
    """Counts over the frames of a video."""

    def __init__(self, view: tuple[float, float, float, float], fps: float) -> None:
        """`view`: x0, y0, x1, y1 of what is looked at, pixels of the video."""
        self.view, self.fps = view, fps
        self.alive: dict[int, Life] = {}
        self.ids = self.entered = self.appeared = self.replaced = 0
        self.steps = self.jumps = self.frames = 0
        self.first: int | None = None
        self.last = 0
        self.life, self.speed = Tally(), Tally()

    def step(self, number: int, tracks: Tracks) -> None:
        """Count one frame; `number` is its place in the video."""
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
        """How long ids last, seconds, those that are alive included."""
        now = Tally()
        now.weight += self.life.weight
        now.add(np.array([self._seconds(one) for one in self.alive.values()]))
        return now.median()

    def crossing(self) -> float | None:
        """Seconds that a thing of the median speed needs to cross the view; none where nothing moves."""
        speed = self.speed.median()
        x0, y0, x1, y1 = self.view
        return None if not speed or speed < STANDING else math.sqrt((x1 - x0) * (y1 - y0)) / speed

    def _sights(self, box: Float[np.ndarray, "N 4"]) -> list[Sight]:
        box = box.astype(float)
        size = np.sqrt((box[:, 2:] - box[:, :2]).clip(min=1e-3).prod(1))
        low, high = box[:, :2] - np.array(self.view[:2]), np.array(self.view[2:]) - box[:, 2:]
        inside: Bool[np.ndarray, " N"] = np.minimum(low, high).min(1) > AT_BORDER * size
        centre = ((box[:, :2] + box[:, 2:]) / 2).tolist()
        rows = zip(centre, size.tolist(), inside.tolist(), strict=True)
        return [Sight(x, y, one, far) for (x, y), one, far in rows]

    def _begin(self, id: int, number: int, sight: Sight) -> None:
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
        """The id that was here a moment ago and is not seen any more."""
        for id, one in self.alive.items():
            recent = number - one.last <= BRIDGED * self.fps or one.step == self.frames - 1
            if one.step < self.frames and recent and one.off(sight, number) < LEAP:
                return id
        return None

    def _go_on(self, one: Life, number: int, sight: Sight) -> None:
        if number - one.last <= BRIDGED * self.fps or one.step == self.frames - 1:
            self.steps += 1
            self.jumps += one.off(sight, number) > LEAP
        one.move(sight, number, self.frames)

    def _seconds(self, one: Life) -> float:
        return (one.last - one.first + 1) / self.fps
