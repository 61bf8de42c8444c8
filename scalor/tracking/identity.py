"""Identities over long times: what a model saw frame by frame, tidied up.

A model that follows every object by itself loses who is who when they meet: two of its objects may stay on one for
good, one of them often on a part of it, and one that was hidden for a second gets a new id. Here doubles go, and what
is left is linked by a Kalman filter, which goes on while an object is hidden.

A frame is decided some frames later, when it is known what became of its objects. So an object is reported from its
first detection on, though it takes several to believe in it; where it was hidden, its box is interpolated between the
detections before and after; and after its last detection it is not reported any more.

The model's own ids are not used: as a reason to link they made things worse. Lengths are in sizes of an object. The
numbers were chosen on PETS 2009 S2L1, view 1, simulated cells and TUD campus together (docs/log.md).
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from scalor.boxes import box_ious
from scalor.tracking.linking import Detections, Habits, Linker
from scalor.tracks import Tracks

SAME_PLACE = 0.4
"""Boxes with at least this intersection over union show one object;"""
INSIDE = 0.7
"""and so do those that share at least this much of the smaller one."""
HABITS = Habits(patience=20, reported=0, size_rate=0.3, shrink_rate=0.1, size_gate=1.2, missed_cost=0.05)
PROOF, PROOF_SECONDS = 4, 0.3
"""Detections that it takes to believe in an object: at least so many, and those of so long a time; fewer where the
video has fewer frames."""
LAG = 20
"""Frames between a frame and the one at which it is decided: as long as a hidden object is waited for."""
PREDICTED_PRESENCE = 0.3
"""Reported for an interpolated box: less than models ask of an object that they follow."""
BELIEVED, LIKELY = 0.45, 0.5
"""Least presence of a detection of typical shape, and least mean presence of a track."""
PER_UNLIKE, TOLERATED, MOST_ASKED = 0.7, 0.3, 0.92
"""More presence is asked for the more unlike the typical shape a box is: so much for each unit of the distance (of the
logarithms of height and width) beyond what is tolerated, up to a limit."""


class Identities:
    """Gives the tracks of one video lasting ids, `lag` frames later, in memory that does not grow."""

    def __init__(
        self,
        object_size: tuple[float, float],
        view: tuple[int, int, int, int],
        lag: int = LAG,
        likely: float = 0.0,
        any_direction: bool = False,
        fps: float = 0.0,
    ) -> None:
        """`object_size`: typical height and width; `view`: x0, y0, x1, y1 of what is seen; pixels of the video;
        `likely`: least mean presence of a track; `any_direction`: long things turn, so that their heights and widths
        may change at once; `fps`: frames a second that `step` is given."""
        x0, y0, x1, y1 = view
        self.corner = np.array([x0, y0, x0, y0])
        habits = replace(HABITS, size_gate=math.inf) if any_direction else HABITS
        self.linker = Linker(object_size, (y1 - y0, x1 - x0), habits)
        self.lag, self.likely = lag, likely
        self.proof = max(PROOF, min(round(PROOF_SECONDS * fps), lag // 2))
        self.waiting: deque[Seen] = deque()
        self.lives: dict[int, Life] = {}
        self.reported = 0
        """Objects so far."""

    def step(self, tracks: Tracks) -> list[Tracks]:
        """Take the next frame, in pixels of the video, without doubles. Returns the frames that are decided by now."""
        now = self.linker.frames
        linked = self.linker.step(Detections(tracks.box - self.corner, np.zeros((len(tracks), 3))))
        row_of: dict[int, int] = {}
        for track, row in enumerate(linked.detection):
            if row < 0:
                continue
            number = int(linked.id[track])
            row_of[number] = int(row)
            middle = (tracks.box[row, :2] + tracks.box[row, 2:]) / 2
            life = self.lives.setdefault(number, Life())
            life.add(now, middle, linked.size[track], float(tracks.presence[row]))
            life.believed |= life.count >= min(self.proof, now + 1) and life.mean_presence >= self.likely
        self.waiting.append(Seen(now, packed(tracks), row_of))
        return list(self.decided(now - self.lag))

    def finish(self) -> list[Tracks]:
        """The frames that are left when the video has ended."""
        return list(self.decided(self.linker.frames))

    def decided(self, until: int) -> Iterator[Tracks]:
        while self.waiting and self.waiting[0].time <= until:
            seen = self.waiting.popleft()
            yield self.report(seen)
            followed = {int(number) for number in self.linker.followed.id}
            for number, life in list(self.lives.items()):
                life.forget(seen.time)
                if number not in followed and life.times[-1] <= seen.time:
                    del self.lives[number]

    def report(self, seen: "Seen") -> Tracks:
        """The objects of a frame, of which it is known by now where they were before and after."""
        rows: list[tuple[int, int, np.ndarray, bool]] = []
        for number, life in self.lives.items():
            box = life.box_at(seen.time) if life.believed else None
            if box is None:
                continue
            new = life.id is None
            if life.id is None:
                life.id, self.reported = self.reported, self.reported + 1
            rows.append((life.id, seen.row_of.get(number, -1), box, new))
        rows.sort(key=lambda row: row[0])
        tracks, masks = seen.tracks, unpacked(seen.tracks.masks, seen.tracks.size)
        row = np.array([row for _, row, _, _ in rows], int)  # -1 for what is interpolated
        return Tracks(
            clip=np.zeros(len(row), int),
            frame=np.full(len(row), seen.time),
            id=np.array([number for number, _, _, _ in rows], int),
            box=np.array([box for _, _, box, _ in rows]).reshape(-1, 4),
            presence=np.append(tracks.presence, PREDICTED_PRESENCE)[row],
            discovered=np.array([new for _, _, _, new in rows], bool),
            size=tracks.size,
            masks=None if masks is None else chosen(masks, row),
            dropped=tracks.dropped,
        )


@dataclass
class Life:
    """Detections of one object, as far back as they are needed."""

    times: list[int] = field(default_factory=list)
    middles: list[Float[np.ndarray, " 2"]] = field(default_factory=list)
    halves: list[Float[np.ndarray, " 2"]] = field(default_factory=list)
    """Half its width and height."""
    count: int = 0
    presence: float = 0.0
    """Of all detections together."""
    believed: bool = False
    id: int | None = None
    """Once it has been reported."""

    @property
    def mean_presence(self) -> float:
        return self.presence / max(1, self.count)

    def add(self, time: int, middle: np.ndarray, size: np.ndarray, presence: float) -> None:
        self.times.append(time)
        self.middles.append(middle)
        self.halves.append(size / 2)
        self.count += 1
        self.presence += presence

    def box_at(self, time: int) -> Float[np.ndarray, " 4"] | None:
        """Its box: detected, or interpolated between two detections. None before the first and after the last."""
        after = bisect_left(self.times, time)
        if after == len(self.times):
            return None
        if self.times[after] == time:
            return box_around(self.smooth_middle(after), self.halves[after])
        if after == 0:
            return None
        before = after - 1
        share = (time - self.times[before]) / (self.times[after] - self.times[before])
        middle, half = (part[before] + share * (part[after] - part[before]) for part in (self.middles, self.halves))
        return box_around(middle, half)

    def smooth_middle(self, at: int) -> Float[np.ndarray, " 2"]:
        """The middle of a detected box, evened out with those of the frames before and after."""
        beside = [other for other in (at - 1, at + 1) if 0 <= other < len(self.times)]
        near = [self.middles[other] for other in beside if abs(self.times[other] - self.times[at]) == 1]
        if len(near) < 2:
            return self.middles[at]
        smooth: np.ndarray = (near[0] + 2 * self.middles[at] + near[1]) / 4
        return smooth

    def forget(self, time: int) -> None:
        """Drop what no frame after this one needs: all detections before the last one up to then."""
        needless = bisect_left(self.times, time + 1) - 1
        if needless > 0:
            del self.times[:needless], self.middles[:needless], self.halves[:needless]


@dataclass(frozen=True)
class Seen:
    """A frame that is not yet decided."""

    time: int
    tracks: Tracks
    """Detections, with packed masks."""
    row_of: dict[int, int]
    """The detection of each track."""


def box_around(middle: Float[np.ndarray, " 2"], half: Float[np.ndarray, " 2"]) -> Float[np.ndarray, " 4"]:
    return np.concatenate([middle - half, middle + half])


def packed(tracks: Tracks) -> Tracks:
    """The same with eight pixels of a mask in a byte."""
    return tracks if tracks.masks is None else replace(tracks, masks=np.packbits(tracks.masks, axis=-1))


def unpacked(masks: np.ndarray | None, size: tuple[int, int]) -> Bool[np.ndarray, "N H W"] | None:
    return None if masks is None else np.unpackbits(masks, axis=-1, count=size[1]).view(bool)


def believable(
    tracks: Tracks, usual: Float[np.ndarray, "N 2"], any_direction: bool, certainty: float
) -> Bool[np.ndarray, " N"]:
    """Whether the presence of each detection is high enough for its shape.

    `usual`: typical width and height at its place; `certainty`: from 0, where these are not known well, to 1.
    """
    unlike = unlikeness(tracks.box, usual, any_direction)
    asked = BELIEVED + PER_UNLIKE * certainty * (unlike - TOLERATED).clip(min=0)
    enough: np.ndarray = tracks.presence >= asked.clip(max=MOST_ASKED)
    return enough


def unlikeness(
    box: Float[np.ndarray, "N 4"], usual: Float[np.ndarray, "N 2"], any_direction: bool
) -> Float[np.ndarray, " N"]:
    """How far the logarithms of width and height are from the usual ones. Of long things that lie in any direction only
    the diagonal is compared."""
    size = (box[:, 2:] - box[:, :2]).clip(min=1)
    if any_direction:
        away: np.ndarray = np.abs(np.log(np.linalg.norm(size, axis=1) / np.linalg.norm(usual, axis=1)))
    else:
        away = np.linalg.norm(np.log(size / usual), axis=1)
    return away


def without_doubles(tracks: Tracks, usual: Float[np.ndarray, "N 2"]) -> Tracks:
    """The tracks of a frame, the older first: of those that show one object the oldest, with the box that is closest to
    the `usual` width and height at its place, and with the pixels of all."""
    shown = shown_objects(tracks.box)
    first = np.flatnonzero(shown == np.arange(len(tracks)))
    unusual = np.abs(np.log((tracks.box[:, 2:] - tracks.box[:, :2]).clip(min=1) / usual)).sum(1)
    best = [np.where(shown == row, unusual, np.inf).argmin() for row in first]
    kept = replace(tracks.select(first), box=tracks.box[np.array(best, int)])
    if tracks.masks is None or len(first) == 0:
        return kept
    return replace(kept, masks=np.stack([tracks.masks[shown == row].any(0) for row in first]))


def shown_objects(box: Float[np.ndarray, "N 4"]) -> Int[np.ndarray, " N"]:
    """For each box, the oldest first, the row of the object that it shows: its own, or an older one at its place."""
    overlap = box_ious(box, box)
    area = (box[:, 2:] - box[:, :2]).prod(1)
    shared = overlap * (area[:, None] + area) / (1 + overlap)
    together = (overlap >= SAME_PLACE) | (shared > INSIDE * np.minimum(area[:, None], area))
    shown = np.arange(len(box))
    for row in range(len(box)):
        older = np.flatnonzero(together[row, :row] & (shown[:row] == np.arange(row)))
        if len(older):
            shown[row] = older[overlap[row, older].argmax()]
    return shown


def chosen(masks: Bool[np.ndarray, "N H W"], row: Int[np.ndarray, " K"]) -> Bool[np.ndarray, "K H W"]:
    """The masks of these rows, an empty one for a row of -1."""
    nothing = np.zeros((1, *masks.shape[1:]), bool)
    masks_of_rows: np.ndarray = np.concatenate([masks, nothing])[row]
    return masks_of_rows
