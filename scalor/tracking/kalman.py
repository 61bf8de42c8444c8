"""Linking of detections into tracks, with constant-velocity Kalman filters and the Hungarian method.

A track begins with its first detection and survives a few frames without one. Its id is never reused. Lengths are in
sizes of an object (the geometric mean of its typical height and width) where they are not in pixels. The numbers were
chosen on clips of the training split, never on test clips.

K tracks, M detections.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from scalor.boxes import assign, centre_distances

GATE = 1.0
"""Largest distance between the predicted centre of a track and its detection."""
COLOUR_GATE = 0.2
"""Largest difference in colour between a track and its detection."""
COLOUR_WEIGHT = 3.0
"""Cost of a colour difference of 1, in sizes of an object."""
SIZE_WEIGHT = 0.5
"""Cost of a size difference by a factor of e, in sizes of an object. It applies where sizes are compared."""
MOST_MISSED = 10
"""Frames without a detection beyond which the cost of a track does not rise (`LinkerSettings.missed_cost`)."""
PATIENCE = 2
"""Frames that a track survives without a detection, where nothing hides objects for long."""
EARLY = 5
"""Frames after which one more detection is required to confirm a track, at the start of a video."""
POSITION_NOISE = 0.05
"""Standard deviation of the error of a detected centre."""
VELOCITY_NOISE = 0.01
"""Standard deviation of the change of velocity in one frame."""
FIRST_VELOCITY_NOISE = 0.2
"""Standard deviation of a track's velocity before its second detection."""

Motion = Float[np.ndarray, "K 2 2"]
"""Position and velocity of each track (last axis) along x and y, in pixels and pixels per frame."""
Spread = Float[np.ndarray, "K 2 2"]
"""Covariance of position and velocity of each track, the same for x and y."""


class Detections(NamedTuple):
    """The M detections of a frame."""

    box: Float[np.ndarray, "M 4"]
    """x0, y0, x1, y1 in pixels; pixel i covers [i, i + 1)."""
    colour: Float[np.ndarray, "M 3"]
    """Mean of the object's pixels, or of their tints (brightest channel 1). All zero to ignore colours."""


@dataclass(frozen=True)
class LinkerSettings:
    """Settings of a linker: when a track is confirmed, reported and ended."""

    patience: int
    """Largest number of frames without a detection that a track survives."""
    reported: int
    """Largest number of frames without a detection in which a track is still reported."""
    proof: int = 1
    """Detections required before a track is reported. Fewer are required early in a video."""
    size_rate: float = 0.6
    """Weight of a new detection in the moving average of size and colour."""
    shrink_rate: float | None = None
    """Weight of a new detection that is smaller; None for `size_rate`. Occlusion makes an object look smaller, and
    nothing makes it look larger."""
    size_gate: float = math.inf
    """Largest difference between the logarithms of the sizes of a track and its detection, along either side."""
    missed_cost: float = 0.0
    """Cost of each frame without a detection, in sizes of an object, up to MOST_MISSED frames. Of two tracks at the
    same distance, the one that was detected more recently gets the detection."""


