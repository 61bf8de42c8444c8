"""From detections to tracks: a Kalman filter of constant velocity for each, the Hungarian method between the two.

A track begins with its first detection, goes on without one for a few frames, and its number is never given again.
Lengths are in sizes of an object where they do not say pixels. The numbers were chosen on clips of the training
split, never on test clips.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from scalor.boxes import assign, centre_distances

GATE = 1.0
"""A detection farther from a prediction is another object's."""
COLOUR_GATE = 0.2
"""So is one whose colour differs by more."""
COLOUR_WEIGHT = 3.0
"""How many sizes of an object a whole colour is worth."""
SIZE_WEIGHT = 0.5
"""How many sizes of an object a size e times as large is worth, where sizes are compared."""
MOST_MISSED = 10
PATIENCE = 2
"""Frames that a track goes on without a detection, where nothing hides objects for long."""
EARLY = 5
"""Frames of a video after which one detection more is asked for as a proof."""
SEEN_NOISE = 0.05
"""Standard deviation of a detected centre."""
SHOVE = 0.01
"""Standard deviation of a change of velocity, a frame."""
FIRST_SPEED = 0.2
"""Standard deviation of the velocity before a second detection."""

Motion = Float[np.ndarray, "K 2 2"]
"""Of x and of y: the position and the velocity, pixels."""
Spread = Float[np.ndarray, "K 2 2"]
"""Their covariance, the same for x and for y."""


class Detections(NamedTuple):
    """M objects of a frame."""

    box: Float[np.ndarray, "M 4"]
    """x0, y0, x1, y1 in pixels; pixel i covers [i, i + 1)."""
    colour: Float[np.ndarray, "M 3"]
    """Mean of its pixels, or of their tints (brightest channel 1); all zero where colours are not to be looked at."""


@dataclass(frozen=True)
class Habits:
    """How long a track is believed in."""

    patience: int
    """Frames that it goes on without a detection,"""
    reported: int
    """and those of them that it is still reported for."""
    proof: int = 1
    """Detections before it is reported at all; fewer are asked for early in a video."""
    size_rate: float = 0.6
    """How much of a new size and colour is believed,"""
    shrink_rate: float | None = None
    """and of a smaller size, where that is less: what hides a part of an object makes it look smaller, nothing makes it
    look larger."""
    size_gate: float = math.inf
    """Largest difference between the logarithms of the sizes of a track and its detection, along either side."""
    missed_cost: float = 0.0
    """Sizes of an object that each frame without a detection is worth, up to MOST_MISSED frames: of two tracks at one
    distance, the one that was seen more lately gets the detection."""


