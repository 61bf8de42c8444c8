"""Long-term identities: post-processing of the tracks that a model reports frame by frame.

A model that tracks each object separately confuses identities when objects meet. Two of its tracks may stay on one
object for good, one of them often on a part of it. An object that is hidden for a second gets a new id. Here, duplicate
tracks are removed, and the rest is linked by a Kalman filter that continues while an object is hidden.

A frame is decided some frames later, when it is known how its objects continue. An object is therefore reported from
its first detection on, although several detections are needed to confirm it. While it is hidden, its box is
interpolated between the detections before and after. After its last detection it is no longer reported.

The model's own ids are not used: as a cue for linking they made the result worse. Lengths are in sizes of an object.
The numbers were chosen on PETS 2009 S2L1, view 1, simulated cells and TUD campus together (docs/log.md).
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from scalor.boxes import box_ious
from scalor.tracking.kalman import Detections, Linker, LinkerSettings
from scalor.tracks import Tracks

DUPLICATE_IOU = 0.4
"""Smallest intersection over union of two boxes that count as one object."""
DUPLICATE_COVER = 0.7
"""Two boxes also count as one object if they share more than this part of the smaller box."""
SETTINGS = LinkerSettings(patience=20, reported=0, size_rate=0.3, shrink_rate=0.1, size_gate=1.2, missed_cost=0.05)
"""Settings of the linker."""
PROOF, PROOF_SECONDS = 4, 0.3
"""Detections that confirm an object: at least PROOF, and as many as there are frames in PROOF_SECONDS (at most half the
lag). Early in a video, one in each frame so far is enough."""
LAG = 20
"""Frames between a frame and the one at which it is decided. It is as long as the linker waits for a hidden object."""
PREDICTED_PRESENCE = 0.3
"""Presence reported for an interpolated box. It is lower than what models require of an object that they track."""
MIN_PRESENCE, MIN_MEAN_PRESENCE = 0.45, 0.5
"""Smallest presence of a detection of typical shape, and smallest mean presence of a track."""
PRESENCE_PER_DISTANCE, FREE_DISTANCE, MAX_PRESENCE_ASKED = 0.7, 0.3, 0.92
"""Additional presence required of a box of unusual shape. Beyond a distance of FREE_DISTANCE, the required presence
rises by PRESENCE_PER_DISTANCE for each unit of distance, up to MAX_PRESENCE_ASKED in all. The distance is that of the
logarithms of height and width (`shape_distance`)."""


class Identities:
    """Assignment of long-term ids to the tracks of one video, `lag` frames later, in memory that does not grow."""

    def __init__(
        self,
        object_size: tuple[float, float],
        view: tuple[int, int, int, int],
        lag: int = LAG,
        likely: float = 0.0,
        any_direction: bool = False,
        fps: float = 0.0,
    ) -> None:
        """Set up the identities of one video.

        Parameters
        ----------
        object_size
            Typical height and width in pixels of the video.
        view
            x0, y0, x1, y1 of the visible region, in pixels of the video.
        lag
            Frames to wait before a frame is decided.
        likely
            Smallest mean presence of a track.
        any_direction
            Whether long objects turn, so that their heights and widths may change abruptly.
        fps
            Frames per second that `step` receives.
        """
        x0, y0, x1, y1 = view
        self.corner = np.array([x0, y0, x0, y0])
        settings = replace(SETTINGS, size_gate=math.inf) if any_direction else SETTINGS
        self.linker = Linker(object_size, (y1 - y0, x1 - x0), settings)
        self.lag, self.likely = lag, likely
        self.proof = max(PROOF, min(round(PROOF_SECONDS * fps), lag // 2))
        self.waiting: deque[UndecidedFrame] = deque()
        self.lives: dict[int, TrackHistory] = {}
        self.reported = 0
        """Number of objects reported so far."""

    def step(self, tracks: Tracks) -> list[Tracks]:
        """Add the next frame and return the frames that are decided by now.

        The tracks are in pixels of the video and contain no duplicates.
        """
        now = self.linker.frames
        linked = self.linker.step(Detections(tracks.box - self.corner, np.zeros((len(tracks), 3))))
        row_of: dict[int, int] = {}
        for track, row in enumerate(linked.detection):
            if row < 0:
                continue
            number = int(linked.id[track])
            row_of[number] = int(row)
            middle = (tracks.box[row, :2] + tracks.box[row, 2:]) / 2
            life = self.lives.setdefault(number, TrackHistory())
            life.add(now, middle, linked.size[track], float(tracks.confidence[row]))
            life.believed |= life.count >= min(self.proof, now + 1) and life.mean_presence >= self.likely
        self.waiting.append(UndecidedFrame(now, replace(tracks, masks=None), packed(tracks.masks), row_of))
        return list(self.decided(now - self.lag))

    def finish(self) -> list[Tracks]:
        """Return the remaining frames, after the end of the video."""
        return list(self.decided(self.linker.frames))

    def decided(self, until: int) -> Iterator[Tracks]:
        """Yield the waiting frames up to this frame number, and drop what later frames do not need."""
        while self.waiting and self.waiting[0].time <= until:
            seen = self.waiting.popleft()
            yield self.report(seen)
            followed = {int(number) for number in self.linker.followed.id}
            for number, life in list(self.lives.items()):
                life.forget(seen.time)
                if number not in followed and life.times[-1] <= seen.time:
                    del self.lives[number]

    def report(self, seen: "UndecidedFrame") -> Tracks:
        """Return the confirmed objects of a frame whose previous and later detections are known by now."""
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
        tracks, masks = seen.tracks, unpacked(seen.masks, seen.tracks.size)
        row = np.array([row for _, row, _, _ in rows], int)  # -1 for interpolated boxes
        return Tracks(
            clip=np.zeros(len(row), int),
            frame=np.full(len(row), seen.time),
            id=np.array([number for number, _, _, _ in rows], int) + 1,
            box=np.array([box for _, _, box, _ in rows]).reshape(-1, 4),
            confidence=np.append(tracks.confidence, PREDICTED_PRESENCE)[row],
            discovered=np.array([new for _, _, _, new in rows], bool),
            size=tracks.size,
            masks=None if masks is None else chosen(masks, row),
            dropped=tracks.dropped,
        )


@dataclass
class TrackHistory:
    """Detections of one object, as far back as they are needed."""

    times: list[int] = field(default_factory=list)
    middles: list[Float[np.ndarray, " 2"]] = field(default_factory=list)
    halves: list[Float[np.ndarray, " 2"]] = field(default_factory=list)
    """Half the width and height of each detection, as the linker smoothed them."""
    count: int = 0
    presence: float = 0.0
    """Sum over all detections."""
    believed: bool = False
    """Whether enough detections confirm the object."""
    id: int | None = None
    """Reported id; None until the object is first reported."""

    @property
    def mean_presence(self) -> float:
        """Mean presence of all detections."""
        return self.presence / max(1, self.count)

    def add(self, time: int, middle: np.ndarray, size: np.ndarray, presence: float) -> None:
        """Add a detection."""
        self.times.append(time)
        self.middles.append(middle)
        self.halves.append(size / 2)
        self.count += 1
        self.presence += presence

    def box_at(self, time: int) -> Float[np.ndarray, " 4"] | None:
        """Return the detected or interpolated box in a frame.

        It is None before the first detection and after the last one.
        """
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
        """Return the centre of a detected box, smoothed with those of the previous and the next frame."""
        beside = [other for other in (at - 1, at + 1) if 0 <= other < len(self.times)]
        near = [self.middles[other] for other in beside if abs(self.times[other] - self.times[at]) == 1]
        if len(near) < 2:
            return self.middles[at]
        smooth: np.ndarray = (near[0] + 2 * self.middles[at] + near[1]) / 4
        return smooth

    def forget(self, time: int) -> None:
        """Drop what no frame after this one needs: all detections before the last one up to this time."""
        needless = bisect_left(self.times, time + 1) - 1
        if needless > 0:
            del self.times[:needless], self.middles[:needless], self.halves[:needless]


@dataclass(frozen=True)
class UndecidedFrame:
    """The detections of a frame whose ids are not decided yet."""

    time: int
    tracks: Tracks
    """The detections, without their masks."""
    masks: UInt8[np.ndarray, "N H bytes"] | None
    """Masks of the detections, eight pixels in a byte."""
    row_of: dict[int, int]
    """Row of the detection of each linker track, by the track's id in the linker."""


