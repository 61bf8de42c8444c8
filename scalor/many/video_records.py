"""Records: what came of each video, and with what it was tracked, in one JSON file per video."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from scalor.files import as_json, replacing

RECORDS = "videos"
"""Folder of the records, one JSON file per video, in the folder of all results."""
VIDEOS = "tracked"
"""Folder of the result folders, in the folder of all results."""
State = Literal["done", "kept", "failed", "begun", "tracked"]


@dataclass(frozen=True)
class VideoOutcome:
    """What came of a video."""

    name: str
    video: str
    state: State
    """`kept` if the results of an earlier run were there already. In records only: `begun`, a fit under way; `tracked`,
    results that are not in the store yet."""
    reason: str = ""
    """Why it failed."""
    frames: int = 0
    objects: int = 0
    rows: int = 0
    verdict: str | None = None
    """Health of the tracks; None if it could not be judged."""
    seconds: float = 0.0
    attempts: int = 1
    frames_before: int = 0
    """Frames that were there already from a worker that was stopped or killed."""


def record_path(out: Path, name: str, records: str = RECORDS) -> Path:
    """Return the file of the record of a video."""
    return out / records / f"{name}.json"


def write_record(out: Path, outcome: VideoOutcome, key: dict[str, str], records: str = RECORDS) -> None:
    """Write down what came of a video, and with what."""
    path = record_path(out, outcome.name, records)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(as_json({"key": key, "outcome": asdict(outcome)}))
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())


def read_record(out: Path, name: str, records: str = RECORDS) -> dict[str, Any] | None:
    """Return the record of a video; None if there is no usable one."""
    try:
        record = json.loads(record_path(out, name, records).read_bytes())
        VideoOutcome(**record["outcome"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if isinstance(record.get("key"), dict) else None


def recorded(out: Path, records: str = RECORDS) -> list[str]:
    """Return the names of all videos that have a record."""
    return sorted(path.stem for path in (out / records).glob("*.json") if not path.name.startswith("."))
