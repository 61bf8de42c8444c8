"""`scalor reproduce` itself: what is there is kept, what is missing is trained side by side, measured and written.

It may be stopped at any moment: the same command goes on from there.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from scalor.data.mnist import load_digits
from scalor.errors import InputError
from scalor.files import open_folder
from scalor.reproduce import results
from scalor.reproduce.catalogue import Cell
from scalor.reproduce.measuring import measure, measure_classical
from scalor.reproduce.results import Document, Order
from scalor.reproduce.runs import Training, locate
from scalor.signals import Stopped, stop_signals_raised
from scalor.training.loop import Job, train_together

TOGETHER = 8
"""The most trainings side by side."""


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    documents: dict[Cell, Document] = field(default_factory=dict)
    """In the order asked for."""
    kept: set[Cell] = field(default_factory=set)
    """Those that were there already."""
    left_out: list[str] = field(default_factory=list)
    """A sentence for each reason why cells were left out."""
    broken: list[str] = field(default_factory=list)
    """A sentence for each training or measurement that failed."""


def work(cells: Sequence[Cell], order: Order) -> Outcome:
    """Every cell's result. A stop signal raises `Stopped`; what was trained and measured until then is kept."""
    for folder, option in ((order.results, "--results"), (order.runs, "--runs")):
        claim(folder, option)
    found = {cell: results.kept(cell, order) for cell in cells}
    missing = [cell for cell in cells if found[cell] is None]
    here, left_out = with_their_data(missing, nothing_else=all(needs_digits(cell) for cell in cells))
    trainings = {cell: locate(cell.config, order.runs) for cell in here if not cell.setting.detect}
    broken: list[str] = []

    def make(cell: Cell, document: Document) -> None:
        found[cell] = results.write(cell, order, document)
        tqdm.write(f"made {order.path(cell)}", file=sys.stderr)

    def finish(trained: set[Training]) -> None:
        for cell, training in trainings.items():
            if training not in trained:
                continue
            try:
                make(cell, measure(cell, training.folder, order))
            except InputError as error:
                broken.append(f"{cell.table} of {cell.name}: {error}")

    with stop_signals_raised():
        for cell in here:
            if cell.setting.detect:
                make(cell, measure_classical(cell, order))
        finish({training for training in trainings.values() if training.finished})
        untrained = [training for training in dict.fromkeys(trainings.values()) if not training.finished]
        for first in range(0, len(untrained), TOGETHER):
            batch = untrained[first : first + TOGETHER]
            names = ", ".join(training.folder.name for training in batch)
            tqdm.write(f"training {names} ({first + len(batch)} of {len(untrained)})", file=sys.stderr)
            sentences = train(batch, order)
            broken += sentences.values()
            finish(set(batch) - set(sentences))
    documents = {cell: document for cell, document in found.items() if document is not None}
    return Outcome(documents, set(cells) - set(missing), left_out, broken)


def train(batch: Sequence[Training], order: Order) -> dict[Training, str]:
    """Train side by side, going on where there is something to go on from; a sentence for each that broke."""
    outcomes = train_together([Job(one.config, one.folder) for one in batch], order.device, resume=True)
    sentences = {}
    for training, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, InputError):
            sentences[training] = f"{training.folder}: {outcome}"
        elif outcome.stopped:
            raise Stopped(outcome.stopped)
    return sentences


def with_their_data(cells: Sequence[Cell], nothing_else: bool) -> tuple[list[Cell], list[str]]:
    """The cells whose pictures can be had, and a sentence about the others.

    Where nothing else was asked for, that sentence is the error.
    """
    needing = [cell for cell in cells if needs_digits(cell)]
    if not needing:
        return list(cells), []
    try:
        for split in ("train", "test"):
            load_digits(split)
    except InputError as error:
        if nothing_else:
            raise
        names = ", ".join(dict.fromkeys(cell.setting.name for cell in needing))
        return [cell for cell in cells if cell not in needing], [f"{names}: left out; {error}"]
    return list(cells), []


def needs_digits(cell: Cell) -> bool:
    return "mnist" in (cell.config.scene.kind, cell.config.test.kind)


def claim(folder: Path, option: str) -> None:
    try:
        open_folder(folder)
    except InputError as error:
        raise InputError(str(error).replace("--out", option)) from error
