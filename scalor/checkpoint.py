"""Checkpoints: safetensors files with the config and the provenance in the header.

Checkpoints contain no pickle and are written atomically. A run folder holds two of them:

- `model.safetensors` holds the weights. `scalor.load` reads it.
- `resume.safetensors` holds the weights and the state of the optimiser. Both are in one file so that a single rename
  replaces one consistent state of the run with the next.

Packed weights take about a quarter of the size, for shipping and sharing. Large matrices are stored as 8-bit integers
with one scale per row. All other tensors are stored in half precision. The effect on tracking is small; docs/log.md,
"all densities with `clip_object`", has figures.
"""

import hashlib
import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor

from scalor import systems
from scalor.config import Config, SceneConfig, SystemConfig, missing_settings
from scalor.errors import InputError
from scalor.files import check_is_file
from scalor.nn.interface import Model, Tracker
from scalor.provenance import command_line, commit, today
from scalor.systems import config_from_dict

SCALE = "/scale"
"""Suffix that, added to the name of a packed tensor, gives the name of the tensor of its scales."""
MAX_UNPACKED = 4096
"""Largest number of elements of a tensor that is always stored in half precision."""
MAX_STEP = 0.1
"""Largest allowed quantisation step (median over the rows), as a share of the median absolute value of the matrix.

Matrices with outliers exceed it and are stored in half precision.
"""
INT8_MAX = 127
"""Largest absolute value of a packed element."""


def pack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors as 8-bit integers with scales, or in half precision."""
    packed = {}
    for name, tensor in tensors.items():
        packed[name] = tensor.half()
        if tensor.ndim < 2 or tensor.numel() <= MAX_UNPACKED:
            continue
        rows = tensor.float().flatten(1)
        scale = rows.abs().amax(1, keepdim=True).clamp(min=torch.finfo().tiny) / INT8_MAX
        if scale.median() <= MAX_STEP * rows.abs().median():
            packed[name] = (rows / scale).round().to(torch.int8).view(tensor.shape)
            packed[name + SCALE] = scale[:, 0]
    return packed


def unpack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Invert `pack`, up to rounding. Tensors that have no scales are returned as they are."""
    whole = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name in tensors.keys() - whole.keys():
        rows = whole[name.removesuffix(SCALE)]
        whole[name.removesuffix(SCALE)] = (rows.flatten(1) * tensors[name][:, None]).view(rows.shape)
    return whole


StrPath: TypeAlias = str | os.PathLike[str]
"""A path, as `open` takes it."""

FORMAT = "scalor-1"
CHECKSUM = "sha256"
"""Name of the checksum in the header."""
MODEL_FILE, RESUME_FILE = "model.safetensors", "resume.safetensors"
MISSING = "settings_not_recorded"
"""Key of the provenance that lists the settings that a copy of older weights does not record."""
STATE = "training/"
"""Prefix of the names of the tensors that hold training state, such as the optimiser's."""
WEIGHTS = Path(__file__).parent / "weights"
"""Folder of the weights that ship with the package and are loaded by name."""


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint file."""

    config: Config[Any]
    provenance: dict[str, Any]
    tensors: dict[str, Tensor]
    missing: tuple[str, ...] = ()
    """Settings that the file does not record, because it is older than they are; `config` has their defaults."""

    @property
    def weights(self) -> dict[str, Tensor]:
        """The tensors of the model, without the training state."""
        return {name: tensor for name, tensor in self.tensors.items() if not name.startswith(STATE)}

    @property
    def origin(self) -> dict[str, Any]:
        """The provenance as a copy of the weights records it, with the settings that this file does not record."""
        return {**self.provenance, MISSING: self.missing} if self.missing else self.provenance


def provenance(config: Config[SystemConfig], step: int, device: torch.device) -> dict[str, Any]:
    """Return the provenance of weights: what is needed to reproduce them.

    Training adds two entries. `seconds` is the training time, summed over all resumed processes. `side_by_side` is the
    largest number of runs that were trained at the same time.
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
    """Write a checkpoint atomically.

    The data is written to a temporary file in the same folder, flushed to the disk, and then renamed. So the file under
    the final name is always complete. Raise InputError if the file cannot be written.
    """
    header = {"format": FORMAT, "config": json.dumps(config.to_dict()), "provenance": json.dumps(origin)}
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data = to_safetensors(stored, {**header, CHECKSUM: checksum(stored, header)})
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
    """Read a checkpoint and unpack its tensors. Raise InputError with the reason if the file cannot be used."""
    if not path.exists():
        raise InputError(f"checkpoint {path} does not exist: check the path, or train one with `scalor train`.")
    check_is_file(path, "a .safetensors file")
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"checkpoint {path} cannot be read ({error}): it is truncated or not a safetensors file; use another copy."
        ) from error
    if header.get("format") != FORMAT:
        raise InputError(
            f"checkpoint {path} was not written by scalor (format {header.get('format')!r}, not {FORMAT!r}): "
            "give a file that `scalor train` made."
        )
    check_values(path, header, stored)
    try:
        table = json.loads(header["config"])
        config = config_from_dict(table)
        origin = dict(json.loads(header["provenance"]))
        missing = (*missing_settings(config, table), *origin.pop(MISSING, ()))
        return Checkpoint(config, origin, unpack(stored), missing)
    except InputError as error:
        raise InputError(f"checkpoint {path} has a config that does not fit this version: {error}") from error
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"checkpoint {path} has a broken header: use another copy.") from error


