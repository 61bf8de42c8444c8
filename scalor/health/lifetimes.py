"""Lifetimes: running counts of where ids begin and end, how long they last, and whether their motion is plausible."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from scalor.health.facts import Tally
from scalor.tracks import Tracks

START_SECONDS = 1.0
"""Seconds at the start of a video in which an id may begin anywhere and counts as entered."""
START_FRAMES = 10
"""Smallest number of tracked frames at the start of a video in which an id may begin anywhere."""
ENDED_AFTER_SECONDS = 2.0
"""Seconds without a sighting after which an id has ended. An id that returns later counts as new."""
BORDER_SIZES = 1.0
"""Distance from the border, in object sizes, up to which an object may be entering or leaving."""
JUMP_SIZES = 1.0
"""Distance in object sizes. An id that is farther than this from its last and from its predicted position has jumped. A
new id that is nearer than this to an id that has just ended replaces it."""
MAX_GAP_SECONDS = 0.5
"""Longest gap in seconds over which jumps and replaced ids are counted. A gap of one tracked frame is never too
long."""
VELOCITY_WEIGHT = 0.5
"""Weight of the newest step in the exponential moving average of an id's velocity."""

MIN_SPEED = 0.01
"""Speed in pixels a second below which objects count as standing still."""


@dataclass(frozen=True)
class IdPosition:
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
class LivingId:
    """State of an id that has not ended."""

    first: int
    """Index of the video frame of the first sighting."""
    last: int
    """Index of the video frame of the last sighting."""
    step: int
    """Number of frames tracked up to the last sighting."""
    sight: IdPosition
    """The last sighting."""
    vx: float = 0.0
    """Horizontal velocity in pixels a frame."""
    vy: float = 0.0
    """Vertical velocity in pixels a frame."""

    def off(self, sight: IdPosition, number: int) -> float:
        """Return the distance of a sighting from the last or the predicted position, whichever is nearer.

        The unit is the larger of the two object sizes. `number` is the index of the video frame of the sighting.
        """
        dx, dy, frames = sight.x - self.sight.x, sight.y - self.sight.y, number - self.last
        far = min(math.hypot(dx, dy), math.hypot(dx - self.vx * frames, dy - self.vy * frames))
        return far / max(sight.size, self.sight.size)

    def move(self, sight: IdPosition, number: int, step: int) -> None:
        """Update position and velocity with a new sighting."""
        frames = max(1, number - self.last)
        self.vx += VELOCITY_WEIGHT * ((sight.x - self.sight.x) / frames - self.vx)
        self.vy += VELOCITY_WEIGHT * ((sight.y - self.sight.y) / frames - self.vy)
        self.sight, self.last, self.step = sight, number, step


class Lifetimes:
    """Running counts of the ids of a video."""

    def __init__(self, view: tuple[float, float, float, float], fps: float) -> None:
        """Set all counts to zero. `view` is x0, y0, x1, y1 of the tracked region, in pixels of the video."""
        self.view, self.fps = view, fps
        self.alive: dict[int, LivingId] = {}
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
        for id in [id for id, one in self.alive.items() if number - one.last > ENDED_AFTER_SECONDS * self.fps]:
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
        return None if not speed or speed < MIN_SPEED else math.sqrt((x1 - x0) * (y1 - y0)) / speed

    def _sights(self, box: Float[np.ndarray, "N 4"]) -> list[IdPosition]:
        """Return one sighting per box."""
        box = box.astype(float)
        size = np.sqrt((box[:, 2:] - box[:, :2]).clip(min=1e-3).prod(1))
        low, high = box[:, :2] - np.array(self.view[:2]), np.array(self.view[2:]) - box[:, 2:]
        inside: Bool[np.ndarray, " N"] = np.minimum(low, high).min(1) > BORDER_SIZES * size
        centre = ((box[:, :2] + box[:, 2:]) / 2).tolist()
        rows = zip(centre, size.tolist(), inside.tolist(), strict=True)
        return [IdPosition(x, y, one, far) for (x, y), one, far in rows]

    def _begin(self, id: int, number: int, sight: IdPosition) -> None:
        """Count a new id as replaced, appeared or entered."""
        assert self.first is not None
        early = self.frames <= START_FRAMES or number - self.first <= START_SECONDS * self.fps
        gone = self._just_gone(number, sight)
        self.ids += 1
        if gone is not None:
            self.replaced += 1
            self.life.add(np.array([self._seconds(self.alive.pop(gone))]))
        elif sight.inside and not early:
            self.appeared += 1
        else:
            self.entered += 1
        self.alive[id] = LivingId(number, number, self.frames, sight)

    def _just_gone(self, number: int, sight: IdPosition) -> int | None:
        """Return an id that was recently near this sighting and is missing in this frame, or None."""
        for id, one in self.alive.items():
            recent = number - one.last <= MAX_GAP_SECONDS * self.fps or one.step == self.frames - 1
            if one.step < self.frames and recent and one.off(sight, number) < JUMP_SIZES:
                return id
        return None

    def _go_on(self, one: LivingId, number: int, sight: IdPosition) -> None:
        """Count a step of a known id, and whether it is a jump."""
        if number - one.last <= MAX_GAP_SECONDS * self.fps or one.step == self.frames - 1:
            self.steps += 1
            self.jumps += one.off(sight, number) > JUMP_SIZES
        one.move(sight, number, self.frames)

    def _seconds(self, one: LivingId) -> float:
        """Return the lifetime of an id in seconds."""
        return (one.last - one.first + 1) / self.fps