@dataclass(frozen=True)
class TrackStates:
    """The state of K tracks, in the order of their ids."""

    id: Int[np.ndarray, " K"]
    motion: Motion
    spread: Spread
    size: Float[np.ndarray, "K 2"]
    """Width and height, pixels."""
    colour: Float[np.ndarray, "K 3"]
    missed: Int[np.ndarray, " K"]
    """Frames since the last detection."""
    sightings: Int[np.ndarray, " K"]
    """Number of detections so far."""
    detection: Int[np.ndarray, " K"]
    """Row of the detection in this frame; -1 for none."""
    new: Bool[np.ndarray, " K"]
    """Whether the track has not been reported in any earlier frame."""

    @property
    def centre(self) -> Float[np.ndarray, "K 2"]:
        """Centre of each track, pixels."""
        return self.motion[:, :, 0]

    @property
    def box(self) -> Float[np.ndarray, "K 4"]:
        """Box of each track, x0, y0, x1, y1 in pixels."""
        return np.concatenate([self.centre - self.size / 2, self.centre + self.size / 2], 1)

    def select(self, rows: Shaped[np.ndarray, "..."]) -> "TrackStates":
        """Return some of the tracks."""
        return TrackStates(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


class Linker:
    """Linker of the detections of one video whose frames have the given height and width."""

    def __init__(self, object_size: tuple[float, float], frame: tuple[int, int], settings: LinkerSettings) -> None:
        self.settings = settings
        self.unit = math.sqrt(object_size[0] * object_size[1])
        self.frame = np.array(frame[::-1], dtype=float)
        self.begun = self.frames = 0
        nothing = Detections(np.zeros((0, 4)), np.zeros((0, 3)))
        self.followed = self.begin(nothing, np.zeros(0, int))

    def step(self, found: Detections) -> TrackStates:
        """Add the detections of a frame and return all tracks.

        Tracks with `missed` above 0 are predicted, not detected.
        """
        motion, spread = predict(self.followed.motion, self.followed.spread, VELOCITY_NOISE * self.unit)
        partner = self.partners(motion, found)
        old = self.go_on(motion, spread, found, partner)
        new = self.begin(found, np.setdiff1d(np.arange(len(found.box)), partner))
        columns = (np.concatenate([getattr(part, field.name) for part in (old, new)]) for field in fields(TrackStates))
        self.followed = TrackStates(*columns)
        self.frames += 1
        return self.followed

    def proven(self) -> Bool[np.ndarray, " K"]:
        """Return which tracks have enough detections to be confirmed."""
        asked = min(self.settings.proof, 1 + self.frames // EARLY)
        enough: np.ndarray = self.followed.sightings >= asked
        return enough

    def reported(self) -> TrackStates:
        """Return the tracks to report; those that are `new` are reported for the first time."""
        return self.followed.select(self.reportable())

    def reportable(self) -> Bool[np.ndarray, " K"]:
        """Return which tracks are confirmed and have a recent detection.

        A track that may have left the view is reported for at most one frame without a detection.
        """
        box = self.followed.box
        in_view = ((box[:, :2] >= 0) & (box[:, 2:] <= self.frame)).all(1)
        lately = np.where(in_view, self.settings.reported, min(self.settings.reported, 1))
        reportable: np.ndarray = self.proven() & (self.followed.missed <= lately)
        return reportable

    def expected(self) -> Float[np.ndarray, "K 4"]:
        """Return the boxes of the confirmed tracks, predicted for the next frame."""
        motion, spread = predict(self.followed.motion, self.followed.spread, VELOCITY_NOISE * self.unit)
        return replace(self.followed, motion=motion, spread=spread).select(self.proven()).box

    def partners(self, motion: Motion, found: Detections) -> Int[np.ndarray, " K"]:
        """Return the row of each track's detection; -1 for none."""
        away = centre_distances(motion[:, :, 0], centres(found.box)) / self.unit
        unlike = np.abs(self.followed.colour[:, None] - found.colour).max(-1)
        cost = away + COLOUR_WEIGHT * unlike
        allowed = (away <= GATE) & (unlike <= COLOUR_GATE)
        if math.isfinite(self.settings.size_gate):
            size = np.log((found.box[:, 2:] - found.box[:, :2]).clip(min=1))
            other_size = np.abs(np.log(self.followed.size.clip(min=1))[:, None] - size).max(-1)
            allowed &= other_size <= self.settings.size_gate
            cost += SIZE_WEIGHT * other_size
        cost += self.settings.missed_cost * self.followed.missed.clip(max=MOST_MISSED)[:, None]
        return assign(np.where(allowed, cost, np.inf))

    def go_on(self, motion: Motion, spread: Spread, found: Detections, partner: Int[np.ndarray, " K"]) -> TrackStates:
        """Return the tracks updated with their detections, without those that end."""
        before, seen = self.followed, partner >= 0
        box, colour = found.box[partner[seen]], found.colour[partner[seen]]
        size, tint = before.size.copy(), before.colour.copy()
        motion[seen], spread[seen] = update(motion[seen], spread[seen], centres(box), POSITION_NOISE * self.unit)
        grown = box[:, 2:] - box[:, :2] - size[seen]
        slowly = self.settings.size_rate if self.settings.shrink_rate is None else self.settings.shrink_rate
        size[seen] += np.where(grown > 0, self.settings.size_rate, slowly) * grown
        tint[seen] += self.settings.size_rate * (colour - tint[seen])
        missed = np.where(seen, 0, before.missed + 1)
        new = before.new & ~self.reportable()
        in_view = ((motion[:, :, 0] >= 0) & (motion[:, :, 0] <= self.frame)).all(1)
        after = TrackStates(before.id, motion, spread, size, tint, missed, before.sightings + seen, partner, new)
        return after.select(seen | ((missed <= self.settings.patience) & in_view))

    def begin(self, found: Detections, rows: Int[np.ndarray, " N"]) -> TrackStates:
        """Return new tracks that begin with these rows of the detections."""
        box = found.box[rows]
        self.begun += len(rows)
        first = np.diag([POSITION_NOISE * self.unit, FIRST_VELOCITY_NOISE * self.unit]) ** 2
        return TrackStates(
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
    """Return the Kalman prediction for one frame later.

    The velocity changes randomly with a standard deviation of `shove`, in pixels per frame.
    """
    step = np.array([[1.0, 1.0], [0.0, 1.0]])
    push = np.array([0.5, 1.0])
    return motion @ step.T, step @ spread @ step.T + shove**2 * np.outer(push, push)


def update(motion: Motion, spread: Spread, seen: Float[np.ndarray, "K 2"], noise: float) -> tuple[Motion, Spread]:
    """Return the posterior for positions measured with a standard deviation of `noise` pixels."""
    gain = spread[:, :, 0] / (spread[:, 0, 0] + noise**2)[:, None]  # [K, 2]
    surprise = seen - motion[:, :, 0]
    return motion + surprise[:, :, None] * gain[:, None, :], spread - gain[:, :, None] * spread[:, None, 0, :]


def centres(box: Float[np.ndarray, "N 4"]) -> Float[np.ndarray, "N 2"]:
    """Return the centres of boxes."""
    middle: np.ndarray = (box[:, :2] + box[:, 2:]) / 2
    return middle
