"""Apply edits to tracks, as a pure function.

>>> corrected = apply(tracks, [Swap(1, 2, frame=20), Delete(3)])

At any time a frame holds an id at most once: an edit that would break this is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from scalor.config import FPS
from scalor.edits.operations import Add, Delete, Edit, Merge, Name, Split, Swap, check_step, describe
from scalor.errors import InputError
from scalor.tracks import Tracks, join_tracks

ADDED_CONFIDENCE = 1.0
"""Confidence of a box that was added by hand."""


@dataclass
class _Rows:
    """Rows while edits are applied. `origin` is the row in the tracks as they were, or -1 - k for added box k."""

    frame: Int[np.ndarray, " N"]
    id: Int[np.ndarray, " N"]
    origin: Int[np.ndarray, " N"]
    known: set[int]
    """Ids that exist or existed."""
    touched: set[int] = field(default_factory=set)
    added: list[Add] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Edited:
    """Tracks after edits."""

    tracks: Tracks
    origin: Int[np.ndarray, " N"]
    """For each row, its row in the tracks before the edits, or -1 for an added box."""
    names: dict[int, str]
    next_id: int
    """Smallest id above all ids that exist or existed."""


def apply(tracks: Tracks, edits: Sequence[Edit]) -> Tracks:
    """Return the tracks after edits, in their order.

    Parameters
    ----------
    tracks : Tracks
        Tracks of one clip, each id at most once in a frame.
    edits : sequence of Swap, Merge, Split, Delete, Name or Add
        Edits to apply. `frame` and ids are compared with `tracks.frame` and `tracks.id`.

    Returns
    -------
    Tracks
        New tracks, sorted by frame and id; without edits, the same object. In tracks that an edit touched,
        `discovered` is true in the first frame. An added box has an empty mask and confidence 1.

    Examples
    --------
    >>> corrected = apply(tracks, [Swap(1, 2, frame=20), Delete(3)])
    >>> np.unique(corrected.id).tolist()
    [1, 2]
    """
    return apply_traced(tracks, edits).tracks


def names_after(tracks: Tracks, edits: Sequence[Edit]) -> dict[int, str]:
    """Return the names of tracks after edits, by id.

    Examples
    --------
    >>> names_after(tracks, [Name(1, "queen"), Name(2, "guard"), Delete(2)])
    {1: 'queen'}
    """
    return apply_traced(tracks, edits).names


def apply_traced(tracks: Tracks, edits: Sequence[Edit]) -> Edited:
    """Return the tracks after edits with the origin of every row, the names, and the next free id."""
    if len(np.unique(tracks.clip)) > 1:
        raise InputError("these tracks hold several clips and edits belong to one: choose it with tracks.of_clip(i).")
    rows = _Rows(tracks.frame.copy(), tracks.id.copy(), np.arange(len(tracks)), set(np.unique(tracks.id).tolist()))
    for edit in edits:
        check_step(edit)
        _apply_one(rows, edit)
    next_id = max(rows.known, default=0) + 1
    if not edits:
        return Edited(tracks, rows.origin, {}, next_id)
    order = np.lexsort((rows.id, rows.frame))
    edited = _collect(tracks, rows)
    alive = set(np.unique(edited.id).tolist())
    names = {number: name for number, name in sorted(rows.names.items()) if number in alive}
    return Edited(edited, np.maximum(rows.origin[order], -1), names, next_id)


def _apply_one(rows: _Rows, edit: Edit) -> None:
    match edit:
        case Swap(a, b, frame):
            first, second = (_rows_of(rows, number, edit, frame) for number in (a, b))
            if not (first.any() or second.any()):
                raise InputError(f"cannot {describe(edit)}: neither track has a box from there on.")
            rows.id[first], rows.id[second] = b, a
            rows.touched |= {a, b}
        case Merge(keep, other):
            kept, joined = (_rows_of(rows, number, edit) for number in (keep, other))
            shared = np.intersect1d(rows.frame[kept], rows.frame[joined])
            if len(shared):
                raise InputError(
                    f"cannot {describe(edit)}: both have a box in {len(shared)} frames, the first is {shared[0]}; "
                    "swap, split or delete one of them there first."
                )
            rows.id[joined] = keep
            rows.touched.add(keep)
            name = rows.names.pop(other, None)
            if name is not None:
                rows.names.setdefault(keep, name)
        case Split(number, frame, new):
            moved = _rows_of(rows, number, edit, frame)
            if not moved.any() or moved.sum() == (rows.id == number).sum():
                raise InputError(f"cannot {describe(edit)}: the track needs boxes before that frame and from it on.")
            rows.id[moved] = _new_id(rows, new, edit)
            rows.touched.add(int(rows.id[moved][0]))
        case Delete(number, first, last):
            gone = _rows_of(rows, number, edit, first or 0)
            if last is not None:
                gone &= rows.frame <= last
            if not gone.any():
                raise InputError(f"cannot {describe(edit)}: the track has no box there.")
            rows.touched.add(number)
            rows.frame, rows.id, rows.origin = rows.frame[~gone], rows.id[~gone], rows.origin[~gone]
        case Name(number, name):
            _rows_of(rows, number, edit)
            rows.names.pop(number, None)
            if name:
                rows.names[number] = name
        case Add(frame, _, number):
            if number is None:
                number = _new_id(rows, None, edit)
            elif ((rows.id == number) & (rows.frame == frame)).any():
                raise InputError(f"cannot {describe(edit)}: track {number} has a box in that frame already.")
            rows.added.append(edit)
            rows.known.add(number)
            rows.touched.add(number)
            rows.frame, rows.id = np.append(rows.frame, frame), np.append(rows.id, number)
            rows.origin = np.append(rows.origin, -len(rows.added))


def _rows_of(rows: _Rows, number: int, edit: Edit, frame: int = 0) -> Bool[np.ndarray, " N"]:
    """Return which rows belong to a track from a frame on. Raise InputError if there never was such a track."""
    if number not in rows.known:
        raise InputError(f"cannot {describe(edit)}: there is no track {number}.")
    mine: np.ndarray = (rows.id == number) & (rows.frame >= frame)
    if not mine.any() and isinstance(edit, Merge | Name) and not (rows.id == number).any():
        raise InputError(f"cannot {describe(edit)}: track {number} has no boxes any more.")
    return mine


def _new_id(rows: _Rows, new: int | None, edit: Edit) -> int:
    """Return the id of a new track, and note that it is taken."""
    number = max(rows.known, default=0) + 1 if new is None else new
    if number in rows.known:
        raise InputError(f"cannot {describe(edit)}: the id {number} is taken.")
    rows.known.add(number)
    return number


def _collect(tracks: Tracks, rows: _Rows) -> Tracks:
    """Return the rows as tracks, sorted by frame and id."""
    old, new = rows.origin >= 0, rows.origin < 0
    kept = replace(tracks.select(rows.origin[old]), id=rows.id[old])
    parts = [kept]
    if new.any():
        count = int(new.sum())
        boxes = [rows.added[-1 - origin].box for origin in rows.origin[new]]
        added = Tracks(
            clip=np.full(count, tracks.clip[0] if len(tracks) else 0),
            frame=rows.frame[new],
            id=rows.id[new],
            box=np.array(boxes, dtype=tracks.box.dtype),
            confidence=np.full(count, ADDED_CONFIDENCE),
            discovered=np.zeros(count, bool),
            size=tracks.size,
            masks=None if tracks.masks is None else np.zeros((count, *tracks.masks.shape[1:]), bool),
            seconds=_seconds_of(rows.frame[new], tracks),
        )
        parts.append(added)
    edited = join_tracks(parts)
    discovered = edited.discovered.copy()
    touched = np.isin(edited.id, list(rows.touched))
    discovered[touched] = _begins(edited)[touched]
    return replace(edited, discovered=discovered, dropped=tracks.dropped)


def _seconds_of(frame: Int[np.ndarray, " n"], tracks: Tracks) -> Float[np.ndarray, " n"]:
    """Return the times of frames, from the times that the tracks tell of theirs."""
    frames, first = np.unique(tracks.frame, return_index=True)
    seconds = tracks.seconds[first]
    if len(frames) < 2:
        alone: np.ndarray = frame / FPS
        return alone
    rate = (seconds[-1] - seconds[0]) / (frames[-1] - frames[0])
    beyond = np.maximum(frame - frames[-1], 0) - np.maximum(frames[0] - frame, 0)
    times: np.ndarray = np.interp(frame, frames, seconds) + rate * beyond
    return times


def _begins(tracks: Tracks) -> Bool[np.ndarray, " N"]:
    """Return which rows are the first of their track, for rows sorted by frame."""
    begins = np.zeros(len(tracks), bool)
    begins[np.unique(tracks.id, return_index=True)[1]] = True
    return begins
