"""The trainings that tables are made from: where they are, whether their settings match, and how far they got.

A training is identified by its model, its scenes and its training settings. Presets that share all three share a run
folder. A run folder that was trained elsewhere and copied is used like any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

from scalor import checkpoint
from scalor.config import Config
from scalor.errors import InputError
from scalor.presets import PRESETS, get_preset
from scalor.reproduce.catalogue import SETTINGS

WRITTEN_ONLY = ("log_every", "picture_every", "save_every", "evaluate_every", "evaluate_clips")
"""Training settings that affect only what is logged and saved, not the resulting weights."""


@dataclass(frozen=True)
class Training:
    """A training and its run folder, which need not exist yet."""

    config: Config
    folder: Path
    finished: bool


def locate(config: Config, runs: Path) -> Training:
    """Return the training of a config: finished, incomplete or not begun.

    Raise an error if one of its folders holds a training with other settings.
    """
    homes = {runs / f"{name}-seed{config.train.seed}": own for name, own in alike(config)}
    begun = {folder: own for folder, own in homes.items() if begun_file(folder)}
    for folder in begun:
        refuse_another(folder, config)
    for folder, own in begun.items():
        if steps_of(folder) >= config.train.steps:
            return Training(own, folder, finished=True)
    folder, own = next(iter((begun or homes).items()))
    if folder in begun and not (folder / checkpoint.RESUME_FILE).exists():
        raise InputError(
            f"folder {folder} holds step {steps_of(folder)} of {config.train.steps} without its "
            f"{checkpoint.RESUME_FILE}: copy that file too, or move the folder away to train anew."
        )
    return Training(own, folder, finished=False)


def alike(config: Config) -> Iterator[tuple[str, Config]]:
    """Yield the names and configs of all presets and settings with the same training, with the same seed."""
    for name in dict.fromkeys([*PRESETS, *SETTINGS]):
        own = SETTINGS[name].config(config.train.seed) if name in SETTINGS else get_preset(name)
        own = replace(own, train=replace(own.train, seed=config.train.seed))
        if differing_field(own, config) is None:
            yield name, own


def differing_field(one: Config, other: Config) -> str | None:
    """Return the first setting in which two trainings differ, or None."""
    if one.system != other.system:
        return "model.system"
    for section in ("model", "scene", "train"):
        a, b = getattr(one, section), getattr(other, section)
        for field in fields(a):
            if field.name not in WRITTEN_ONLY and getattr(a, field.name) != getattr(b, field.name):
                return f"{section}.{field.name}"
    return None


def begun_file(folder: Path) -> Path | None:
    """Return the checkpoint of a run folder, or None if no training has begun there."""
    files = (folder / checkpoint.MODEL_FILE, folder / checkpoint.RESUME_FILE)
    return next((file for file in files if file.exists()), None)


def refuse_another(folder: Path, config: Config) -> None:
    """Raise an error if the folder holds a training with other settings."""
    file = begun_file(folder)
    assert file is not None
    found = checkpoint.read(file).config
    field = differing_field(found, config)
    if field is not None:
        section, name = field.split(".")
        was, wanted = (getattr(getattr(one, section), name) for one in (found, config))
        raise InputError(
            f"folder {folder} was trained with {field} {was!r}, but {wanted!r} is asked for: move the folder away "
            "to train anew."
        )


def steps_of(folder: Path) -> int:
    """Return the training step of the checkpoint in a folder."""
    file = begun_file(folder)
    assert file is not None
    return int(checkpoint.read(file).provenance["step"])
