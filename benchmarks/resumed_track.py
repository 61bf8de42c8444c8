"""`python -m benchmarks.resumed_track`: what kills of `scalor track` cost, and whether the bytes are the same after.

A long film of walking boxes is tracked in one piece, and once more with kills (SIGKILL) at random frames, each followed
by the same command. A kill comes some time after the last snapshot before its frame, as long as such frames took in one
piece.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import plan, report, walking
from scalor.outputs.result_folder import SEGMENTS
from scalor.outputs.resuming import SNAPSHOT
from scalor.replacement import PARTIAL
from scalor.video.segments import SEGMENT

RESULT = Path(__file__).parent / "results" / "cpu-resumed-track.json"


@dataclass(frozen=True)
class Row:
    run: str
    """`whole`, or a number of the killed run's parts."""
    killed_at: int | None
    """The frame, about."""
    seconds: float
    snapshot_mib: float | None
    """Size of the snapshot that is left; None if there is none."""
    files: int
    """Number of files that are finished."""
    other_bytes: int | None
    """How many of them differ from those of the whole run."""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def track(folder: Path, words: Sequence[str], snapshots: int | None = None, after: float = 0.0) -> float:
    """Run `scalor track` in a folder, and return how long it ran.

    With `snapshots`, kill it so many seconds after it has that many.
    """
    start = time.monotonic()
    command = [sys.executable, "-m", "scalor", "track", "../film.mp4", "--out", "tracked", *words]
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if snapshots is None:
        assert running.wait() == 0
        return time.monotonic() - start
    films = folder / "tracked" / PARTIAL / SEGMENTS
    while running.poll() is None and len(list(films.glob("overlay-*.mp4"))) < snapshots:
        time.sleep(0.05)
    time.sleep(after)
    running.kill()
    running.wait()
    return time.monotonic() - start


def measure(folder: Path, video: Path | None, frames: int, kills: int, seed: int, words: Sequence[str]) -> list[Row]:
    if video is None:
        walking.write(folder / "film.mp4", frames, seed, folder / "truth.txt")
    else:
        (folder / "film.mp4").symlink_to(video.resolve())
    for name in ("whole", "killed"):
        (folder / name).mkdir(exist_ok=True)
    whole = track(folder / "whole", words)
    wanted = contents(folder / "whole" / "tracked")
    rows = [Row("whole", None, whole, None, len(wanted), None)]
    chance = random.Random(seed)
    places = sorted(chance.sample(range(1, frames), kills))
    for number, place in enumerate([*places, None]):
        # The first film segment exists from the first frame on, the next one from the frame after a snapshot on.
        before, beyond = (None, 0) if place is None else (place // SEGMENT + 1, place % SEGMENT)
        seconds = track(folder / "killed", words, before, beyond * whole / frames)
        tracked = folder / "killed" / "tracked"
        snapshot = tracked / PARTIAL / SNAPSHOT
        size = snapshot.stat().st_size / 2**20 if snapshot.exists() else None
        done = (tracked / "report.html").exists()
        found = contents(tracked) if done else {}
        other = sum(found.get(name) != data for name, data in wanted.items()) if done else None
        rows.append(Row(str(number), place, seconds, size, len(found), other))
    return rows


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resumed_track", description=__doc__)
    parser.add_argument("--video", type=Path, default=None, help="video to track (default: a film of boxes)")
    parser.add_argument("--frames", type=int, default=20_000, help="frames of the film of boxes")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="seed of the film and of the moments of the kills")
    parser.add_argument("--weights", default="any")
    parser.add_argument("--keep", type=Path, default=None, help="folder to keep the film and the results in")
    parser.add_argument("--out", type=Path, default=RESULT, help="JSON file")
    asked = parser.parse_args(words)
    origin = report.provenance(plan.CPU, words)
    del origin["settings"]
    origin["command"] = origin["command"].replace("benchmarks", "benchmarks.resumed_track", 1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        chosen = ["--weights", asked.weights, "--device", "cpu"]
        rows = measure(folder, asked.video, asked.frames, asked.kills, asked.seed, chosen)
    report.write(asked.out, {"rows": [asdict(row) for row in rows], **origin})
    print(f"{origin['command']}\ncommit {origin['commit']}, {origin['date']}\n\n{report.table(rows)}\n\n-> {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
