"""Checkpoints: safetensors with the config and provenance in the header. No pickle, no half-written file.

A run folder holds `model.safetensors` (weights: what `scalor.load` reads) and `resume.safetensors` (weights and
optimiser together, so that one rename moves a run from one good state to the next).
"""

import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor

from scalor import systems
from scalor.config import Config, SceneConfig, SystemConfig
from scalor.errors import InputError
from scalor.nn.interface import Model, Tracker
from scalor.packing import pack, unpack
from scalor.provenance import command_line, commit, today
from scalor.systems import config_from_dict

FORMAT = "scalor-1"
MODEL_FILE, RESUME_FILE = "model.safetensors", "resume.safetensors"
STATE = "training/"
"""The names of the optimiser's tensors begin so."""
WEIGHTS = Path(__file__).parent / "weights"
"""Weights that ship with the package, loaded by name."""


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds."""

    config: Config[Any]
    provenance: dict[str, Any]
    tensors: dict[str, Tensor]

    @property
    def weights(self) -> dict[str, Tensor]:
        """The model's own tensors, without the state of training."""
        return {name: tensor for name, tensor in self.tensors.items() if not name.startswith(STATE)}


def provenance(config: Config[SystemConfig], step: int, device: torch.device) -> dict[str, Any]:
    """Where weights come from: enough to make them again.

    A training adds `seconds`, its time over all resumptions, and `side_by_side`, the most runs trained together.
    """
    hardware = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu"
    return {
        "command": command_line(),
        "commit": commit(),
        "seed": config.train.seed,
        "step": step,
        "hardware": hardware,
        "torch": torch.__version__,
        "date": today(),
    }


def write(path: Path, tensors: dict[str, Tensor], config: Config[SystemConfig], origin: dict[str, Any]) -> None:
    """Write beside, flush to the disk, then rename: the file under the final name is always whole."""
    header = {"format": FORMAT, "config": json.dumps(config.to_dict()), "provenance": json.dumps(origin)}
    data = to_safetensors({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, header)
    beside = path.with_name(path.name + ".part")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise InputError(
            f"checkpoint {path} cannot be written ({error.strerror}): free some space or choose another "
            "folder; what was saved before is untouched."
        ) from error


def read(path: Path) -> Checkpoint:
    """A whole checkpoint, or one sentence saying why not."""
    if not path.exists():
        raise InputError(f"checkpoint {path} does not exist: check the path, or train one with `scalor train`.")
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"checkpoint {path} cannot be read ({error}): it is truncated or no safetensors file; use another copy."
        ) from error
    if header.get("format") != FORMAT:
        raise InputError(
            f"checkpoint {path} was not written by scalor (format {header.get('format')!r}, not {FORMAT!r}): "
            "give a file that `scalor train` made."
        )
    try:
        config = config_from_dict(json.loads(header["config"]))
        return Checkpoint(config, dict(json.loads(header["provenance"])), unpack(stored))
    except InputError as error:
        raise InputError(f"checkpoint {path} has a config that does not fit this version: {error}") from error
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"checkpoint {path} has a broken header: use another copy.") from error


def find(name_or_path: str | Path) -> Path:
    """A shipped name, a run folder or a file, as a file."""
    path = Path(name_or_path)
    shipped = WEIGHTS / f"{path}.safetensors"
    if path.name == str(path) and shipped.is_file():
        return shipped
    if path.is_dir():
        return path / MODEL_FILE
    if not path.exists():
        names = ", ".join(sorted(file.stem for file in WEIGHTS.glob("*.safetensors"))) or "none"
        raise InputError(
            f"weights {str(name_or_path)!r} are neither shipped nor a file: shipped weights are {names}; "
            "or give a run folder or a .safetensors file."
        )
    return path


def fill(model: Model, tensors: dict[str, Tensor], path: Path) -> None:
    """Load weights that fit exactly, or say what does not."""
    own = model.state_dict()
    missing, extra = sorted(set(own) - set(tensors)), sorted(set(tensors) - set(own))
    if missing or extra:
        raise InputError(
            f"checkpoint {path} does not fit the model: {len(missing)} tensors are missing and {len(extra)} "
            f"unknown (first: {(missing + extra)[0]}); use the config it was trained with."
        )
    for name, tensor in tensors.items():
        if own[name].shape != tensor.shape:
            raise InputError(
                f"checkpoint {path} has other sizes: {name} is {list(tensor.shape)}, the model wants "
                f"{list(own[name].shape)}; use the config it was trained with."
            )
    model.load_state_dict(tensors)


def fill_from(model: Model, name_or_path: str | Path) -> None:
    """Load the weights of a shipped name, a run folder or a file into a model of the same sizes."""
    path = find(name_or_path)
    fill(model, {name: tensor.float() for name, tensor in read(path).weights.items()}, path)


def copy_weights(name_or_path: str | Path, path: Path, config: Config[SystemConfig]) -> None:
    """Write the weights of a shipped name, a run folder or a file under other settings, which they must fit."""
    found = read(find(name_or_path))
    write(path, {name: tensor.float() for name, tensor in found.weights.items()}, config, found.provenance)


def save(model: Model, path: str | Path, config: Config[SystemConfig] | None = None) -> None:
    """Write a model's weights; `config` is the whole run's (none given: of the run that it was loaded from)."""
    scene = SceneConfig(frame=model.config.frame)
    whole = config or model.run or Config(model=model.config, scene=scene, test=scene)
    origin = provenance(whole, 0, next(model.parameters()).device)
    write(Path(path), dict(model.state_dict()), whole, origin)


def save_packed(weights: str | Path, path: str | Path) -> None:
    """A small copy of a model's weights, with the same config and provenance."""
    found = read(find(weights))
    write(Path(path), pack(found.weights), found.config, found.provenance)


def load(name_or_path: str | Path, device: str | torch.device = "cpu", slots: int | None = None) -> Any:
    """A trained model, by shipped name (`shapes-md`), run folder or file: a `SCALOR`, or whatever system it is of.

    `slots` changes the most objects followed at once: no weight depends on it.
    """
    path = find(name_or_path)
    checkpoint = read(path)
    config = checkpoint.config.model
    if slots is not None:
        if not hasattr(config, "slots"):
            raise InputError(f"slots is {slots}: weights {name_or_path} are of a {config.system}, which has none.")
        config = replace(config, slots=slots)
    model = systems.build(config)
    model.run = replace(checkpoint.config, model=config)
    fill(model, {name: tensor.float() for name, tensor in checkpoint.weights.items()}, path)
    return model.to(pick_device(device)).eval()


def load_tracker(name_or_path: str | Path, device: str | torch.device = "cpu", slots: int | None = None) -> Tracker:
    """A trained model that knows objects; weights of a system that does not are refused."""
    model = load(name_or_path, device, slots)
    if not isinstance(model, Tracker):
        raise InputError(
            f"weights {name_or_path} are of a {model.config.system}, which sees frames and no objects: give weights "
            "of a system that tracks, such as shapes-md."
        )
    return model


def pick_device(name: str | torch.device) -> torch.device:
    """`auto` takes the GPU where there is one."""
    if str(name) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device is {name!r}: choose auto, cpu or cuda.") from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device is {name!r}: choose auto, cpu or cuda.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device is {name!r}: this machine has no CUDA GPU; use cpu or auto.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device is {name!r}: this machine has {torch.cuda.device_count()} CUDA GPUs, from cuda:0 on.")
    return device