def box_around(middle: Float[np.ndarray, " 2"], half: Float[np.ndarray, " 2"]) -> Float[np.ndarray, " 4"]:
    """Return the box with this centre and half its width and height."""
    return np.concatenate([middle - half, middle + half])


def packed(masks: Bool[np.ndarray, "N H W"] | None) -> UInt8[np.ndarray, "N H bytes"] | None:
    """Return masks with eight pixels in a byte."""
    return None if masks is None else np.packbits(masks, axis=-1)


def unpacked(masks: UInt8[np.ndarray, "N H bytes"] | None, size: tuple[int, int]) -> Bool[np.ndarray, "N H W"] | None:
    """Return masks from bytes of eight pixels, as `packed` makes them."""
    return None if masks is None else np.unpackbits(masks, axis=-1, count=size[1]).view(bool)


def believable(
    tracks: Tracks, usual: Float[np.ndarray, "N 2"], any_direction: bool, certainty: float
) -> Bool[np.ndarray, " N"]:
    """Return whether the presence of each detection is high enough for its shape.

    Parameters
    ----------
    tracks
        The detections of a frame.
    usual
        Typical width and height at the place of each detection.
    any_direction
        Whether long objects lie in any direction.
    certainty
        How well the typical size is known, from 0 (not at all) to 1.
    """
    unlike = shape_distance(tracks.box, usual, any_direction)
    asked = MIN_PRESENCE + PRESENCE_PER_DISTANCE * certainty * (unlike - FREE_DISTANCE).clip(min=0)
    enough: np.ndarray = tracks.confidence >= asked.clip(max=MAX_PRESENCE_ASKED)
    return enough


