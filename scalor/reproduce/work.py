"""The work of `scalor reproduce`: keep existing results; train, measure and write missing ones, in parallel.

It can be stopped at any time: the same command resumes it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from scalor.data.mnist import load_digits
from scalor.data.replay import data_folder
from scalor.errors import InputError
from scalor.files import Stopped, open_folder, stop_signals_raised
from scalor.reproduce import results
from scalor.reproduce.catalogue import Cell, Training, locate
from scalor.reproduce.experiments import measure, measure_classical
from scalor.reproduce.results import Document, Order
from scalor.training.loop import Job, train_together


@dataclass(frozen=True)
class Outcome:
    """Result of a call of `work`."""

    documents: dict[Cell, Document] = field(default_factory=dict)
    """Results, in the order of the request."""
    kept: set[Cell] = field(default_factory=set)
    """Cells whose results existed already."""
    left_out: list[str] = field(default_factory=list)
    """One sentence for each reason why cells were left out."""
    broken: list[str] = field(default_factory=list)
    """One sentence for each training or measurement that failed."""


def work(cells: Sequence[Cell], order: Order) -> Outcome:
    """Make the results of all cells. A stop signal raises `Stopped`; everything finished until then is kept."""
    for folder, option in ((order.results, "--results"), (order.runs, "--runs")):
        claim(folder, option)
    found = {cell: results.kept(cell, order) for cell in cells}
    missing = [cell for cell in cells if found[cell] is None]
    here, left_out = possible(missing, order)
    if left_out and not here and len(missing) == len(cells):
        raise InputError(" ".join(left_out))
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
        begun, plan = 0, batches(trainings)
        for batch in plan:
            begun += len(batch)
            names = ", ".join(training.folder.name for training in batch)
            tqdm.write(f"training {names} ({begun} of {sum(map(len, plan))})", file=sys.stderr)
            sentences = train(batch, order)
            broken += sentences.values()
            finish(set(batch) - set(sentences))
    documents = {cell: document for cell, document in found.items() if document is not None}
    return Outcome(documents, set(cells) - set(missing), left_out, broken)


def train(batch: Sequence[Training], order: Order) -> dict[Training, str]:
    """Train in parallel, resuming where there is a checkpoint; return one sentence for each training that failed."""
    outcomes = train_together(
        [Job(one.config, one.folder) for one in batch], order.device, resume=True, together=order.together
    )
    sentences = {}
    for training, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, InputError):
            sentences[training] = f"{training.folder}: {outcome}"
        elif outcome.stopped:
            raise Stopped(outcome.stopped)
    return sentences


def batches(trainings: Mapping[Cell, Training]) -> list[list[Training]]:
    """Return the unfinished trainings in batches that run in parallel; those whose progress is timed run alone."""
    untrained = [training for training in dict.fromkeys(trainings.values()) if not training.finished]
    alone = {training for cell, training in trainings.items() if cell.table == "efficiency" and not cell.setting.device}
    together = [training for training in untrained if training not in alone]
    return [*([together] if together else []), *([training] for training in untrained if training in alone)]


def possible(cells: Sequence[Cell], order: Order) -> tuple[list[Cell], list[str]]:
    """Return the cells that can be made here, and one sentence for each missing requirement of the others."""
    here, left_out = list(cells), []
    for needs, check in NEEDS:
        needing = [cell for cell in here if needs(cell)]
        if not needing:
            continue
        try:
            check(order)
        except InputError as error:
            names = ", ".join(dict.fromkeys(cell.setting.name for cell in needing))
            left_out.append(f"{names}: left out; {error}")
            here = [cell for cell in here if cell not in needing]
    return here, left_out


def shows(kind: str) -> Callable[[Cell], bool]:
    """Return a function that says whether a cell's scenes are of a kind."""
    return lambda cell: kind in (cell.config.scene.kind, cell.config.test.kind)


def find_digits(order: Order) -> None:
    """Check that the MNIST digits can be loaded."""
    for split in ("train", "test"):
        load_digits(split)


def find_station(order: Order) -> None:
    """Check that the data of Grand Central Station is there."""
    data_folder()


def find_gpu(order: Order) -> None:
    """Check that the device asked for is a GPU."""
    if order.device.type != "cuda":
        raise InputError(f"device is '{order.device}': this is measured on a GPU; run it there with --device cuda.")


NEEDS: tuple[tuple[Callable[[Cell], bool], Callable[[Order], None]], ...] = (
    (shows("mnist"), find_digits),
    (shows("replay"), find_station),
    (lambda cell: cell.setting.device == "cuda", find_gpu),
)
"""Requirements that may be missing: which cells need them, and a check that raises an error if they are missing."""


def claim(folder: Path, option: str) -> None:
    """Make the folder and check that it can be written; an error names the option."""
    try:
        open_folder(folder)
    except InputError as error:
        raise InputError(str(error).replace("--out", option)) from error
