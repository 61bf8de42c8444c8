"""`python -m benchmarks.measures`: line counts, zone times and speeds beside the truth and supervision's line counter.

First, 200 walkers whose paths are given by formulas, in boxes that tremble by a known amount. Then, a drawn video of
walkers, tracked by `scalor track`. The line counter of the package supervision gets the same boxes.
"""

import argparse
import json
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import torch

import scalor
from benchmarks.report import hardware, table
from scalor.measures import CountingLine, Regions, Zone, measure
from scalor.provenance import commit, today
from scalor.video import write_video

RESULT = Path(__file__).parent / "results" / "measures.json"
FPS = 25
SIZE = (360, 480)
LINE = CountingLine("gate", (240.0, 360.0), (240.0, 0.0))
"""Walked from below; forward is from left to right."""
ZONE = Zone("nest", circle=(240.0, 180.0, 120.0))
REGIONS = Regions((ZONE,), (LINE,))
JITTER = (0.0, 1.0, 2.0)
"""Standard deviation of the boxes' centres, pixels."""


@dataclass(frozen=True)
class Walkers:
    """Paths through the picture, x and y by frame; NaN where a walker is away."""

    paths: np.ndarray
    """[N, T, 2] in pixels."""
    extent: tuple[float, float]
    """Width and height of a walker."""

    def boxes(self, jitter: float, rng: np.random.Generator) -> pandas.DataFrame:
        """Return the table of tracks, with boxes that tremble."""
        walker, frame = np.nonzero(~np.isnan(self.paths[:, :, 0]))
        x, y = (self.paths[walker, frame] + rng.normal(0, jitter, (len(walker), 2))).T
        wide, high = self.extent
        columns = {"frame": frame, "seconds": frame / FPS, "id": walker + 1}
        return pandas.DataFrame(
            columns | {"x0": x - wide / 2, "y0": y - high / 2, "x1": x + wide / 2, "y1": y + high / 2}
        )

    def truth(self, name: str) -> "Row":
        """Return how many walkers passed the line, and how often."""
        ends = [path[~np.isnan(path[:, 0]), 0][[0, -1]] for path in self.paths]
        right = [tuple(bool(x > LINE.start[0]) for x in pair) for pair in ends]
        crossed = [bool(np.nanmin(path[:, 0]) < LINE.start[0] < np.nanmax(path[:, 0])) for path in self.paths]
        back = sum(one == two and over for (one, two), over in zip(right, crossed, strict=True))
        forward, backward = right.count((False, True)), right.count((True, False))
        return Row(name, forward + back, backward + back, forward, backward, back)

    def speeds(self) -> np.ndarray:
        """Return the mean speed of every walker, pixels a second."""
        steps = np.linalg.norm(np.diff(self.paths, axis=1), axis=2)
        return np.asarray(np.nanmean(steps, axis=1) * FPS)

    def inside(self) -> np.ndarray:
        """Return the seconds that every walker spends in the zone, from a path a hundred times as fine."""
        seconds = []
        for path in self.paths:
            there = path[~np.isnan(path[:, 0])]
            fine = np.linspace(0, len(there) - 1, 100 * (len(there) - 1) + 1)
            places = np.stack([np.interp(fine, np.arange(len(there)), there[:, axis]) for axis in (0, 1)], axis=1)
            seconds.append(ZONE.contains(places).mean() * (len(there) - 1) / FPS)
        return np.array(seconds)


@dataclass(frozen=True)
class Row:
    tracks: str
    crossings_forward: int
    """All crossings of the line from left to right; then those the other way."""
    crossings_backward: int
    forward: int | None = None
    """Objects that passed the line from left to right; then the other way; then those that came back."""
    backward: int | None = None
    came_back: int | None = None
    speed_error_percent: float | None = None
    """Error of an object's mean speed: the median over all objects."""
    smoothed_speed_error_percent: float | None = None
    """The same after positions were averaged over half a second."""
    zone_error_s: float | None = None
    """Error of an object's seconds in the zone: the mean over all objects."""


def crossing_walkers(count: int, rng: np.random.Generator) -> Walkers:
    """Walkers of whom every fifth stops for two seconds on the line, and every tenth turns back 30 px after it."""
    frames = 1000
    paths = np.full((count, frames, 2), np.nan)
    for k in range(count):
        speed, y, right = rng.uniform(30, 120), rng.uniform(30, 330), k % 2 == 0
        over = LINE.start[0] + 30
        corners = [0.0, over, 0.0] if k % 10 == 3 else [0.0, LINE.start[0] + rng.uniform(-2, 2), 480.0]
        times = np.cumsum(np.abs(np.diff(corners, prepend=corners[0])) / speed)
        if k % 5 == 1:  # rests on the line
            corners.insert(2, corners[1])
            times = np.insert(times + np.array([0, 0, 2]), 2, times[1] + 2)
        t = np.arange(int(times[-1] * FPS) + 1)
        x = np.interp(t / FPS, times, corners)
        start = int(rng.integers(0, frames - len(t)))
        paths[k, start : start + len(t)] = np.stack([x if right else 480 - x, np.full(len(t), y)], axis=1)
    return Walkers(paths, (24.0, 48.0))


