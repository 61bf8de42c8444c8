"""`python -m benchmarks.soak --frames 100000`: does tracking need more memory, the longer the video is?

Makes a video of small pictures at few frames a second, discs that move to and fro on a textured ground, so that many
hours pass quickly; runs `scalor track` on it; and prints the memory of that process, and the time that its frames took,
for every fiftieth of the video. The exit code is 1 if memory grew after the first fifth.
(`benchmarks.long_run` is about real footage and scores.)
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.long_run import watch
from benchmarks.spoiling import Picture
from benchmarks.track_command import origin
from scalor.video import VideoWriter

FRAMES, FPS, SIDE, DISCS, PARTS = 100_000, 3, 64, 3, 50
"""At 3 frames a second, 100,000 frames are more than nine hours."""
MOST_GROWTH_MIB = 16.0
"""Growth of memory after the first fifth of the video that counts as none: less than 200 bytes a frame."""


@dataclass(frozen=True)
class Row:
    frames: int
    """Frames that were written."""
    hours: float
    """Time of the video until then."""
    mib: float
    """Resident memory of the process then."""


def pictures(frames: int, seed: int) -> Iterator[Picture]:
    """Yield the pictures. Every disc moves to and fro along a line of its own, so the scene never ends."""
    random = np.random.default_rng(seed)
    ground = random.integers(60, 100, (SIDE, SIDE, 3), np.uint8)
    y, x = np.mgrid[:SIDE, :SIDE]
    rows = (np.arange(DISCS) + 0.5) * SIDE / DISCS
    speeds, phases = random.uniform(0.6, 1.4, DISCS), random.uniform(0, 100, DISCS)
    for frame in range(frames):
        picture = ground.copy()
        for disc in range(DISCS):
            place = (speeds[disc] * frame + phases[disc]) % (2 * (SIDE - 12))
            centre = 6 + min(place, 2 * (SIDE - 12) - place)
            picture[np.hypot(x - centre, y - rows[disc]) < 4.5] = (240 - 60 * disc, 90 + 60 * disc, 200)
        yield picture


def measure(frames: int, weights: str | None, seed: int, folder: Path) -> tuple[list[Row], float, str | None]:
    """Return memory over the video, the seconds that it took, and what went wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    video = folder / f"soak-{frames}.mp4"
    with VideoWriter(video, FPS) as writer:
        for picture in pictures(frames, seed):
            writer.write(picture)
    marks = [frames * part // PARTS for part in range(1, PARTS + 1)]
    tracked, memory = watch(video, folder / "tracked", weights, marks)
    rows = [Row(mark, round(mark / FPS / 3600, 2), round(memory[mark], 1)) for mark in marks if mark in memory]
    return rows, tracked.seconds, tracked.error


def growth(rows: Sequence[Row]) -> float:
    """Return how much memory grew while frames were tracked, after the first fifth, MiB.

    The last row is left out: the report is written then, which takes the same memory for a video of any length.
    """
    first = max(1, len(rows) // 5 - 1)
    return round(max(row.mib for row in rows[first:-1]) - rows[first].mib, 1)


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--frames", type=int, default=FRAMES, help="length of the video (default: %(default)s)")
    parser.add_argument("--weights", help="as `scalor track` takes them (default: its own)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "scalor-soak")
    parser.add_argument("--json", type=Path, help="file for the figures")
    asked = parser.parse_args(words)
    told = origin("soak", words, asked.seed)
    rows, seconds, error = measure(asked.frames, asked.weights, asked.seed, asked.out)
    print(f"{told['command']}\ncommit {told['commit']}, {told['date']}\n\n{report.table(rows)}")
    if error is not None or len(rows) < 3:
        print(f"failed: {error}")
        return 1
    print(f"\n{seconds:.0f} s; {growth(rows):.1f} MiB more after the first fifth")
    if asked.json:
        figures = {"rows": [asdict(row) for row in rows], "seconds": round(seconds, 1), "growth_mib": growth(rows)}
        report.write(asked.json, {**figures, **told})
    return int(growth(rows) > MOST_GROWTH_MIB)


if __name__ == "__main__":
    sys.exit(main())