@dataclass(frozen=True)
class Followed:
    """K tracks, in the order of their numbers."""

    id: Int[np.ndarray, " K"]
    motion: Motion
    spread: Spread
    size: Float[np.ndarray, "K 2"]
    """Width and height, pixels."""
    colour: Float[np.ndarray, "K 3"]
    missed: Int[np.ndarray, " K"]
    """Frames since the last detection."""
    sightings: Int[np.ndarray, " K"]
    """Detections so far."""
    detection: Int[np.ndarray, " K"]
    """The one of this frame, -1 for none."""
    new: Bool[np.ndarray, " K"]
    """Whether it was told of in no frame before."""

    @property
    def centre(self) -> Float[np.ndarray, "K 2"]:
        return self.motion[:, :, 0]

    @property
    def box(self) -> Float[np.ndarray, "K 4"]:
        return np.concatenate([self.centre - self.size / 2, self.centre + self.size / 2], 1)

    def select(self, rows: Shaped[np.ndarray, "..."]) -> "Followed":
        return Followed(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


class Linker:
    """Follows detections through the frames of one video of the given height and width."""

    def __init__(self, object_size: tuple[float, float], frame: tuple[int, int], habits: Habits) -> None:
        self.habits = habits
        self.unit = math.sqrt(object_size[0] * object_size[1])
        self.frame = np.array(frame[::-1], dtype=float)
        self.begun = self.frames = 0
        nothing = Detections(np.zeros((0, 4)), np.zeros((0, 3)))
        self.followed = self.begin(nothing, np.zeros(0, int))

    def step(self, found: Detections) -> Followed:
        """All tracks after a frame; those with `missed` above 0 are predicted, not seen."""
        motion, spread = predict(self.followed.motion, self.followed.spread, SHOVE * self.unit)
        partner = self.partners(motion, found)
        old = self.go_on(motion, spread, found, partner)
        new = self.begin(found, np.setdiff1d(np.arange(len(found.box)), partner))
        columns = (np.concatenate([getattr(part, field.name) for part in (old, new)]) for field in fields(Followed))
        self.followed = Followed(*columns)
        self.frames += 1
        return self.followed

    def proven(self) -> Bool[np.ndarray, " K"]:
        asked = min(self.habits.proof, 1 + self.frames // EARLY)
        enough: np.ndarray = self.followed.sightings >= asked
        return enough

    def reported(self) -> Followed:
        """The tracks to tell of, those that are `new` for the first time."""
        return self.followed.select(self.to_tell())

    def to_tell(self) -> Bool[np.ndarray, " K"]:
        """Which are proven, and seen now or not long ago (just now, where they may have left the view)."""
        box = self.followed.box
        in_view = ((box[:, :2] >= 0) & (box[:, 2:] <= self.frame)).all(1)
        lately = np.where(in_view, self.habits.reported, min(self.habits.reported, 1))
        told: np.ndarray = self.proven() & (self.followed.missed <= lately)
        return told

    def expected(self) -> Float[np.ndarray, "K 4"]:
        """Where the proven tracks should be in the next frame."""
        motion, spread = predict(self.followed.motion, self.followed.spread, SHOVE * self.unit)
        return replace(self.followed, motion=motion, spread=spread).select(self.proven()).box

    def partners(self, motion: Motion, found: Detections) -> Int[np.ndarray, " K"]:
        """The detection of each track, -1 for none."""
        away = centre_distances(motion[:, :, 0], centres(found.box)) / self.unit
        unlike = np.abs(self.followed.colour[:, None] - found.colour).max(-1)
        cost = away + COLOUR_WEIGHT * unlike
        allowed = (away <= GATE) & (unlike <= COLOUR_GATE)
        if math.isfinite(self.habits.size_gate):
            size = np.log((found.box[:, 2:] - found.box[:, :2]).clip(min=1))
            other_size = np.abs(np.log(self.followed.size.clip(min=1))[:, None] - size).max(-1)
            allowed &= other_size <= self.habits.size_gate
            cost += SIZE_WEIGHT * other_size
        cost += self.habits.missed_cost * self.followed.missed.clip(max=MOST_MISSED)[:, None]
        return assign(np.where(allowed, cost, np.inf))

    def go_on(self, motion: Motion, spread: Spread, found: Detections, partner: Int[np.ndarray, " K"]) -> Followed:
        """The tracks, moved to their detections; those without may be at their end."""
        before, seen = self.followed, partner >= 0
        box, colour = found.box[partner[seen]], found.colour[partner[seen]]
        size, tint = before.size.copy(), before.colour.copy()
        motion[seen], spread[seen] = update(motion[seen], spread[seen], centres(box), SEEN_NOISE * self.unit)
        grown = box[:, 2:] - box[:, :2] - size[seen]
        slowly = self.habits.size_rate if self.habits.shrink_rate is None else self.habits.shrink_rate
        size[seen] += np.where(grown > 0, self.habits.size_rate, slowly) * grown
        tint[seen] += self.habits.size_rate * (colour - tint[seen])
        missed = np.where(seen, 0, before.missed + 1)
        new = before.new & ~self.to_tell()
        in_view = ((motion[:, :, 0] >= 0) & (motion[:, :, 0] <= self.frame)).all(1)
        after = Followed(before.id, motion, spread, size, tint, missed, before.sightings + seen, partner, new)
        return after.select(seen | ((missed <= self.habits.patience) & in_view))

    def begin(self, found: Detections, rows: Int[np.ndarray, " N"]) -> Followed:
        """New tracks from some of the detections."""
        box = found.box[rows]
        self.begun += len(rows)
        first = np.diag([SEEN_NOISE * self.unit, FIRST_SPEED * self.unit]) ** 2
        return Followed(
            id=np.arange(self.begun - len(rows), self.begun),
            motion=np.stack([centres(box), np.zeros((len(rows), 2))], -1),
            spread=np.tile(first, (len(rows), 1, 1)),
            size=box[:, 2:] - box[:, :2],
            colour=found.colour[rows],
            missed=np.zeros(len(rows), int),
            sightings=np.ones(len(rows), int),
            detection=rows,
            new=np.ones(len(rows), bool),
        )


def predict(motion: Motion, spread: Spread, shove: float) -> tuple[Motion, Spread]:
    """A frame later, when the velocity changes by a random shove (its standard deviation, pixels a frame)."""
    step = np.array([[1.0, 1.0], [0.0, 1.0]])
    push = np.array([0.5, 1.0])
    return motion @ step.T, step @ spread @ step.T + shove**2 * np.outer(push, push)


def update(motion: Motion, spread: Spread, seen: Float[np.ndarray, "K 2"], noise: float) -> tuple[Motion, Spread]:
    """The posterior when positions are seen with a standard deviation of `noise` pixels."""
    gain = spread[:, :, 0] / (spread[:, 0, 0] + noise**2)[:, None]  # [K, 2]
    surprise = seen - motion[:, :, 0]
    return motion + surprise[:, :, None] * gain[:, None, :], spread - gain[:, :, None] * spread[:, None, 0, :]


def centres(box: Float[np.ndarray, "N 4"]) -> Float[np.ndarray, "N 2"]:
    middle: np.ndarray = (box[:, :2] + box[:, 2:]) / 2
    return middle