def lane_walkers(rng: np.random.Generator) -> Walkers:
    """Twelve walkers, each in its own lane, every other one from right to left."""
    frames = 500
    paths = np.full((12, frames, 2), np.nan)
    for k in range(12):
        speed, begun = rng.uniform(40, 90), int(rng.integers(0, 150))
        t = np.arange(frames - begun)
        x = -10 + speed * t / FPS
        x = (x if k % 2 == 0 else 480 - x)[x < 490]
        paths[k, begun : begun + len(x)] = np.stack([x, np.full(len(x), 15.0 + 30 * k)], axis=1)
    return Walkers(paths, (12.0, 22.0))


def draw(walkers: Walkers, path: Path, rng: np.random.Generator) -> None:
    """Draw walkers as ellipses before a noisy ground."""
    height, width = SIZE
    ground = rng.normal(110, 12, (height // 8, width // 8, 3)).repeat(8, axis=0).repeat(8, axis=1)
    y, x = np.mgrid[:height, :width] + 0.5
    colors = rng.uniform([20, 20, 20], [60, 60, 60], (len(walkers.paths), 3)) + 150 * rng.integers(
        0, 2, (len(walkers.paths), 1)
    )
    wide, high = walkers.extent
    frames = []
    for t in range(walkers.paths.shape[1]):
        picture = ground + rng.normal(0, 2, (height, width, 1))
        for (cx, cy), color in zip(walkers.paths[:, t], colors, strict=True):
            if not np.isnan(cx):
                picture[((x - cx) / wide * 2) ** 2 + ((y - cy) / high * 2) ** 2 < 1] = color
        frames.append(picture.clip(0, 255).astype(np.uint8))
    write_video(path, np.stack(frames), FPS)


def ours(name: str, tracks: pandas.DataFrame, walkers: Walkers) -> Row:
    """What `scalor.measures` says of tracks whose ids are those of the walkers."""
    plain, smooth = (measure(tracks, regions=REGIONS, size=SIZE, smooth_s=s) for s in (0.0, 0.5))
    counts = plain.line_counts.iloc[0]
    errors = []
    for one in (plain, smooth):
        found = one.per_track.set_index("id")["mean_speed_px_per_s"]
        errors.append(float(np.median(np.abs(found / walkers.speeds()[found.index - 1] - 1))) * 100)
    inside = plain.zones.set_index("id")["inside_s"]
    return Row(
        tracks=name,
        crossings_forward=int(counts["crossings_forward"]),
        crossings_backward=int(counts["crossings_backward"]),
        forward=int(counts["forward"]),
        backward=int(counts["backward"]),
        came_back=int(counts["came_back"]),
        speed_error_percent=errors[0],
        smoothed_speed_error_percent=errors[1],
        zone_error_s=float(np.mean(np.abs(inside - walkers.inside()[inside.index - 1]))),
    )


def theirs(name: str, tracks: pandas.DataFrame, centre: bool) -> Row:
    """What supervision's LineZone counts: crossings, with its rule for all corners of a box or for centres."""
    import supervision

    anchors = [supervision.Position.CENTER] if centre else None
    options: dict[str, Any] = {} if anchors is None else {"triggering_anchors": anchors}
    zone = supervision.LineZone(supervision.Point(*LINE.start), supervision.Point(*LINE.end), **options)
    for _, part in tracks.groupby("frame"):
        boxes = part[["x0", "y0", "x1", "y1"]].to_numpy()
        zone.trigger(supervision.Detections(boxes, tracker_id=part["id"].to_numpy(), class_id=np.zeros(len(part), int)))
    return Row(name, zone.out_count, zone.in_count)


def tracked(walkers: Walkers, rng: np.random.Generator) -> pandas.DataFrame:
    """Tracks of the drawn video, with the ids of the walkers in whose lanes they are."""
    with tempfile.TemporaryDirectory() as folder:
        draw(walkers, Path(folder) / "walkers.mp4", rng)
        found = scalor.track(Path(folder) / "walkers.mp4").to_dataframe()
    lanes = np.nanmean(walkers.paths[:, :, 1], axis=1)
    middle = (found["y0"] + found["y1"]).groupby(found["id"]).mean() / 2
    nearest = {number: int(np.abs(lanes - y).argmin()) + 1 for number, y in middle.items()}
    print(f"{len(nearest)} tracks of {len(lanes)} walkers")
    return found.assign(id=found["id"].map(nearest)).drop_duplicates(["frame", "id"])


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--walkers", type=int, default=200)
    parser.add_argument("--no-video", action="store_true", help="leave the drawn video out")
    chosen = parser.parse_args(words)
    rng = np.random.default_rng(chosen.seed)
    walkers = crossing_walkers(chosen.walkers, rng)
    rows = [walkers.truth("truth")]
    for jitter in JITTER:
        boxes = walkers.boxes(jitter, rng)
        rows.append(ours(f"jitter {jitter:g} px", boxes, walkers))
        rows.append(theirs(f"jitter {jitter:g} px, supervision", boxes, centre=False))
        rows.append(theirs(f"jitter {jitter:g} px, supervision, centres", boxes, centre=True))
    if not chosen.no_video:
        lanes = lane_walkers(rng)
        found = tracked(lanes, rng)
        rows += [
            lanes.truth("video: truth"),
            ours("video: scalor track", found, lanes),
            theirs("video: scalor track, supervision", found, centre=False),
        ]
    print(table(rows))
    document = {
        "title": "Line counts, zone times and speeds beside the truth.",
        "rows": [asdict(row) for row in rows],
        "command": shlex.join(["python", "-m", "benchmarks.measures", *words]),
        "seed": chosen.seed,
        "commit": commit(),
        "date": today(),
        "hardware": hardware(torch.device("cpu")),
        "supervision": version("supervision"),
    }
    RESULT.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
