"""`python -m benchmarks.stretches`: one video in one piece and in several stretches: time, ids, scores.

The film and the run in one piece may be those that `python -m benchmarks.resumed_track --keep FOLDER` left. Both runs
are scored against the truth of the film, and the joined tracks against those in one piece.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import scalor
from benchmarks import plan, report, walking
from benchmarks.resumed_track import track

RESULT = Path(__file__).parent / "results" / "cpu-stretches.json"


@dataclass(frozen=True)
class Row:
    run: str
    seconds: float | None
    """None if the run was there already."""
    ids: int
    rows: int
    files: int
    mota: float
    """Against the truth, at an IoU of .5."""
    idf1: float
    hota: float
    switches: int
    idf1_with_whole: float | None
    """Against the tracks in one piece."""
    rows_like_whole: float | None
    """Share of the rows in one piece whose box is also among the joined ones, to a thousandth of a pixel."""


def row_of(name: str, seconds: float | None, folder: Path, truth: Path, whole: Path | None) -> Row:
    tracks = scalor.read_tracks(folder)
    score = scalor.score(tracks, truth).gates["iou .5"]
    same = agreed = None
    if whole is not None:
        before = scalor.read_tracks(whole)
        agreed = scalor.score(tracks, before).gates["iou .5"].identity.idf1
        known = {(frame, *box) for frame, box in zip(tracks.frame.tolist(), tracks.box.round(3).tolist(), strict=True)}
        rows = zip(before.frame.tolist(), before.box.round(3).tolist(), strict=True)
        same = float(np.mean([(frame, *box) in known for frame, box in rows]))
    files = sum(path.is_file() for path in folder.rglob("*"))
    clear, number = score.clear, len(np.unique(tracks.id))
    idf1, hota = score.identity.idf1, score.hota.hota
    return Row(name, seconds, number, len(tracks), files, clear.mota, idf1, hota, clear.switches, agreed, same)


def measure(folder: Path, frames: int, seed: int, counts: Sequence[int], jobs: int) -> list[Row]:
    truth, whole = folder / "truth.txt", folder / "whole" / "tracked"
    seconds = None
    if not (whole / "report.html").exists():
        walking.write(folder / "film.mp4", frames, seed, truth)
        (folder / "whole").mkdir(exist_ok=True)
        seconds = track(folder / "whole", ["--device", "cpu"])
    rows = [row_of("in one piece", seconds, whole, truth, None)]
    for count in counts:
        place = folder / f"in {count}"
        place.mkdir(exist_ok=True)
        start = time.monotonic()
        track(place, ["--device", "cpu", "--stretches", str(count), "--jobs", str(jobs)])
        name = f"in {count} stretches, {jobs} at a time"
        rows.append(row_of(name, time.monotonic() - start, place / "tracked", truth, whole))
    return rows


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stretches", description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the film")
    parser.add_argument("--stretches", type=int, nargs="+", default=[4], help="numbers of stretches")
    parser.add_argument("--jobs", type=int, default=2, help="stretches at the same time")
    parser.add_argument("--keep", type=Path, default=None, help="folder of `resumed_track --keep`")
    parser.add_argument("--out", type=Path, default=RESULT, help="JSON file")
    asked = parser.parse_args(words)
    origin = report.provenance(plan.CPU, words)
    del origin["settings"]
    origin["command"] = origin["command"].replace("benchmarks", "benchmarks.stretches", 1)
    with tempfile.TemporaryDirectory() as temporary:
        rows = measure(asked.keep or Path(temporary), asked.frames, asked.seed, asked.stretches, asked.jobs)
    report.write(asked.out, {"rows": [asdict(row) for row in rows], **origin})
    print(f"{origin['command']}\ncommit {origin['commit']}, {origin['date']}\n\n{report.table(rows)}\n\n-> {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