def shape_distance(
    box: Float[np.ndarray, "N 4"], usual: Float[np.ndarray, "N 2"], any_direction: bool
) -> Float[np.ndarray, " N"]:
    """Return how far the logarithms of width and height are from the typical ones.

    For long objects that lie in any direction, only the diagonals are compared.
    """
    size = (box[:, 2:] - box[:, :2]).clip(min=1)
    if any_direction:
        away: np.ndarray = np.abs(np.log(np.linalg.norm(size, axis=1) / np.linalg.norm(usual, axis=1)))
    else:
        away = np.linalg.norm(np.log(size / usual), axis=1)
    return away


def merge_duplicates(tracks: Tracks, usual: Float[np.ndarray, "N 2"]) -> Tracks:
    """Merge the tracks of a frame that show the same object.

    Tracks are given from old to new. Of those that show one object, the oldest is kept. It gets the box that is closest
    to the typical width and height at its place (`usual`), and the mask pixels of all of them.
    """
    shown = shown_objects(tracks.box)
    first = np.flatnonzero(shown == np.arange(len(tracks)))
    unusual = np.abs(np.log((tracks.box[:, 2:] - tracks.box[:, :2]).clip(min=1) / usual)).sum(1)
    best = [np.where(shown == row, unusual, np.inf).argmin() for row in first]
    kept = replace(tracks.select(first), box=tracks.box[np.array(best, int)])
    if tracks.masks is None or len(first) == 0:
        return kept
    return replace(kept, masks=np.stack([tracks.masks[shown == row].any(0) for row in first]))


def shown_objects(box: Float[np.ndarray, "N 4"]) -> Int[np.ndarray, " N"]:
    """Return, for each box, the row of the object that it shows.

    Boxes are given from old to new. The row is the box's own row, or that of an older box at the same place.
    """
    overlap = box_ious(box, box)
    area = (box[:, 2:] - box[:, :2]).prod(1)
    shared = overlap * (area[:, None] + area) / (1 + overlap)
    together = (overlap >= DUPLICATE_IOU) | (shared > DUPLICATE_COVER * np.minimum(area[:, None], area))
    shown = np.arange(len(box))
    for row in range(len(box)):
        older = np.flatnonzero(together[row, :row] & (shown[:row] == np.arange(row)))
        if len(older):
            shown[row] = older[overlap[row, older].argmax()]
    return shown


def chosen(masks: Bool[np.ndarray, "N H W"], row: Int[np.ndarray, " K"]) -> Bool[np.ndarray, "K H W"]:
    """Return the masks of these rows; a row of -1 gives an empty mask."""
    nothing = np.zeros((1, *masks.shape[1:]), bool)
    masks_of_rows: np.ndarray = np.concatenate([masks, nothing])[row]
    return masks_of_rows
