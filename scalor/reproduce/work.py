"""`scalor reproduce` itself: what is there is kept, what is missing is trained side by side, measured and written.

It may be stopped at any moment: the same command goes on from there.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from scalor.data.mnist import load_digits
from scalor.data.replay import data_folder
from scalor.errors import InputError
from scalor.files import open_folder
from scalor.reproduce import results
from scalor.reproduce.catalogue import Cell
from scalor.reproduce.measuring import measure, measure_classical
from scalor.reproduce.results import Document, Order
from scalor.reproduce.runs import Training, locate
from scalor.signals import Stopped, stop_signals_raised
from scalor.training.loop import Job, train_together


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
    """Train side by side, going on where there is something to go on from; a sentence for each that broke."""
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
    """Those that are not finished, as they are trained: side by side, but alone where their progress is timed."""
    untrained = [training for training in dict.fromkeys(trainings.values()) if not training.finished]
    alone = {training for cell, training in trainings.items() if cell.table == "efficiency" and not cell.setting.device}
    together = [training for training in untrained if training not in alone]
    return [*([together] if together else []), *([training] for training in untrained if training in alone)]


def possible(cells: Sequence[Cell], order: Order) -> tuple[list[Cell], list[str]]:
    """The cells that can be made here, and a sentence about the others for each thing that is missing."""
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
    return lambda cell: kind in (cell.config.scene.kind, cell.config.test.kind)


def find_digits(order: Order) -> None:
    for split in ("train", "test"):
        load_digits(split)


def find_station(order: Order) -> None:
    data_folder()


def find_gpu(order: Order) -> None:
    if order.device.type != "cuda":
        raise InputError(f"device is '{order.device}': this is measured on a GPU; call it with --device cuda there.")


NEEDS: tuple[tuple[Callable[[Cell], bool], Callable[[Order], None]], ...] = (
    (shows("mnist"), find_digits),
    (shows("replay"), find_station),
    (lambda cell: cell.setting.device == "cuda", find_gpu),
)
"""What not every place has: who needs it, and a look for it that raises where it is missing."""


def claim(folder: Path, option: str) -> None:
    try:
        open_folder(folder)
    except InputError as error:
        raise InputError(str(error).replace("--out", option)) from error
