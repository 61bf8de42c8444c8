"""The folder of a run: atomic writing of its files, and resuming from them."""

import json
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from scalor import checkpoint
from scalor.config import Config, SystemConfig
from scalor.errors import InputError
from scalor.files import folder_lock, open_folder
from scalor.nn import ranks
from scalor.training.step import TrainingStep

USUAL_NORM = f"{checkpoint.STATE}usual_norm"
"""Name of the tensor that holds the moving average of the gradient norm."""


class History(NamedTuple):
    """The progress of a run, over all processes so far."""

    step: int = 0
    seconds: float | None = 0.0
    """Training time in all processes; None if a checkpoint of an older version does not record it."""
    side_by_side: int = 1
    """Largest number of runs that were ever trained at the same time as this one, itself included."""


@contextmanager
def claimed(runs: Sequence[tuple[Path, Config[SystemConfig]]], device: torch.device, resume: bool) -> Iterator[None]:
    """Claim the folders of all runs, each given with its config, and lock them inside the block.

    Only the first rank writes, so it alone claims and locks. If it cannot, no rank goes on.
    """
    folders = [folder for folder, _ in runs] if ranks.is_first() else []
    with ExitStack() as locks:
        with ranks.all_or_none(device):
            claim_all(folders, resume)
            for folder, config in runs if resume else []:
                read_saved(folder, config)
            for folder in folders:
                locks.enter_context(folder_lock(folder))
        yield


def claim_all(folders: Sequence[Path], resume: bool) -> None:
    """Create and check the folder of every run. Raise InputError if two runs share a folder."""
    for folder in folders:
        if folders.count(folder) > 1:
            raise InputError(f"folder {folder} would hold two runs: give every preset and every seed once.")
    for folder in folders:
        claim(folder, resume)


def claim(folder: Path, resume: bool) -> None:
    """Create the folder of a run and check that it is writable.

    Raise InputError if it holds a run that is not to be resumed, or weights that cannot be resumed.
    """
    begun, weights = ((folder / name).exists() for name in (checkpoint.RESUME_FILE, checkpoint.MODEL_FILE))
    if begun and not resume:
        raise InputError(f"folder {folder} already holds a run: add --resume to continue it, or choose another --out.")
    if weights and not begun:
        raise InputError(
            f"folder {folder} holds weights without their {checkpoint.RESUME_FILE}, so they cannot be "
            "resumed and would be overwritten: move them away, or choose another --out."
        )
    open_folder(folder)


def write_config(folder: Path, config: Config[SystemConfig]) -> None:
    """Write `config.json`."""
    write_text(folder / "config.json", json.dumps(config.to_dict(), indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    beside = path.with_name(path.name + ".part")
    with reporting(path):
        beside.write_text(text)
        os.replace(beside, path)


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn an OSError inside the block into an InputError that says why the file cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): free some space and continue with --resume; what was "
            "saved before is intact."
        ) from error


def save(folder: Path, config: Config[SystemConfig], step: TrainingStep, now: History) -> None:
    """Write the resume file and the model file of a run.

    The resume file is written first: if the second write fails, the run can still resume from this step.
    """
    origin = checkpoint.provenance(config, now.step, step.device)
    origin |= {"seconds": now.seconds, "side_by_side": now.side_by_side}
    weights = dict(step.model.state_dict())
    checkpoint.write(folder / checkpoint.RESUME_FILE, {**weights, **training_state(step)}, config, origin)
    checkpoint.write(folder / checkpoint.MODEL_FILE, weights, config, origin)


def training_state(step: TrainingStep) -> dict[str, Tensor]:
    """Return the state of the optimiser and the usual gradient norm as named tensors.

    There is no random state: noise depends only on the seed and the step.
    """
    state = {}
    for name, parameter in step.model.named_parameters():
        for key, value in step.optimizer.state[parameter].items():
            state[f"{checkpoint.STATE}{key}/{name}"] = value
    return state | {USUAL_NORM: step.usual_norm}


def restore(folder: Path, config: Config[SystemConfig], step: TrainingStep) -> History:
    """Load the saved state of a run, if there is one, and return the progress of the run at that point.

    A kill between the two writes of `save` leaves the model file one save behind, so it is written again.
    """
    saved = read_saved(folder, config)
    if saved is None:
        return History()
    path = folder / checkpoint.RESUME_FILE
    weights = saved.weights
    checkpoint.fill(step.model, weights, path)
    for name, parameter in step.model.named_parameters():
        for key, value in step.optimizer.state[parameter].items():
            value.copy_(saved.tensors[f"{checkpoint.STATE}{key}/{name}"])
    step.usual_norm.copy_(saved.tensors.get(USUAL_NORM, step.usual_norm))  # older checkpoints have none
    if ranks.is_first():
        checkpoint.write(folder / checkpoint.MODEL_FILE, weights, saved.config, saved.provenance)
    origin = saved.provenance
    return History(int(origin["step"]), origin.get("seconds"), origin.get("side_by_side", 1))


def read_saved(folder: Path, config: Config[SystemConfig]) -> checkpoint.Checkpoint | None:
    """Return the checkpoint to resume from, or None if the folder has none.

    Raise InputError if it belongs to another run or holds no training state.
    """
    path = folder / checkpoint.RESUME_FILE
    if not path.exists():
        return None
    saved = checkpoint.read(path)
    if identity(saved.config) != identity(config):
        raise InputError(
            f"folder {folder} holds a run with another model, other scenes, another seed or batch: resume with the "
            "settings in its config.json, or choose another --out."
        )
    if not any(name.startswith(checkpoint.STATE) for name in saved.tensors):
        raise InputError(
            f"checkpoint {path} holds no state of the optimiser, so it cannot be resumed: choose another --out."
        )
    return saved


def identity(config: Config[SystemConfig]) -> tuple[object, ...]:
    """Return the settings that must not change on resume, so that the header describes the whole run."""
    return config.model, config.scene, config.train.seed, config.train.batch


def step_of(line: bytes) -> float | None:
    """Return the step of a line of a log, or None if the line is damaged."""
    try:
        step = json.loads(line)["step"]
    except (ValueError, KeyError, TypeError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None
    return step if isinstance(step, int | float) else None


class Log:
    """A log file with one JSON object per line.

    On resume, lines after the resumed step are dropped, because those steps are run again.
    """

    def __init__(self, path: Path, first: int) -> None:
        self.path = path
        kept = []
        lines = path.read_bytes().split(b"\n") if first and path.exists() else []
        for number, line in enumerate(lines, 1):
            step = step_of(line)
            if step is not None and step <= first:
                kept.append(line.decode() + "\n")
            elif step is None and number < len(lines):  # the last line may be cut off by a kill
                warnings.warn(f"{path}, line {number} is damaged and left out.", stacklevel=2)
        write_text(path, "".join(kept))

    def write(self, values: dict[str, float]) -> None:
        """Append one line. Values that are not finite, as after a skipped step, become null."""
        plain = {name: value if math.isfinite(value) else None for name, value in values.items()}
        with reporting(self.path), open(self.path, "a") as file:
            file.write(json.dumps(plain) + "\n")
