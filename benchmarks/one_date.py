"""Make the tables again on a GPU, the most important first, in as many runs as it takes.

    python -m benchmarks.one_date --seconds 540 --out bundle    # again and again, until nothing is left
    python -m benchmarks.one_date --list                        # what is left, in its order

All trainings that are missing or of older presets run side by side, in the order of `ORDER`. Meanwhile other processes
measure those that have ended, since metrics are a CPU's work. When the time is up, trainings are saved to be gone on
with by the same command, and the results are packed into files of at most `LARGEST` bytes each, with the weights in
`WEIGHTS` as far as they are there. The times of a frame are not among them, because they need the GPU for themselves:

    scalor reproduce efficiency --setting md-gpu md-cpu --seeds 0
"""

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from scalor import checkpoint
from scalor.errors import InputError
from scalor.reproduce import results
from scalor.reproduce.catalogue import (
    ABLATION_OURS,
    ABLATION_PAPER,
    ABLATION_REMEDIES,
    BALLS,
    REPLAY,
    SMALL_BACKGROUND,
    STILL,
    TABLES,
    Cell,
    Training,
    choose,
    locate,
)
from scalor.reproduce.experiments import measure
from scalor.reproduce.results import Order
from scalor.training.loop import Job, train_together

FIRST = ("shapes-md", "shapes-hd", "shapes-vhd", "shapes-background", "mnist-md")
"""Densities whose presets changed last, and the digits: three seeds each."""
ORDER: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]], ...] = (
    (("tracking", "likelihood", "generation"), FIRST, (0,)),
    (("tracking", "generalisation"), ("shapes-length",), (0,)),
    (("replay",), (REPLAY,), (0,)),
    (("balls",), BALLS, (0,)),
    (("tracking", "likelihood"), FIRST, (1, 2)),
    (("ablation",), (*ABLATION_PAPER, *ABLATION_OURS), (0,)),
    (("ablation",), ABLATION_REMEDIES, (0,)),
    (("generalisation",), ("shapes-crowd", "mnist-unseen", "shapes-dense-discovery", "mnist-occlusion"), (0,)),
    (("replay",), (SMALL_BACKGROUND, STILL), (0,)),
)
"""Tables, settings and seeds, what matters most first."""
WEIGHTS = (*FIRST, REPLAY, "balls-interaction", "balls-two-layer")
"""Settings whose weights (seed 0) are packed, too: those that are shipped, and those of new pictures."""
LARGEST = 15 * 2**20
"""Largest size of a packed file, bytes."""
AT_THE_END = 25.0
"""Seconds kept for saving and packing."""
WAIT = 2.0
"""Seconds until a measuring process looks again for trainings that have ended."""


@dataclass(frozen=True)
class Share:
    """Which cells one of several measuring processes has: every `among`-th, from number `number` on."""

    number: int
    among: int


ALL = Share(0, 1)
"""Every cell."""


def everything() -> list[Cell]:
    """Return all cells, in the order of `ORDER`."""
    cells = [
        cell
        for tables, settings, seeds in ORDER
        for table in tables
        for cell in choose([table], [name for name in settings if name in TABLES[table]], seeds)
        if set(settings) & set(TABLES[table])
    ]
    return list(dict.fromkeys(cells))


def wanted(order: Order, share: Share = ALL) -> list[Cell]:
    """Return the cells of a share that have no result of today's presets, in their order."""
    return [cell for cell in everything()[share.number :: share.among] if results.kept(cell, order) is None]


def trainings(cells: Sequence[Cell], runs: Path) -> list[Training]:
    """Return the trainings of these cells, each once; a folder of another training is told of and left out."""
    found: dict[Training, None] = {}
    for cell in cells:
        try:
            found[locate(cell.config, runs)] = None
        except InputError as error:
            print(f"one_date: {cell.name}: {error}", file=sys.stderr)
    return list(found)


def measure_what_ends(order: Order, share: Share, until: float) -> None:
    """Measure the cells of a share as soon as their trainings have ended, until all are measured or time is up."""
    left = wanted(order, share)
    while left and time.time() < until:
        ready = [cell for cell in left if is_finished(cell, order.runs)]
        if not ready:
            time.sleep(WAIT)
        for cell in ready[:1]:  # then look again: something that matters more may have ended meanwhile
            left.remove(cell)
            results.write(cell, order, measure(cell, locate(cell.config, order.runs).folder, order))
            print(f"one_date: measured {order.path(cell)}", file=sys.stderr)


