"""Snapshots: the state of a long run in one file, from which a stopped run is resumed exactly.

A snapshot holds Python objects as they are, down to the memory layout of tensors, because sums of floats depend on it.
It is written with pickle. A file that came with somebody else's folder must not run code, so reading creates only
arrays, tensors, plain containers and the classes that the caller names; anything else in the file is refused.

>>> write_snapshot(path, {"options": "stride 2"}, {"frames": 250, "tracks": tracks})
>>> read_snapshot(path, [Tracks])
"""

import hashlib
import io
import json
import os
import pickle
from array import array
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from scalor.errors import InputError

FIRST_LINE = b"scalor snapshot 1\n"


def write_snapshot(path: Path, key: Mapping[str, str], state: object) -> None:
    """Write a snapshot that is complete or absent, even if the machine stops.

    Parameters
    ----------
    path : Path
        The file to write or to replace.
    key : mapping
        What a run must have in common with this one to resume it: names and values, readable on their own.
    state : object
        The state.
    """
    memory = io.BytesIO()
    Pickler(memory, protocol=5).dump(state)
    payload = memory.getvalue()
    head = json.dumps({"key": dict(key), "sha256": hashlib.sha256(payload).hexdigest()}).encode()
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "wb") as file:
        file.writelines([FIRST_LINE, head, b"\n", payload])
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_key(path: Path) -> dict[str, str] | None:
    """Return the key of a snapshot; None if there is no usable snapshot."""
    parts = _read(path)
    return None if parts is None else parts[0]


def read_snapshot(path: Path, classes: Iterable[type]) -> Any:
    """Return the state in a snapshot; it may hold objects of these classes. Raise InputError if it is damaged."""
    parts = _read(path)
    damaged = InputError(f"{path} is damaged: delete the folder {path.parent} and run the command again.")
    if parts is None:
        raise damaged
    try:
        return Unpickler(io.BytesIO(parts[1]), classes).load()
    except Exception as error:  # pickle raises nearly anything on damaged bytes
        raise damaged from error


def _read(path: Path) -> tuple[dict[str, str], bytes] | None:
    """Return the key and the pickled state of a snapshot; None if the file is missing or incomplete."""
    try:
        with open(path, "rb") as file:
            if file.readline() != FIRST_LINE:
                return None
            head, payload = json.loads(file.readline()), file.read()
        whole = hashlib.sha256(payload).hexdigest() == head["sha256"]
        return ({str(name): str(value) for name, value in head["key"].items()}, payload) if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class Pickler(pickle.Pickler):
    """Pickler that writes arrays and tensors as plain bytes, and keeps the memory layout of tensors."""

    def reducer_override(self, value: Any) -> Any:
        """Replace an array or a tensor by a call that makes it again."""
        if isinstance(value, Tensor):
            value = value.detach().cpu()
            storage = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
            return tensor_of, (storage.numpy(), tuple(value.shape), value.stride(), value.storage_offset())
        if isinstance(value, np.ndarray | np.generic):
            order: Literal["C", "F"] = "C" if value.flags.c_contiguous or not value.flags.f_contiguous else "F"
            kind = value.dtype.descr if value.dtype.names else value.dtype.str
            return array_of, (value.tobytes(order), kind, value.shape, order, isinstance(value, np.generic))
        if isinstance(value, array):
            return typed_array, (value.typecode, value.tobytes())
        return NotImplemented


def tensor_of(storage: np.ndarray, shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Tensor:
    """Return a tensor with this storage and this place in it."""
    return torch.from_numpy(storage).clone().as_strided(shape, stride, offset)


def array_of(values: bytes, kind: Any, shape: tuple[int, ...], order: Literal["C", "F"], single: bool) -> Any:
    """Return a numpy array or, with `single`, a numpy number."""
    made = np.frombuffer(values, np.dtype(kind)).reshape(shape, order=order).copy(order)
    return made[()] if single else made


def typed_array(kind: str, values: bytes) -> "array[Any]":
    """Return an array of the standard library."""
    made: array[Any] = array(kind)
    made.frombytes(values)
    return made


class Unpickler(pickle.Unpickler):
    """Unpickler that creates arrays, tensors and objects of known classes only."""

    def __init__(self, file: io.BytesIO, classes: Iterable[type]) -> None:
        super().__init__(file)
        plain: list[Any] = [deque, tensor_of, array_of, typed_array]
        self.known = {(one.__module__, one.__qualname__): one for one in [*plain, *classes]}

    def find_class(self, module: str, name: str) -> Any:
        """Return a known class or function."""
        if (module, name) not in self.known:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong in a snapshot")
        return self.known[module, name]
