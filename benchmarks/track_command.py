"""`scalor track` run as a user runs it, in a process of its own, and what its files say."""

import csv
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import report
from scalor.evaluation.score import BoxRows, Scores, read_boxes, score
from scalor.provenance import commit, today

CLASSICAL = "classical-motion"
DEFAULT = "default"
"""What tables call the tracker that `scalor track` chooses by itself."""
UNKNOWN = "-"


@dataclass(frozen=True)
class Tracked:
    """What one `scalor track` gave."""

    folder: Path
    command: str
    seconds: float
    """From start to end of the process."""
    document: dict[str, Any]
    """What it printed; empty where it failed."""
    error: str | None
    """The last line that it said where it failed."""

    @property
    def health(self) -> dict[str, Any]:
        """What the command says about its own results."""
        found = self.document.get("health")
        return found if isinstance(found, dict) else {}

    @property
    def verdict(self) -> str:
        return "failed" if self.error else str(self.health.get("verdict", UNKNOWN))

    @property
    def frames_per_s(self) -> float | None:
        return self.document.get("frames_per_second")

    def told(self) -> dict[str, Any]:
        """For the JSON of a benchmark: what was run and what it said about itself."""
        return {"track": self.command, "health": self.health, "error": self.error}

    def boxes(self) -> BoxRows:
        return read_boxes(self.folder / "tracks.csv")

    def counts(self) -> np.ndarray:
        """Objects in view, frame by frame."""
        with open(self.folder / "counts.csv", newline="") as file:
            return np.array([int(row["objects"]) for row in csv.DictReader(file)])

    def score(self, truth: Path | None, frames: tuple[int, int] | None = None) -> Scores | None:
        """None where there is no truth or are no tracks."""
        return None if truth is None or self.error else score(self.folder / "tracks.csv", truth, frames)


def words_for(video: Path, folder: Path, weights: str | None) -> list[str]:
    """The words of the command; weights are named only where somebody asked for some."""
    named = [] if weights is None else ["--weights", weights]
    return ["track", str(video), *named, "--out", str(folder), "--json"]


def track(video: Path, folder: Path, weights: str | None = None) -> Tracked:
    """Run the command and wait for its end.

    >>> track(Path("vtest.avi"), Path("tracked"), "pets").score(Path("gt.txt"), (478, 795))
    """
    words = words_for(video, folder, weights)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "scalor", *words], capture_output=True, text=True)
    return finished(folder, words, time.perf_counter() - start, done.returncode, done.stdout, done.stderr)


def finished(folder: Path, words: Sequence[str], seconds: float, code: int, printed: str, said: str) -> Tracked:
    """The result of a process that has ended."""
    command = shlex.join(["scalor", *words])
    if code == 0:
        return Tracked(folder, command, seconds, json.loads(printed), None)
    lines = said.strip().splitlines() or [f"exit code {code}"]
    return Tracked(folder, command, seconds, {}, lines[-1])


def gate_figures(scores: Scores | None, gate: str) -> dict[str, float | None]:
    """MOTA, IDF1 and HOTA under one gate; nothing where nothing was scored."""
    names = ("mota", "idf1", "hota")
    if scores is None:
        return dict.fromkeys(names)
    figures = scores.gates[gate].to_dict()
    return {name: round(figures[name], 4) for name in names}


def origin(program: str, words: Sequence[str], seed: int) -> dict[str, Any]:
    """Enough to make the figures again: command, commit, hardware, date, seed."""
    return {
        "command": shlex.join(["python", "-m", f"benchmarks.{program}", *words]),
        "commit": commit(),
        "date": today(),
        "hardware": report.hardware(torch.device("cuda" if torch.cuda.is_available() else "cpu")),
        "torch": torch.__version__,
        "seed": seed,
    }


def print_failures(documents: Sequence[dict[str, Any]]) -> None:
    """The commands that failed, below a table."""
    for document in documents:
        if document["error"]:
            print(f"failed: {document['track']}\n  {document['error']}")
