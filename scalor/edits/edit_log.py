"""`edits.jsonl`: the append-only log of edits, one JSON object per line.

The first line names the tracks that the edits belong to. Undo and redo are lines of their own, so nothing is ever
removed. A line counts once its line break is written; what a killed process left after the last one is ignored and
overwritten by the next line.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scalor.edits.operations import Edit, Redo, Step, Undo, step_from_dict, step_to_dict
from scalor.errors import InputError

LOG_FILE = "edits.jsonl"
VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One line of the log."""

    step: Step
    when: str
    """Time in UTC, such as 2026-01-31T12:30:00Z."""


def read_log(path: str | Path, tracks_sha256: str | None = None) -> list[Entry]:
    """Read the entries of a log; none if there is no such file.

    Parameters
    ----------
    path : str or Path
        The file `edits.jsonl`.
    tracks_sha256 : str, optional
        SHA-256 of the `tracks.csv` that the edits must belong to.

    Raises
    ------
    InputError
        If a line is damaged, or if the log belongs to other tracks.

    Examples
    --------
    >>> entries = read_log("tracked/edits.jsonl")
    """
    path = Path(path)
    if not path.exists():
        return []
    whole = path.read_bytes()
    lines = whole[: whole.rfind(b"\n") + 1].split(b"\n")[:-1]
    if not lines:
        return []
    header = _parsed(path, 1, lines[0])
    if header.get("scalor_edits") != VERSION:
        raise InputError(f"{path}, line 1: this is not a log of edits of version {VERSION}; restore it from a copy.")
    if tracks_sha256 is not None and header.get("tracks_sha256") != tracks_sha256:
        raise InputError(f"{path} belongs to other tracks than {path.parent} holds: move it away to start again.")
    entries = []
    for number, line in enumerate(lines[1:], start=2):
        document = _parsed(path, number, line)
        when = document.pop("when", "")
        try:
            entries.append(Entry(step_from_dict(document), str(when)))
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
    try:
        in_effect([entry.step for entry in entries])
    except InputError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    return entries


def _parsed(path: Path, number: int, line: bytes) -> dict[str, object]:
    """Return a line of the log as a dictionary."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InputError(f"{path}, line {number} is damaged: restore the file from a copy, or delete that line.")
    return document


def append(path: Path, step: Step, tracks_sha256: str) -> Entry:
    """Append a step, and the header if the log is new; the line is on disk when this returns."""
    entry = Entry(step, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    with open(path, "a+b") as file:
        file.seek(0)
        end = file.read().rfind(b"\n") + 1
        file.truncate(end)
        if not end:
            file.write(_line({"scalor_edits": VERSION, "tracks_sha256": tracks_sha256}))
        file.write(_line({**step_to_dict(step), "when": entry.when}))
        file.flush()
        os.fsync(file.fileno())
    return entry


def _line(document: dict[str, object]) -> bytes:
    return (json.dumps(document, allow_nan=False) + "\n").encode()


def in_effect(steps: Sequence[Step]) -> list[Edit]:
    """Return the edits that are in effect after all steps. An edit after an undo ends the chance of a redo.

    Examples
    --------
    >>> in_effect([Delete(3), Delete(4), Undo(), Undo(), Redo()])
    [Delete(id=3, first=None, last=None)]
    """
    done: list[Edit] = []
    undone: list[Edit] = []
    for step in steps:
        match step:
            case Undo():
                if not done:
                    raise InputError("there is nothing to undo.")
                undone.append(done.pop())
            case Redo():
                if not undone:
                    raise InputError("there is nothing to redo.")
                done.append(undone.pop())
            case edit:
                done.append(edit)
                undone.clear()
    return done
