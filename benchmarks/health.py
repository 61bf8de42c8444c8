"""`python -m benchmarks.health`: how often the verdict of `scalor.health` is right where the truth is known.

Set SCALOR_DATA to a folder with pets (vtest.avi, gt.txt), tud_campus and cells_sim (frames, gt.txt). A verdict is right
if "good" has MOTA and IDF1 of at least .5, and "not to be trusted" MOTA below .3 (boxes at IoU .5).
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.health_runs import SPOILS, Film, Run, brighter, films, panned, resized, tracked
from scalor.evaluation.matching import Gate
from scalor.evaluation.mota import clear_counts, identity_counts, match_sequence
from scalor.evaluation.score import pair_rows
from scalor.health import Health, HealthMonitor
from scalor.health.facts import Facts
from scalor.still.foreground import ForegroundTest, to_floats
from scalor.still.still_background import MAX_SAMPLED, StillBackground
from scalor.tracks import Tracks
from scalor.video.resize import resize, scaled_size

SHORT_VERDICTS = {"good": "G", "doubtful": "d", "not to be trusted": "N"}
WIDEST = 400
"""Pixels: foregrounds are looked for in pictures no wider."""
SHORT, SLOW = 120, 40
"""Frames of PETS where it is spoiled, and where its pictures are very large for the tracker."""
SETTINGS: dict[str, list[tuple[str, tuple[float, float] | None]]] = {
    "PETS, first part": [
        ("pets", None),
        *(("classical-motion", size) for size in ((80, 28), (20, 7), (240, 90), (40, 14), (130, 45))),
    ],
    "cells": [
        ("classical-foreground", (55, 55)),
        ("classical-motion", (55, 55)),
        ("classical-motion", (15, 15)),
        ("shapes-md", None),
    ],
    "shapes-ld": [
        ("shapes-md", None),
        ("classical-colour", (12, 12)),
        ("classical-motion", (12, 12)),
        ("shapes-hd", None),
    ],
    "walkers, first": [
        ("classical-motion", (34, 13)),
        ("classical-motion", (100, 40)),
        ("pets", None),
        ("shapes-md", None),
    ],
}
"""Trackers of the films on which limits are chosen."""
SETTINGS |= {
    "PETS, last part": SETTINGS["PETS, first part"],
    "TUD campus": [
        ("pets", None),
        ("shapes-md", None),
        *(("classical-motion", size) for size in ((185, 73), (60, 24))),
    ],
    "shapes-md": [
        ("shapes-md", None),
        ("classical-colour", (9, 9)),
        ("classical-motion", (9, 9)),
        ("shapes-vhd", None),
    ],
    "walkers, second": SETTINGS["walkers, first"],
}
"""And of the others."""


@dataclass(frozen=True)
class Row:
    film: str
    run: str
    chosen_on: bool
    mota: float
    idf1: float
    verdict: str
    right: bool | None
    because: str


def runs(kept: Path, words: Sequence[str]) -> Iterator[Run]:
    for film in films():
        if words and not any(word in film.name for word in words):
            continue
        for weights, size in SETTINGS[film.name]:
            yield tracked(film, weights, size, kept)
        if film.name.startswith("PETS"):
            short = resized(film, 1, SHORT)
            for other in (brighter(short), panned(short), resized(film, 2, SLOW), resized(film, 0.5, SHORT)):
                yield tracked(other, "pets", None, kept)
                yield tracked(other, "classical-motion", (80, 28), kept)
            yield tracked(resized(film, 1, frames=SLOW), "shapes-md", None, kept)
        for name, spoil in SPOILS.items():
            rows = spoil(film.truth.select(film.truth.confidence != 0), np.random.default_rng(0), film.fps)
            yield Run(film, name, rows, film.object_size)


class Foregrounds:
    """The foreground and the change of light of each frame of a film; those of the last film are kept."""

    def __init__(self) -> None:
        self.film: Film | None = None
        self.masks: list[np.ndarray] = []
        self.light: list[float] = []

    def of(self, film: Film) -> tuple[list[np.ndarray], list[float]]:
        if self.film is not film:
            self.film = film
            size = film.pictures.shape[1:3]
            small_size = scaled_size(size, min(1.0, WIDEST / max(size)))
            small = [resize(picture, small_size) for picture in film.pictures]
            chosen = np.linspace(0, len(small) - 1, min(MAX_SAMPLED, len(small))).astype(int)
            background = StillBackground.from_pictures(np.stack([small[n] for n in chosen]))
            test = ForegroundTest.of(background.sampled_pairs())
            self.masks, brightness = [], []
            for picture in small:
                self.masks.append(test(to_floats(picture), to_floats(background.at(picture))))
                assert background.light is not None
                brightness.append(background.light.brightness)
            self.light = [0.0, *np.diff(brightness).tolist()]
        return self.masks, self.light


def watch(run: Run, foregrounds: Foregrounds) -> tuple[Facts, Health, float]:
    """What the monitor says of a run, and the milliseconds that a frame takes."""
    film = run.film
    size = film.pictures.shape[1:3]
    masks, light = foregrounds.of(film)
    monitor = HealthMonitor(size, film.fps, run.object_size)
    start = time.process_time()
    for number, mask in enumerate(masks):
        here = run.rows.within(number + 1, number + 1)
        many = len(here.id)
        tracks = Tracks(
            clip=np.zeros(many, int),
            frame=np.full(many, number),
            id=here.id,
            box=here.box,
            confidence=np.ones(many),
            discovered=np.zeros(many, bool),
            size=size,
        )
        monitor.step(number, mask, tracks, light[number])
    took = time.process_time() - start
    return monitor.facts(), monitor.report(promised_frames=len(masks)), 1e3 * took / len(masks)


def quality(run: Run) -> tuple[float, float]:
    """MOTA and IDF1 at IoU .5."""
    truth = run.film.truth
    frames = len(run.film.pictures)
    gate = Gate("iou .5", "iou", 0.5)
    matches = match_sequence(pair_rows(truth.within(1, frames), run.rows.within(1, frames), 1, frames), gate)
    return clear_counts(matches, gate).mota, identity_counts(matches).idf1


def is_right(verdict: str, mota: float, idf1: float) -> bool | None:
    if verdict == "good":
        return mota >= 0.5 and idf1 >= 0.5
    if verdict == "not to be trusted":
        return mota < 0.3
    return None


def summary(rows: list[Row]) -> str:
    """How often each verdict was right, as a Markdown table."""
    lines = [
        "| films | verdict | runs | right | MOTA below .3 | median MOTA | median IDF1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for chosen_on, name in ((True, "limits chosen on"), (False, "held out")):
        for verdict in SHORT_VERDICTS:
            those = [row for row in rows if row.chosen_on == chosen_on and row.verdict == verdict]
            right = "-" if verdict == "doubtful" else str(sum(bool(row.right) for row in those))
            low = sum(row.mota < 0.3 for row in those)
            middle = [
                f"{np.median([getattr(row, key) for row in those]):.2f}" if those else "-" for key in ("mota", "idf1")
            ]
            lines.append(f"| {name} | {verdict} | {len(those)} | {right} | {low} | {' | '.join(middle)} |")
    return "\n".join(lines)


def overview(rows: list[Row]) -> str:
    """Verdict and MOTA of each spoiled truth, a column a film, as a Markdown table; then the trackers, a row each."""
    names = [name for name in dict.fromkeys(row.film for row in rows) if any(row.film == name for row in spoiled(rows))]
    cells = {(row.film, row.run): f"{SHORT_VERDICTS[row.verdict]} {row.mota:.2f}" for row in rows}
    lines = [f"| the truth, spoiled | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    for run in SPOILS:
        lines.append(f"| {run} | {' | '.join(cells.get((name, run), '-') for name in names)} |")
    lines += ["", "| film | tracker | MOTA | IDF1 | verdict | because of |", "|---|---|---|---|---|---|"]
    for row in rows:
        if row.run not in SPOILS:
            start = f"| {row.film} | {row.run} | {row.mota:.2f} | {row.idf1:.2f} |"
            lines.append(f"{start} {row.verdict} | {row.because} |")
    return "\n".join(lines)


def spoiled(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.run in SPOILS]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.health", description=__doc__)
    parser.add_argument("films", nargs="*", help="parts of names of films (none given: all)")
    parser.add_argument("--kept", type=Path, default=Path("runs/health"), help="folder that keeps what trackers said")
    parser.add_argument("--out", type=Path, help="JSON file for rows with all that was counted")
    asked = parser.parse_args(words)
    asked.kept.mkdir(parents=True, exist_ok=True)
    rows, details, took, foregrounds = [], [], [], Foregrounds()
    for run in runs(asked.kept, asked.films):
        facts, health, ms = watch(run, foregrounds)
        mota, idf1 = quality(run)
        worst = [one.name for one in health.measures if one.level == "bad"]
        worst = worst or [one.name for one in health.measures if one.level == "warn"]
        right = is_right(health.verdict, mota, idf1)
        row = Row(run.film.name, run.name, run.film.chosen_on, mota, idf1, health.verdict, right, ", ".join(worst))
        rows.append(row)
        took.append(ms)
        details.append({**asdict(row), "ms": ms, "facts": asdict(facts), "health": health.to_dict()})
        print(
            f"{row.film}: {row.run}: {mota:.3f} {idf1:.3f} {row.verdict} ({row.because})", file=sys.stderr, flush=True
        )
    if asked.out:
        asked.out.write_text(json.dumps(details, indent=1))
    print(f"{summary(rows)}\n\n{overview(rows)}\n\nmedian {np.median(took):.2f} ms of one core a frame")
    return 0


if __name__ == "__main__":
    sys.exit(main())