def checksum(tensors: dict[str, Tensor], header: dict[str, str]) -> str:
    """Return the SHA-256 of everything that a checkpoint says: names, values and settings."""
    digest = hashlib.sha256()
    for key in sorted(header.keys() - {CHECKSUM}):
        digest.update(f"{key}={header[key]}\n".encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def check_values(path: Path, header: dict[str, str], stored: dict[str, Tensor]) -> None:
    """Raise InputError if a checkpoint is not as it was written, or if weights are not finite.

    Checkpoints of older versions have no checksum.
    """
    if CHECKSUM in header and header[CHECKSUM] != checksum(stored, header):
        raise InputError(f"checkpoint {path} is damaged (its checksum does not match): use another copy.")
    for name, tensor in stored.items():
        if not name.startswith(STATE) and tensor.is_floating_point() and not tensor.isfinite().all():
            raise InputError(
                f"checkpoint {path} has weights that are not finite (in {name}): use another copy, or an "
                "earlier checkpoint of the run."
            )


def find(name_or_path: StrPath) -> Path:
    """Return the checkpoint file of a shipped name, a run folder or a path to a file."""
    path = Path(name_or_path)
    shipped = WEIGHTS / f"{path}.safetensors"
    if path.name == str(path) and shipped.is_file():
        return shipped
    if path.is_dir():
        return path / MODEL_FILE
    if not path.exists():
        names = ", ".join(sorted(file.stem for file in WEIGHTS.glob("*.safetensors"))) or "none"
        raise InputError(
            f"weights {os.fspath(name_or_path)!r} are neither shipped nor a file: shipped weights are {names}; "
            "or give a run folder or a .safetensors file."
        )
    return path


def fill(model: Model, tensors: dict[str, Tensor], path: Path) -> None:
    """Load weights into a model. Raise InputError if their names and shapes do not match exactly."""
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


def fill_from(model: Model, name_or_path: StrPath) -> None:
    """Load weights into a model of the same sizes, from a shipped name, a run folder or a file."""
    path = find(name_or_path)
    fill(model, {name: tensor.float() for name, tensor in read(path).weights.items()}, path)


def copy_weights(name_or_path: StrPath, path: Path, config: Config[SystemConfig]) -> None:
    """Write the weights of a shipped name, a run folder or a file to a new checkpoint with another config.

    The weights must fit that config. The provenance is kept.
    """
    found = read(find(name_or_path))
    write(path, {name: tensor.float() for name, tensor in found.weights.items()}, config, found.provenance)


def save(model: Model, path: str | Path, config: Config[SystemConfig] | None = None) -> None:
    """Write the weights of a model to a checkpoint file.

    Parameters
    ----------
    model : Model
        The model to save.
    path : str or Path
        The file to write. An existing file is replaced.
    config : Config, optional
        The config of the whole run, which is stored in the file. Default: the config of the run that the model was
        loaded from, or of the preset that it was built by. For any other model: the model's own settings, with default
        settings for the scenes and the training. Such a model needs a config if it is for a still camera.

    Notes
    -----
    The provenance of a model that was loaded stays, with an entry `saved`: when and by which command it was written
    again.

    Raises
    ------
    InputError
        If the file cannot be written.

    Examples
    --------
    >>> model = scalor.build("shapes-tiny")
    >>> scalor.save(model, "tiny.safetensors", scalor.get_preset("shapes-tiny"))
    >>> model = scalor.load("tiny.safetensors")
    """
    scene = SceneConfig(frame=model.config.frame)
    whole = config or model.run or Config(model=model.config, scene=scene, test=scene)
    if model.origin is None:
        origin = provenance(whole, 0, next(model.parameters()).device)
    else:
        origin = {**model.origin, "saved": f"{today()}, commit {commit()}, by {command_line()}"}
    write(Path(path), dict(model.state_dict()), whole, origin)


def save_packed(weights: str | Path, path: str | Path) -> None:
    """Write a small copy of a model's weights (see `scalor.checkpoint`), with the same config and provenance.

    The copy is less precise, so it replaces only another packed copy: raise InputError for any other file.
    """
    source, target = find(weights), Path(path)
    found = read(source)
    if target.exists() and (target.samefile(source) or not is_packed(target)):
        raise InputError(f"{target} would be replaced by a less precise copy: give the name of a new file with --out.")
    write(target, pack(found.weights), found.config, found.origin)


def is_packed(path: Path) -> bool:
    """Return whether a file is a checkpoint that holds packed weights alone."""
    try:
        with safe_open(path, "pt") as file:
            kinds = {file.get_slice(name).get_dtype() for name in file.keys() if not name.endswith(SCALE)}  # noqa: SIM118
            return (file.metadata() or {}).get("format") == FORMAT and kinds <= {"I8", "F16"}
    except (SafetensorError, OSError):
        return False


def load(name_or_path: StrPath, device: str | torch.device = "cpu", slots: int | None = None) -> Model:
    """Load a trained model of any system; see `scalor.load`, which adds methods for whole videos.

    Parameters
    ----------
    name_or_path : str or Path
        A shipped name such as `shapes-md`, a run folder, or a checkpoint file.
    device : str or torch.device, default "cpu"
        Where to put the model: `cpu`, `cuda`, `cuda:1`, or `auto` (the GPU if there is one, otherwise the CPU).
    slots : int, optional
        The largest number of objects tracked at once. No weight depends on it. Default: as in training.
    """
    path = find(name_or_path)
    checkpoint = read(path)
    config = checkpoint.config.model
    if slots is not None:
        config = with_slots(config, slots, name_or_path)
    model = systems.build(config)
    model.run, model.origin = replace(checkpoint.config, model=config), checkpoint.origin
    fill(model, {name: tensor.float() for name, tensor in checkpoint.weights.items()}, path)
    return model.to(pick_device(device)).eval()


def load_tracker(name_or_path: StrPath, device: str | torch.device = "cpu", slots: int | None = None) -> Tracker:
    """Load a trained model that tracks objects; see `load` for the parameters.

    Raise InputError for weights of a system that has no objects.
    """
    return as_tracker(load(name_or_path, device, slots), name_or_path)


def as_tracker(model: Model, name: object) -> Tracker:
    """Return a model that tracks objects, or raise InputError if its system has no objects. `name` is for the error."""
    if not isinstance(model, Tracker):
        raise InputError(
            f"weights {name} are of a {model.config.system}, which sees frames and no objects: give weights "
            "of a system that tracks, such as shapes-md."
        )
    return model


def with_slots(config: Any, slots: int, name: object) -> Any:
    """Return the settings of a system with another number of slots. `name` is that of the weights, for the error."""
    if not hasattr(config, "slots"):
        raise InputError(f"slots is {slots}: weights {name} are of a {config.system}, which has none.")
    return replace(config, slots=slots)


def pick_device(name: str | torch.device) -> torch.device:
    """Return the device of a name: `cpu`, `cuda`, `cuda:1`, or `auto` (the GPU if there is one, otherwise the CPU)."""
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
