"""The catalogue of what can be reproduced: the tables, the settings of each, and their trainings.

A setting is a row of a table. It usually has the name of a preset, of SCALOR or of a baseline. There are three kinds of
exceptions:

- Settings of the ablation are two presets, the paper's configuration and ours, with mechanisms switched off.
- A setting of a classical tracker names the preset whose scenes the tracker is tested on.
- Where inference is timed, a preset has one setting for each kind of device.

On the command line `shapes-` can be left out: `md` is `shapes-md`, `sqair-vld` is `sqair-shapes-vld`,
`md-classical-colour` is `shapes-md-classical-colour`.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from scalor import checkpoint
from scalor.config import Config
from scalor.errors import InputError
from scalor.presets import PRESETS, get_preset

CURVE_POINTS = 16
"""Number of evaluations during a training whose progress is plotted."""
CURVE_CLIPS = 16
"""Number of unseen clips in each of these evaluations."""


@dataclass(frozen=True)
class Setting:
    """A row of a table."""

    name: str
    label: str
    """Name of the row on the results page."""
    preset: str = ""
    """Name of the preset; empty if it is `name`."""
    changes: tuple[tuple[str, Any], ...] = ()
    """Settings in which it differs from the preset, such as ("model.rejection", False)."""
    curve: bool = False
    """Whether the model is evaluated during training."""
    detect: str = ""
    """Detector of the classical tracker to measure, for which nothing is trained; empty for a trained model."""
    device: str = ""
    """Kind of device on which inference is timed, `cuda` or `cpu`; empty if it is not timed."""

    @property
    def system(self) -> str:
        """Return the display name of the system."""
        return f"classical, {self.detect}" if self.detect else SYSTEMS[get_preset(self.preset or self.name).system]

    def config(self, seed: int) -> Config[Any]:
        """Return the config of the setting's training with a seed."""
        config: Config[Any] = get_preset(self.preset or self.name)
        train = replace(config.train, seed=seed)
        if self.curve:
            every = max(1, train.steps // CURVE_POINTS)
            train = replace(train, evaluate_every=every, evaluate_clips=CURVE_CLIPS)
        config = replace(config, train=train)
        for name, value in self.changes:
            section, field = name.split(".")
            config = replace(config, **{section: replace(getattr(config, section), **{field: value})})
        return config


SYSTEMS = {"scalor": "SCALOR", "vrnn": "VRNN", "sqair": "SQAIR", "vae": "sequential VAE"}
"""Display names of the systems."""
DEVICES = {"cuda": "GPU", "cpu": "CPU"}
"""Display names of the kinds of device."""


def of_system(system: str, scenes: str) -> str:
    """Return the name of a system's setting on the scenes of a SCALOR setting."""
    return scenes if system == "scalor" else f"{system}-{scenes}"


def scenes_of(name: str) -> str:
    """Return the SCALOR setting with the same scenes, for a setting of any system or of the paper's configuration."""
    first, _, rest = name.partition("-")
    return rest if first in ("paper", *SYSTEMS) else name


def all_systems(*scenes: str) -> tuple[str, ...]:
    """Return the settings on the scenes, of every system that has a preset for them."""
    names = [of_system(system, one) for one in scenes for system in SYSTEMS]
    return tuple(name for name in names if name in PRESETS)


COMPARED = ("shapes-vld", "shapes-ld", "shapes-md", "shapes-hd", "shapes-vhd", "shapes-background")
"""Scenes on which the classical trackers are measured too."""
CLASSICAL = ("colour", "foreground")
"""Detectors of the classical trackers that are measured."""


def classical(name: str, detect: str) -> str:
    """Return the name of a classical tracker's setting on the scenes of another setting."""
    return f"{name}-classical-{detect}"


def timed(name: str, device: str) -> str:
    """Return the name of the setting that times a preset's inference on a kind of device."""
    return f"{name}-{DEVICES[device].lower()}"


DENSITIES = ("shapes-vld", "shapes-ld", "shapes-md", "shapes-hd", "mnist-vld", "mnist-ld", "mnist-md")
"""Scenes on which likelihoods are compared."""
SQAIR_TRACKS = ("sqair-shapes-vld", "sqair-shapes-ld", "sqair-mnist-vld")
"""Settings of SQAIR in the tracking table."""
TIMED = ("shapes-md", "sqair-shapes-vld")
"""Presets whose weights are timed.

SQAIR has no weights for medium density, but no weight depends on the number of slots.
"""
REPLAY, STILL = "grand-central-replay", "grand-central-replay-still"
SMALL_BACKGROUND = "grand-central-replay-small-background"
BALLS = ("balls-occlusion", "balls-interaction", "balls-two-layer", "balls-two-layer-dense")
"""Data sets of G-SWM."""

REMEDIES: dict[str, tuple[str, tuple[tuple[str, Any], ...]]] = {
    "lengths": ("no single frames first", (("train.lengths", ((0, 10),)),)),
    "inertia": ("no inertia", (("model.inertia", False),)),
    "siblings": ("siblings are born", (("model.siblings", False),)),
    "duplicates": ("duplicates live on", (("model.end_duplicates", False),)),
    "masks": ("masks start at one half", (("model.initial_mask", 0.0),)),
    "search": ("no search glimpse", (("model.search", False),)),
    "clipping": ("no gradient clipping per object", (("train.clip_object", 0.0),)),
    "colour": ("what is covered is explained, whatever its colour", (("model.explained_error", 0.0),)),
    "ramp": ("colour counts from the start", (("train.colour_counts", (0, 0)),)),
}
"""What our configuration of the ablation has beyond the paper's, each left out alone: label and changed settings."""


def ablations(preset: str) -> tuple[Setting, ...]:
    """Return the settings of a preset with rejection, attention, both and neither."""
    without_rejection, without_attention = ("model.rejection", False), ("model.attention", False)
    return (
        Setting(preset, "rejection and attention", curve=True),
        Setting(f"{preset}-rejection", "rejection alone", preset, (without_attention,), curve=True),
        Setting(f"{preset}-attention", "attention alone", preset, (without_rejection,), curve=True),
        Setting(f"{preset}-neither", "neither", preset, (without_rejection, without_attention), curve=True),
    )


OURS = (
    Setting("shapes-vld", "shapes VLD"),
    Setting("shapes-ld", "shapes LD"),
    Setting("shapes-md", "shapes MD"),
    Setting("shapes-hd", "shapes HD"),
    Setting("shapes-vhd", "shapes VHD"),
    Setting("mnist-vld", "MNIST VLD", curve=True),
    Setting("mnist-ld", "MNIST LD"),
    Setting("mnist-md", "MNIST MD"),
    Setting("shapes-background", "shapes HD, moving background"),
    Setting("shapes-length", "shapes MD, 20 frames"),
    Setting("paper-shapes-md", "shapes MD, the paper's configuration, our code"),
    Setting("paper-shapes-hd", "shapes HD, the paper's configuration, our code"),
    Setting("paper-shapes-vhd", "shapes VHD, the paper's configuration, our code"),
    *(mechanisms for preset in ("paper-shapes-ablation", "shapes-ablation") for mechanisms in ablations(preset)),
    *(
        Setting(f"shapes-ablation-{name}", label, "shapes-ablation", changes, curve=True)
        for name, (label, changes) in REMEDIES.items()
    ),
    Setting("shapes-crowd", "more objects: 15-25, then 50-60"),
    Setting("mnist-unseen", "other digits: 0-5, then 6-9"),
    Setting("shapes-dense-discovery", "10-15 new shapes at three frames"),
    Setting("mnist-occlusion", "digits that cross each other often"),
    Setting(REPLAY, "Grand Central, semi-synthetic replay"),
    Setting(SMALL_BACKGROUND, "Grand Central, semi-synthetic replay, the paper's background"),
    Setting(STILL, "Grand Central, semi-synthetic replay, the empty scene given"),
    *(Setting(name, f"{name.removeprefix('balls-').replace('-', ' ')}") for name in BALLS),
)


def theirs(ours: Setting) -> list[Setting]:
    """Return the settings of the other systems on the scenes of a SCALOR setting."""
    others = {of_system(system, ours.name): called for system, called in SYSTEMS.items() if system != "scalor"}
    return [
        Setting(name, f"{ours.label}, {called}", curve=ours.curve) for name, called in others.items() if name in PRESETS
    ]


SETTINGS = {
    setting.name: setting
    for setting in (
        *OURS,
        *(other for ours in OURS if ours.name in (*DENSITIES, REPLAY) for other in theirs(ours)),
        *(Setting(timed(name, device), name, name, device=device) for name in TIMED for device in DEVICES),
        *(Setting(classical(name, way), name, name, detect=way) for name in COMPARED for way in CLASSICAL),
    )
}

ABLATION_PAPER = tuple(setting.name for setting in ablations("paper-shapes-ablation"))
"""Settings of the ablation with the paper's configuration."""
ABLATION_OURS = tuple(setting.name for setting in ablations("shapes-ablation"))
"""The same with ours."""
ABLATION_REMEDIES = tuple(f"shapes-ablation-{name}" for name in REMEDIES)
"""Ours with one remedy left out."""

TABLES: dict[str, tuple[str, ...]] = {
    "tracking": (
        *("shapes-vld", "shapes-ld", "shapes-md", "shapes-hd", "shapes-vhd", "mnist-vld", "mnist-ld", "mnist-md"),
        *("shapes-background", "shapes-length", "paper-shapes-md", "paper-shapes-hd", "paper-shapes-vhd"),
        *SQAIR_TRACKS,
        *(classical(name, way) for name in COMPARED for way in CLASSICAL),
    ),
    "likelihood": all_systems(*DENSITIES),
    "ablation": ABLATION_PAPER + ABLATION_OURS + ABLATION_REMEDIES,
    "generation": ("shapes-md", "shapes-background", "mnist-md"),
    "efficiency": (
        *(timed(name, device) for name in TIMED for device in DEVICES),
        *("mnist-vld", "sqair-mnist-vld"),
    ),
    "generalisation": (
        *("shapes-crowd", "mnist-unseen", "shapes-dense-discovery", "mnist-occlusion", "shapes-length"),
    ),
    "replay": (*all_systems(REPLAY), SMALL_BACKGROUND, STILL),
    "balls": BALLS,
}


@dataclass(frozen=True)
class Cell:
    """One measurement: a setting of a table, trained with a seed (0 where nothing is trained)."""

    table: str
    setting: Setting
    seed: int

    @property
    def config(self) -> Config[Any]:
        """Settings of the training, with its seed."""
        return self.setting.config(self.seed)

    @property
    def name(self) -> str:
        """Name of the run's folder and of its result file."""
        return f"{self.setting.name}-seed{self.seed}"


def choose(tables: Sequence[str], settings: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
    """Return the requested cells in the order of the tables; an empty `settings` means all of them."""
    for name in tables:
        if name not in (*TABLES, "all"):
            raise unknown("table", name, [*TABLES, "all", "figures", "page"])
    names = [name for name in TABLES if name in tables or "all" in tables]
    known = [name for name in SETTINGS if any(name in TABLES[table] for table in names)]
    wanted = {find_setting(name, known) for name in settings} or set(known)
    return [
        Cell(table, SETTINGS[name], seed)
        for table in names
        for name in TABLES[table]
        if name in wanted
        for seed in ([0] if SETTINGS[name].detect else dict.fromkeys(seeds))
    ]


def find_setting(said: str, known: Sequence[str]) -> str:
    """Return the full name of a setting that may be given by its short name."""
    by_name = {short_name(name): name for name in known} | {name: name for name in known}
    if said not in by_name:
        raise unknown("setting", said, list(by_name))
    return by_name[said]


def short_name(name: str) -> str:
    """Return a setting's name without `shapes-`."""
    return name.replace("shapes-", "", 1)


def unknown(what: str, said: str, known: Sequence[str]) -> InputError:
    """Return the error for an unknown name, with the closest known name or all of them."""
    near = difflib.get_close_matches(said, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}" if near else f"choose from {', '.join(known)}"
    return InputError(f"{what} is {said!r}: there is no such {what} here; {hint}.")


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
            f"{checkpoint.RESUME_FILE}: copy that file too, or move the folder away to train again."
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
            f"folder {folder} was trained with {field} {was!r}, but {wanted!r} is requested: move the folder away "
            "to train again."
        )


def steps_of(folder: Path) -> int:
    """Return the training step of the checkpoint in a folder."""
    file = begun_file(folder)
    assert file is not None
    return int(checkpoint.read(file).provenance["step"])
