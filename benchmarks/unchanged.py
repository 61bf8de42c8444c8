"""`python -m benchmarks.unchanged`: does a change of the code change what the program computes?

Runs the command line of one or more working trees on the same inputs, each in its own process, and compares what they
wrote: the tables of tracks, the losses of short trainings. Two working trees of one repository are made with
`git worktree add ../before COMMIT`.

    python -m benchmarks.unchanged ../before . --data ../data --out unchanged.json

Tracks are compared as boxes by frame and id, so a tree whose table has other column names, or that counts ids from 1
instead of 0, can be compared with one that has the older ones. Without `--data`, the runs on real footage are left out.
"""

import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.track_command import origin

SCENE_WEIGHTS = ("shapes-md", "shapes-hd", "shapes-vhd", "shapes-background", "mnist-md")
"""Shipped weights of synthetic scenes; they track a drawn scene here."""
LOGGED = ("elbo", "likelihood", "objects")
"""Logged values that make up a loss curve, as far as a system logs them."""


@dataclass(frozen=True)
class Task:
    """One command whose results are compared."""

    name: str
    words: tuple[str, ...]
    """Words of the command line; OUT stands for the folder of the results."""
    kind: str
    """`tracks` (compare tracks.csv), `losses` (compare log.jsonl)."""
    footage: str = ""
    """A file below `--data` that the command needs."""


def tasks(data: Path | None, scene: Path) -> list[Task]:
    """Return the commands, those on real footage only if `data` is given."""
    steps = ("train.steps=50", "train.log_every=1", "train.lengths=[[0,1],[20,2],[35,4]]")
    short = tuple(f"--{word.split('=')[0]}={word.split('=')[1]}" for word in steps)
    found = [Task("demo", ("demo", "--out", "OUT"), "tracks")]
    found += [
        Task(f"track a scene, {name}", ("track", str(scene), "--weights", name, "--out", "OUT"), "tracks")
        for name in SCENE_WEIGHTS
    ]
    for preset, batch in (("shapes-tiny", "16"), ("sqair-shapes-tiny", "4"), ("vrnn-shapes-tiny", "4")):
        words = ("train", preset, *short, f"--train.batch={batch}", "--clips", "2", "--device", "cpu", "--out", "OUT")
        found.append(Task(f"50 steps of {preset}", words, "losses"))
    if data is None:
        return found
    pets = str(data / "pets" / "vtest.avi")
    found += [
        Task("track vtest.avi, any", ("track", pets, "--masks", "--out", "OUT"), "tracks", pets),
        Task("track vtest.avi, pets", ("track", pets, "--weights", "pets", "--out", "OUT"), "tracks", pets),
    ]
    refine = ("fit", pets, "--end", "20", "--steps", "50", "--train.log_every=1", "--device", "cpu", "--out", "OUT")
    found += [
        Task("50 steps of refining on vtest.avi", refine, "losses", pets),
        Task("50 steps from scratch on vtest.avi", (*refine, "--scratch", "--train.batch=4"), "losses", pets),
    ]
    return found


def draw_scene(path: Path, frames: int = 16, side: int = 64, objects: int = 6) -> None:
    """Write an array of bright discs that move on black, the same for every tree."""
    rng = np.random.default_rng(0)
    place, speed = rng.uniform(8, side - 8, (objects, 2)), rng.uniform(-1.5, 1.5, (objects, 2))
    colour = rng.uniform(0.4, 1, (objects, 3))
    y, x = np.mgrid[:side, :side] + 0.5
    video = np.zeros((frames, side, side, 3))
    for t in range(frames):
        for k in range(objects):
            cx, cy = place[k] + t * speed[k]
            disc = np.clip(4.5 - np.hypot(x - cx, y - cy), 0, 1)[..., None]
            video[t] = video[t] * (1 - disc) + disc * colour[k]
    np.save(path, (255 * video).round().astype(np.uint8))


def run(tree: Path, task: Task, out: Path) -> str | None:
    """Run one command with the package of a working tree. Return what it printed if it failed."""
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "OMP_NUM_THREADS": "1"}
    words = [str(out) if word == "OUT" else word for word in task.words]
    done = subprocess.run(
        [sys.executable, "-m", "scalor", *words], cwd=tree, env=environment, capture_output=True, text=True
    )
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def boxes(folder: Path) -> list[tuple[int, int, tuple[float, ...], float]]:
    """Return frame, id (in order of appearance), box and confidence of every row of all tables of tracks."""
    rows = []
    for path in sorted(folder.rglob("tracks.csv")):
        with open(path, newline="") as file:
            for line in csv.DictReader(file):
                box = tuple(float(line[name]) for name in ("x0", "y0", "x1", "y1"))
                sure = line["confidence"] if "confidence" in line else line["presence"]
                rows.append((int(line["frame"]), int(line["id"]), box, float(sure)))
    order = {number: index for index, number in enumerate(dict.fromkeys(row[1] for row in rows))}
    return [(frame, order[number], box, sure) for frame, number, box, sure in rows]


def losses(folder: Path) -> list[list[str]]:
    """Return the logged values of every step, as they are written."""
    lines = (folder / "log.jsonl").read_text().splitlines()
    found = [json.loads(line, parse_float=str) for line in lines]
    return [[str(line[name]) for name in ("step", *LOGGED) if name in line] for line in found if "elbo" in line]


def results(folder: Path, task: Task) -> object:
    """Return what a task's results are compared by."""
    return losses(folder) if task.kind == "losses" else boxes(folder)


def fingerprint(value: object) -> str:
    """Return a short hash of a value."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Row:
    """The comparison of one task."""

    task: str
    rows: int
    """Boxes, or steps."""
    same: str
    fingerprints: tuple[str, ...]


def compare(trees: list[Path], task: Task, folder: Path) -> Row:
    """Run a task in every tree and compare the results with those of the first."""
    found, failed = [], []
    for number, tree in enumerate(trees):
        out = folder / f"{task.name.replace(' ', '-').replace(',', '')}-{number}"
        error = run(tree, task, out)
        if error is not None:
            failed.append(f"{tree}: {error}")
            continue
        found.append(results(out, task))
    rows = len(found[0]) if found and isinstance(found[0], list) else 0
    prints = tuple(fingerprint(value) for value in found)
    same = "failed: " + "; ".join(failed) if failed else "yes" if rows and len(set(prints)) == 1 else "NO"
    return Row(task.name, rows, same, prints)


def main(words: list[str] | None = None) -> int:
    """Print the table, write the JSON; return 1 if anything differs or failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unchanged", description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path, help="working trees, the first is the one to compare with")
    parser.add_argument("--data", type=Path, help="folder with pets/vtest.avi")
    parser.add_argument("--only", default="", help="run only the tasks whose names contain this")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/unchanged.json"))
    asked = parser.parse_args(words)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        scene = Path(folder) / "scene.npy"
        draw_scene(scene)
        for task in tasks(asked.data and asked.data.resolve(), scene):
            if asked.only in task.name:
                rows.append(compare(asked.trees, task, Path(folder)))
                print(f"{rows[-1].same:4} {rows[-1].task} ({rows[-1].rows})", flush=True)
    print("\n" + report.table(rows))
    words = sys.argv[1:] if words is None else words
    report.write(asked.out, {"rows": [asdict(row) for row in rows], **origin("unchanged", words, 0)})
    return int(any(row.same != "yes" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
