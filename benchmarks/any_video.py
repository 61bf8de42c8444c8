"""`python -m benchmarks.any_video --data DIR`: one command, without options, on videos of many kinds.

Runs `scalor track VIDEO` and the classical tracker on people, cells, fish, cars and bubbles, scores them where there is
truth, counts where there is none, and writes a contact sheet for each: six frames with the boxes and ids, to look at.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks import report
from benchmarks.spoiling import Picture
from benchmarks.track_command import CLASSICAL, DEFAULT, Tracked, gate_figures, origin, print_failures, track
from scalor.errors import InputError
from scalor.evaluation.score import BoxRows
from scalor.tracks import Tracks
from scalor.video import open_video
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png

OUT = Path(tempfile.gettempdir()) / "scalor-any-video"
SHEET_COLUMNS, SHEET_ROWS, SHEET_WIDTH = 3, 2, 480
"""Frames of a contact sheet, and pixels that each is wide."""


@dataclass(frozen=True)
class Subject:
    """A video below the data folder, and what is known about it."""

    video: str
    truth: str | None = None
    scored: tuple[int, int] | None = None
    """Frames from 1 on; all that the truth has where none are given."""
    number: int | None = None
    """Objects that are in view all the time."""


SUBJECTS = {
    "pets": Subject("pets/vtest.avi", "pets/gt.txt", (478, 795)),
    "cells": Subject("cells_sim/frames", "cells_sim/gt.txt"),
    "campus": Subject("tud_campus/frames", "tud_campus/gt.txt"),
    "fish": Subject("fish_tank/test_A.avi", number=8),
    "highway": Subject("highway/highway.avi"),
    **{f"ped2-{clip}": Subject(f"ucsd_ped2/frames/{clip}") for clip in ("01", "02", "03", "04")},
    "bubbles": Subject("bulk_water/bulk-water.mov"),
}


@dataclass(frozen=True)
class Row:
    """One tracker on one video."""

    video: str
    MOTA: float | None
    IDF1: float | None
    HOTA: float | None
    """At an IoU of .5, as the two before it."""
    centre_MOTA: float | None
    centre_IDF1: float | None
    centre_HOTA: float | None
    """Within the distance of centres that `scalor score` allows, as the two before it."""
    mean_count: float | None
    median_count: float | None
    """Objects in view."""
    right_count: float | None
    """Share of the frames with the known number of objects."""
    ids: int | None
    median_length: float | None
    """Frames that a track has."""
    frames_per_s: float | None
    verdict: str


def row_of(name: str, subject: Subject, tracked: Tracked, data: Path) -> tuple[Row, dict[str, Any]]:
    """The figures of one run; also everything that the table has no room for."""
    scores = tracked.score(data / subject.truth if subject.truth else None, subject.scored)
    boxes, centres = gate_figures(scores, "iou .5"), gate_figures(scores, "centre")
    counts = None if tracked.error else tracked.counts()
    lengths = None if tracked.error else np.unique(tracked.boxes().id, return_counts=True)[1]
    row = Row(
        video=name,
        MOTA=boxes["mota"],
        IDF1=boxes["idf1"],
        HOTA=boxes["hota"],
        centre_MOTA=centres["mota"],
        centre_IDF1=centres["idf1"],
        centre_HOTA=centres["hota"],
        mean_count=None if counts is None else round(float(counts.mean()), 2),
        median_count=None if counts is None else float(np.median(counts)),
        right_count=None
        if counts is None or not subject.number
        else round(float((counts == subject.number).mean()), 3),
        ids=None if lengths is None else len(lengths),
        median_length=None if lengths is None or not len(lengths) else float(np.median(lengths)),
        frames_per_s=tracked.frames_per_s and round(tracked.frames_per_s, 1),
        verdict=tracked.verdict,
    )
    return row, {
        **asdict(row),
        **tracked.told(),
        "seconds": round(tracked.seconds, 1),
        "scores": scores and scores.to_dict(),
    }


def side_by_side(ours: Sequence[Row], theirs: Sequence[Row]) -> str:
    """A table of which every cell has two figures, those of one tracker and those of another."""
    names = [field.name for field in fields(Row) if field.name != "video"]
    names = [name for name in names if any(getattr(row, name) is not None for row in [*ours, *theirs])]
    lines = [["video", *(name.replace("_", " ") for name in names)]]
    for one, other in zip(ours, theirs, strict=True):
        pairs = ([report.plain(getattr(row, name)) for row in (one, other)] for name in names)
        lines.append([one.video, *("-" if pair == ["-", "-"] else " / ".join(pair) for pair in pairs)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def contact_sheet(video: Path, boxes: BoxRows, path: Path) -> None:
    """Six frames of a video, evenly spread over it, with boxes and ids drawn on them, as one picture."""
    opened = open_video(video)
    length = sum(1 for _ in open_video(video))
    numbers = np.unique(np.linspace(0, length - 1, SHEET_COLUMNS * SHEET_ROWS).round().astype(int))
    pictures = [
        drawn(frame.picture, boxes.within(frame.index + 1, frame.index + 1))
        for frame in opened
        if frame.index in numbers
    ]
    blank = np.full_like(pictures[0], 255)
    pictures += [blank] * (SHEET_COLUMNS * SHEET_ROWS - len(pictures))
    rows = [np.concatenate(pictures[k : k + SHEET_COLUMNS], 1) for k in range(0, len(pictures), SHEET_COLUMNS)]
    save_png(path, np.concatenate(rows, 0))


def drawn(picture: Picture, rows: BoxRows) -> Picture:
    """A frame as wide as the sheet has it, with boxes and ids."""
    scale = SHEET_WIDTH / picture.shape[1]
    height = max(1, round(scale * picture.shape[0]))
    small = np.asarray(Image.fromarray(picture).resize((SHEET_WIDTH, height), Image.Resampling.BICUBIC))
    count = len(rows.id)
    zeros = np.zeros(count, int)
    tracks = Tracks(zeros, zeros, rows.id, rows.box * scale, rows.confidence, zeros > 0, (height, SHEET_WIDTH))
    sheet: Picture = overlay(small.transpose(2, 0, 1)[None] / np.float32(255), tracks, scale=1, trails=0)[0]
    return sheet


def measure(name: str, weights: str | None, data: Path, out: Path) -> tuple[Row, dict[str, Any]]:
    """Track one video, score it, and draw its contact sheet."""
    subject, title = SUBJECTS[name], Path(weights or DEFAULT).name
    tracked = track(data / subject.video, out / "tracked" / name / title, weights)
    row, document = row_of(name, subject, tracked, data)
    print(f"{name}, {title}: {row.ids} ids, {tracked.seconds:.1f} s", file=sys.stderr)
    if not tracked.error:
        contact_sheet(data / subject.video, tracked.boxes(), out / f"{name}-{title}.png")
    return row, {"tracker": weights or DEFAULT, **document}


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    asked = arguments(words)
    told = origin("any_video", words, 0)
    rows: tuple[list[Row], list[Row]] = ([], [])
    documents = []
    try:
        for name in asked.only or SUBJECTS:
            for weights, seen in zip((asked.weights, CLASSICAL), rows, strict=True):
                row, document = measure(name, weights, asked.data, asked.out)
                seen.append(row)
                documents.append(document)
                if asked.json:  # after every run, since all of them take long
                    report.write(asked.json, {"rows": documents, **told})
    except InputError as error:
        print(f"benchmarks.any_video: {error}", file=sys.stderr)
        return 2
    print(f"{told['command']}\ncommit {told['commit']}, {told['date']}\n")
    print(f"{asked.weights or DEFAULT} / {CLASSICAL}\n\n{side_by_side(*rows)}\n\ncontact sheets in {asked.out}")
    print_failures(documents)
    return 0


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.any_video", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the videos: pets, cells_sim, fish_tank ...")
    parser.add_argument("--weights", help="as `scalor track` takes them (default: its own)")
    parser.add_argument("--only", nargs="+", choices=SUBJECTS, metavar="NAME", help=", ".join(SUBJECTS))
    parser.add_argument(
        "--out", type=Path, default=OUT, help="folder for tracks and contact sheets (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
