"""Snapshots come back as they were, and a file from somebody else creates nothing that was not asked for."""

import os
import pickle
from array import array
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scalor.errors import InputError
from scalor.snapshots import read_key, read_snapshot, write_snapshot


@dataclass(frozen=True)
class Place:
    x: np.ndarray
    seen: deque[int]


def there_and_back(path: Path, state: Any) -> Any:
    write_snapshot(path, {}, state)
    return read_snapshot(path, [Place])


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 4), np.float32),
        np.array([(1, 2.5)], [("id", "<i8"), ("x", "<f8")]),
        np.array([True, False]),
        np.float32(0.1),
        np.bool_(True),
    ],
)
def test_numbers_come_back_in_their_layout(value: Any, tmp_path: Path) -> None:
    back = there_and_back(tmp_path / "s", value)
    assert type(back) is type(value)
    assert back.dtype == value.dtype
    assert np.array_equal(back, value)
    assert back.flags.f_contiguous == value.flags.f_contiguous
    assert isinstance(back, np.generic) or back.flags.writeable


def test_tensors_come_back_in_their_layout(tmp_path: Path) -> None:
    view = torch.arange(24.0).view(2, 3, 4)[:, 1:, ::2]
    back = there_and_back(tmp_path / "s", view)
    assert torch.equal(back, view)
    assert (back.stride(), back.storage_offset()) == (view.stride(), view.storage_offset())


def test_records_and_containers_come_back(tmp_path: Path) -> None:
    place = Place(np.arange(3), deque([1, 2], maxlen=2))
    back = there_and_back(tmp_path / "s", {"a": [place, place], "b": (None, array("d", [0.1]), 2**70)})
    assert back["a"][0] is back["a"][1]
    assert back["a"][0].seen == deque([1, 2])
    assert back["a"][0].seen.maxlen == 2
    assert back["b"] == (None, array("d", [0.1]), 2**70)


class Harmful:
    def __reduce__(self) -> Any:
        return os.mkdir, ("made by a file",)


@pytest.mark.parametrize("state", [Harmful(), Path("x"), range(3)], ids=["code", "another class", "a builtin"])
def test_a_snapshot_with_anything_else_is_refused(
    state: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_snapshot(tmp_path / "s", {"video": "a"}, state)
    assert isinstance(pickle.dumps(state), bytes)
    with pytest.raises(InputError, match=r"s is damaged: delete the folder .* and run the command again"):
        read_snapshot(tmp_path / "s", [Place])
    assert not Path("made by a file").exists()


@pytest.mark.parametrize("damage", ["missing", "cut", "changed", "another file"])
def test_a_damaged_snapshot_is_none(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_snapshot(path, {"video": "a"}, [1, 2, 3])
    assert read_key(path) == {"video": "a"}
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"cut": whole[:-1], "changed": whole[:-3] + b"xyz", "another file": b"{}\n"}[damage])
    assert read_key(path) is None
    with pytest.raises(InputError, match="damaged"):
        read_snapshot(path, [])
