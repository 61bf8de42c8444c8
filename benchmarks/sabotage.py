"""`python -m benchmarks.sabotage --data DIR`: does tracking survive what cameras and people do to videos?

Makes versions of the PETS video (`DIR/pets/vtest.avi` and `gt.txt`) that are worse in one way each, runs `scalor track`
on them, and prints how the tracks agree with the adapted truth beside what the command says about them itself. A bad
score with a good verdict is a wrong result that looks right.
"""

import argparse
import hashlib
import inspect
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report, sabotages, spoiling
from benchmarks.sabotages import SABOTAGES
from benchmarks.spoiling import Part
from benchmarks.track_command import CLASSICAL, DEFAULT, Tracked, gate_figures, origin, print_failures, track
from scalor.cli.score import frame_range
from scalor.errors import InputError
from scalor.evaluation.score import read_boxes
from scalor.video import open_video

FRAMES, SCORED = "400-795", "478-795"
OUT = Path(tempfile.gettempdir()) / "scalor-sabotage"


@dataclass(frozen=True)
class Row:
    name: str
    tracker: str
    MOTA: float | None
    IDF1: float | None
    HOTA: float | None
    """At an IoU of .5, as the two before it."""
    ids: int | None
    """Different ones within the scored frames."""
    true_ids: int | None
    verdict: str
    """What the command says about its own result."""
    seconds: float


@dataclass(frozen=True)
class Film:
    """A spoilt video on disk."""

    video: Path
    truth: Path
    scored: tuple[int, int]


def film(name: str, data: Path, part: Part, seed: int, out: Path) -> Film:
    """Write a sabotaged video and its truth, unless the same ones are there already."""
    source, labels = data / "pets" / "vtest.avi", data / "pets" / "gt.txt"
    # The code is part of the name: a sabotage that was changed is made again.
    code = inspect.getsource(spoiling) + inspect.getsource(sabotages)
    key = hashlib.sha256(repr((code, str(source.resolve()), part, seed)).encode()).hexdigest()[:8]
    sabotage = SABOTAGES[name]
    video = open_video(source)
    pictures = (frame.picture for frame in video)
    spoilt = spoiling.spoil(sabotage, pictures, read_boxes(labels), part, seed)
    made = Film(out / "videos" / f"{name}-{key}.mp4", out / "videos" / f"{name}-{key}.txt", spoilt.scored)
    if not (made.video.exists() and made.truth.exists()):
        made.video.parent.mkdir(parents=True, exist_ok=True)
        spoiling.write_truth(made.truth, spoilt.truth)
        fps = video.fps / sabotage.slower
        spoiling.write_film(made.video, spoilt.pictures, fps, sabotage.crf, sabotage.phone)
    return made


def measure(name: str, made: Film, weights: str | None, out: Path) -> tuple[Row, dict[str, Any]]:
    """Track and score one film; also everything that the table has no room for."""
    tracker = weights or DEFAULT
    tracked = track(made.video, out / "tracked" / name / Path(tracker).name, weights)
    scores = tracked.score(made.truth, made.scored)
    figures = gate_figures(scores, "iou .5")
    row = Row(
        name,
        tracker,
        MOTA=figures["mota"],
        IDF1=figures["idf1"],
        HOTA=figures["hota"],
        ids=ids_within(tracked, made.scored),
        true_ids=None if scores is None else scores.identities,
        verdict=tracked.verdict,
        seconds=round(tracked.seconds, 1),
    )
    return row, {**asdict(row), **tracked.told(), "scores": scores and scores.to_dict()}


def ids_within(tracked: Tracked, frames: tuple[int, int]) -> int | None:
    return None if tracked.error else len(np.unique(tracked.boxes().within(*frames).id))


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    asked = arguments(words)
    try:
        part = part_asked_for(asked)
        trackers = [asked.weights] + [CLASSICAL] * asked.classical
        told = origin("sabotage", words, asked.seed)
        rows, documents = [], []
        for name in asked.only or SABOTAGES:
            made = film(name, asked.data, part, asked.seed, asked.out)
            for weights in trackers:
                row, document = measure(name, made, weights, asked.out)
                print(f"{name}, {row.tracker}: MOTA {report.plain(row.MOTA)}, {row.seconds} s", file=sys.stderr)
                rows.append(row)
                documents.append(document)
                if asked.json:  # after every run, since all of them take long
                    report.write(
                        asked.json, {"frames": asked.frames, "scored": asked.scored, "rows": documents, **told}
                    )
    except InputError as error:
        print(f"benchmarks.sabotage: {error}", file=sys.stderr)
        return 2
    print(f"{told['command']}\ncommit {told['commit']}, {told['date']}\n\n{report.table(rows)}")
    print_failures(documents)
    return 0


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sabotage", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds pets/vtest.avi and pets/gt.txt")
    parser.add_argument("--weights", help="as `scalor track` takes them (default: its own)")
    parser.add_argument("--classical", action="store_true", help=f"also run {CLASSICAL}")
    parser.add_argument("--only", nargs="+", choices=SABOTAGES, metavar="NAME", help=", ".join(SABOTAGES))
    parser.add_argument(
        "--out", type=Path, default=OUT, help="folder for videos, kept, and tracks (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--frames", default=FRAMES, help="part of the video, frames from 1 (default: %(default)s)")
    parser.add_argument("--scored", default=SCORED, help="frames that count (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(words)


def part_asked_for(asked: argparse.Namespace) -> Part:
    (first, last), scored = frame_range(asked.frames), frame_range(asked.scored)
    if not first <= scored[0] <= scored[1] <= last:
        raise InputError(f"--scored is {asked.scored}: choose frames within --frames {asked.frames}.")
    return Part(first, last, scored)


if __name__ == "__main__":
    sys.exit(main())
