"""Time of tracking a video of one's own: boxes that walk in a film of the size of PETS, with the weights `pets`.

Pictures come from an array, and no files are written.

As with other streams only the later half of the frames counts.
"""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.plan import Plan
from scalor.pipeline import load_for
from scalor.tracking.follow import follow
from scalor.tracking.video_view import VideoView, look_at
from scalor.video import open_video

WEIGHTS = "pets"
HEIGHT, WIDTH = 576, 768
WALKERS = 8
TIMES_AS_LONG = 6
"""The film is so many times as long as other streams: a frame of it varies more."""


@dataclass(frozen=True)
class VideoRow:
    what: str
    live: float
    """Tracks a frame."""
    ms_per_frame: float
    frames_per_s: float


def rows(plan: Plan) -> list[VideoRow]:
    """A video of 768x576 pixels with eight walkers, from pictures to tracks, one stream."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.npy"
        np.save(path, film(TIMES_AS_LONG * plan.frames, plan.seed))
        view = look_at(open_video(str(path)))
        return [
            time_video(view, plan, "the model alone", raw=True),
            time_video(view, plan, "with sharper boxes and lasting ids", raw=False),
        ]


def film(frames: int, seed: int) -> np.ndarray:
    """Dark boxes that walk to and fro over grey noise that stands still."""
    random = np.random.default_rng(seed)
    pictures = np.tile(random.integers(100, 156, (1, HEIGHT, WIDTH, 3), np.uint8), (frames, 1, 1, 1))
    for walker, speed in enumerate(random.uniform(2, 5, WALKERS)):
        top = 150 + 30 * walker
        for t, picture in enumerate(pictures):
            left = int(abs((80 * walker + speed * t) % (2 * (WIDTH - 30)) - (WIDTH - 30)))
            picture[top : top + 80, left : left + 30] = 20 + 10 * walker
    return pictures


def time_video(view: VideoView, plan: Plan, what: str, raw: bool) -> VideoRow:
    tracker = load_for(view, WEIGHTS, plan.where)
    counts, times = [], []
    for count, took in timed(len(step.tracks) for step in follow(tracker, view, raw=raw)):
        counts.append(count)
        times.append(took)
    later = len(times) // 2
    took = median(times[later:])
    return VideoRow(what, sum(counts[later:]) / len(counts[later:]), 1e3 * took, 1 / took)


def timed(counts: Iterator[int]) -> Iterator[tuple[int, float]]:
    """Each with the seconds that it took."""
    start = time.perf_counter()
    for count in counts:
        yield count, time.perf_counter() - start
        start = time.perf_counter()