def is_finished(cell: Cell, runs: Path) -> bool:
    """Return whether the training of a cell has ended."""
    try:
        return locate(cell.config, runs).finished
    except InputError:
        return False


def train(order: Order, until: float) -> None:
    """Train what is missing, side by side, and stop in time."""
    missing = [training for training in trainings(wanted(order), order.runs) if not training.finished]
    if not missing:
        return
    jobs = [Job(training.config, training.folder) for training in missing]
    with stopping_at(until):
        outcomes = train_together(jobs, order.device, True, together=order.together)
    for training, outcome in zip(missing, outcomes, strict=True):
        if isinstance(outcome, InputError):
            print(f"one_date: {training.folder}: {outcome}", file=sys.stderr)


@contextmanager
def stopping_at(until: float) -> Iterator[None]:
    """Send a stop signal to this process at a time and, as trainings may not listen yet, again until the block ends."""
    ended = threading.Event()

    def stop() -> None:
        wait = max(0.0, until - time.time())
        while not ended.wait(wait):
            os.kill(os.getpid(), signal.SIGTERM)
            wait = 1.0

    before = signal.signal(signal.SIGTERM, lambda *_: None)  # trainings set their own handler while they run
    waiting = threading.Thread(target=stop, daemon=True)
    waiting.start()
    try:
        yield
    finally:
        ended.set()
        waiting.join()
        signal.signal(signal.SIGTERM, before)


def pack(order: Order, out: Path) -> list[Path]:
    """Pack the results, then weights, into tar files of at most `LARGEST` bytes; return them."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("one_date_*.tar"):
        old.unlink()
    weights = [order.runs / f"{name}-seed0" / checkpoint.MODEL_FILE for name in WEIGHTS]
    files = [*sorted(order.results.rglob("*.json")), *(path for path in weights if path.exists())]
    packed: list[list[Path]] = [[]]
    for file in files:
        if sum(path.stat().st_size for path in (*packed[-1], file)) > LARGEST and packed[-1]:
            packed.append([])
        packed[-1].append(file)
    paths = [out / f"one_date_{number}.tar" for number in range(len(packed))]
    for path, part in zip(paths, packed, strict=True):
        with tarfile.open(path, "w") as tar:
            for file in part:
                home, root = ("results", order.results) if file.suffix == ".json" else ("runs", order.runs)
                tar.add(file, f"{home}/{file.relative_to(root)}")
    return paths


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and measure for some seconds, then pack."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=540, help="time for all of it (default: 540)")
    parser.add_argument("--out", type=Path, default=Path("bundle"), help="folder of the packed files")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--clips", type=int, default=1_000, help="clips to measure on (default: 1,000)")
    parser.add_argument("--together", type=int, default=14, help="trainings side by side (default: 14)")
    parser.add_argument("--measurers", type=int, default=4, help="processes that measure (default: 4)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--list", action="store_true", help="only print what is left")
    parser.add_argument("--share", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    order = Order(
        options.clips, 10, options.runs, options.results, checkpoint.pick_device(options.device), options.together
    )
    if options.list:
        print("\n".join(f"{cell.table}/{cell.name}" for cell in wanted(order)))
        return
    if options.share:
        torch.set_num_threads(2)
        measure_what_ends(order, Share(*options.share), options.until)
        return
    until = time.time() + options.seconds
    given = list(sys.argv[1:] if arguments is None else arguments)
    again = [sys.executable, "-m", "benchmarks.one_date", *given, "--until", str(until - AT_THE_END)]
    shares = [[*again, "--share", str(number), str(options.measurers)] for number in range(options.measurers)]
    children = [subprocess.Popen(command) for command in shares]
    train(order, until - AT_THE_END)
    for child in children:
        try:
            child.wait(max(0.0, until - AT_THE_END / 2 - time.time()))
        except subprocess.TimeoutExpired:
            child.terminate()
    for path in pack(order, options.out):
        print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")
    print(f"{len(wanted(order))} results are left")


if __name__ == "__main__":
    main()
