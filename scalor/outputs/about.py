"""`results.json`: the facts about a result folder that other programs and later commands need."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.files import as_json
from scalor.health import Health
from scalor.health.verdict import LEVELS, Measure, verdict_of
from scalor.replacement import settle

ABOUT_FILE = "results.json"
LARGEST = 2**16
"""Largest side of a video, in pixels."""


@dataclass(frozen=True)
class About:
    """Facts about the results of one video."""

    size: tuple[int, int]
    """Height and width of the video."""
    video_fps: float
    """Frames per second of the video."""
    stride: int
    """Number of frames of the video per tracked frame."""
    facts: Mapping[str, str]
    """Origin of the results: video, weights, command, commit and date, as in the report."""
    video: str | None = None
    """Absolute path of the video; None if it is unknown."""
    health: Health | None = None
    predicted_from: int | None = None
    """Number of the first frame that was predicted and not observed; None if all were observed."""

    @property
    def fps(self) -> float:
        """Tracked frames per second."""
        return self.video_fps / self.stride

    def is_predicted(self, frame: int) -> bool:
        """Return whether a frame was predicted: the video does not hold its picture."""
        return self.predicted_from is not None and frame >= self.predicted_from

    def find_video(self, given: str | Path | None = None) -> str | Path:
        """Return the path of the video, or the one that is given. Raise InputError if it is unknown."""
        path = given or self.video
        if path is None:
            raise InputError("the results do not name their video: name it with --video.")
        return path

    def write(self, folder: Path) -> None:
        """Write `results.json` beside the complete `tracks.csv`, whose digest tells the tracks from others."""
        document = {
            "size": list(self.size),
            "fps": self.video_fps,
            "stride": self.stride,
            "video": self.video,
            "facts": dict(self.facts),
            "health": None if self.health is None else self.health.to_dict(),
            "predicted_from": self.predicted_from,
            "tracks_sha256": hashlib.sha256((folder / "tracks.csv").read_bytes()).hexdigest(),
        }
        (folder / ABOUT_FILE).write_text(as_json(document), encoding="utf-8")


def read_about(folder: str | Path) -> About:
    """Read `results.json` of a result folder. Raise InputError if it is missing or damaged."""
    settle(Path(folder))
    path = Path(folder) / ABOUT_FILE
    if not path.exists():
        raise InputError(f"{folder} has no {ABOUT_FILE}: make it again with `scalor track VIDEO --out {folder}`.")
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        height, width = document["size"]
        video, predicted_from = document["video"], document.get("predicted_from")
        about = About(
            size=(int(height), int(width)),
            video_fps=float(document["fps"]),
            stride=int(document["stride"]),
            facts={name: str(value) for name, value in document["facts"].items()},
            video=None if video is None else str(video),
            health=_health(document["health"]),
            predicted_from=None if predicted_from is None else int(predicted_from),
        )
        if not (1 <= min(about.size) <= max(about.size) <= LARGEST and 0 < about.video_fps <= 1e6 and about.stride > 0):
            raise ValueError
        return about
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is damaged: make it again with `scalor track VIDEO --out {folder}`.") from error


def _health(document: dict[str, Any] | None) -> Health | None:
    if document is None:
        return None
    measures = tuple(Measure(**one) for one in document["measures"])
    if any(one.level not in LEVELS or not isinstance(one.sentence, str) for one in measures):
        raise ValueError("a measure is damaged")
    return Health(verdict_of(measures), measures)


def video_path(facts: Mapping[str, object]) -> str | None:
    """Return the absolute path of the video that facts name; None if it does not exist."""
    named = facts.get("video")
    if named is None:
        return None
    path = Path(str(named))
    return str(path.resolve()) if path.exists() or path.parent.exists() else None
