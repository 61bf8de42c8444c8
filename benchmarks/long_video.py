"""`python -m benchmarks.long_video`: what tracking a long video takes, as `scalor track` does it.

A film of shapes is written to an .mp4, tracked with shipped weights, and turned into all result files. Memory should be
the same late in the film as early in it.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import plan, report
from benchmarks.timing import of_process
from scalor import checkpoint
from scalor.data.scenes import Scenes
from scalor.outputs import ResultFolder
from scalor.pipeline import track_video
from scalor.presets import get_preset
from scalor.tracking.video_view import look_at
from scalor.video import open_video, write_video

RESULT = Path(__file__).parent / "results" / "cpu-long-video.json"
FPS = 25
LOOP = 500
"""Frames after which the film begins again."""


@dataclass(frozen=True)
class Row:
    frames: int
    """Tracked and written so far."""
    step: str
    """`finished` when all files are in their places."""
    seconds: float
    """Since the row before."""
    frames_per_s: float | None
    mib: float | None
    """In use by the process."""
    peak_mib: float | None
    """The most that it ever used."""


class Watched(ResultFolder):
    """A result folder that notes time and memory after some numbers of frames."""

    def __init__(self, path: Path, size: tuple[int, int], fps: float, marks: Sequence[int], **more: Any) -> None:
        super().__init__(path, size, fps, **more)
        self.marks = marks
        self.rows: list[Row] = []
        self.count = 0
        self.last = time.perf_counter()

    def add(self, *frame: Any) -> None:
        super().add(*frame)
        self.count += 1
        if self.count in self.marks:
            self.note("tracking")

    def note(self, step: str) -> None:
        now = time.perf_counter()
        since = self.count - (self.rows[-1].frames if self.rows else 0)
        took, self.last = now - self.last, now
        rate = since / took if since else None
        self.rows.append(Row(self.count, step, took, rate, mib("VmRSS"), mib("VmHWM")))


def mib(name: str) -> float | None:
    found = of_process(name)
    return None if found is None else found / 2**20


def film(frames: int) -> Iterator[np.ndarray]:
    """Test scenes of shapes-md, one clip over and over."""
    scene = get_preset("shapes-md").test
    clip = Scenes(scene, 0, "test").clips(0, 1, min(LOOP, frames)).frames[0]
    pictures = (clip.permute(0, 2, 3, 1) * 255).round().byte().numpy()
    return (pictures[number % len(pictures)] for number in range(frames))


def measure(weights: str, marks: Sequence[int], masks: bool, folder: Path) -> list[Row]:
    write_video(folder / "long.mp4", film(max(marks)), FPS)
    video = open_video(folder / "long.mp4")
    with Watched(folder / "tracked", video.full_size, video.fps, marks, masks=masks) as results:
        tracker = checkpoint.load_tracker(weights)
        results.last = time.perf_counter()
        track_video(tracker, look_at(video, camera_may_move=False), results)
    results.note("finished")
    assert results.summary.frames == max(marks)
    return results.rows


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_video", description=__doc__)
    parser.add_argument("--weights", default="shapes-md", help="shipped name, run folder or .safetensors file")
    parser.add_argument(
        "--marks", type=int, nargs="+", default=[2_000, 20_000], help="frames to measure after; the last is the length"
    )
    parser.add_argument("--masks", action="store_true", help="also write masks")
    parser.add_argument("--out", type=Path, default=RESULT, help="JSON file")
    asked = parser.parse_args(words)
    origin = report.provenance(plan.CPU, words)
    del origin["settings"]
    origin["command"] = origin["command"].replace("benchmarks", "benchmarks.long_video", 1)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(asked.weights, sorted(asked.marks), asked.masks, Path(folder))
    took = round(time.perf_counter() - start, 1)
    report.write(asked.out, {"took_s": took, "rows": [asdict(row) for row in rows], **origin})
    print(f"{origin['command']}\ncommit {origin['commit']}, {origin['date']}\n\n{report.table(rows)}\n\n-> {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
