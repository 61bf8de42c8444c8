"""Operations on records of tensors: dataclasses and tuples, possibly nested."""

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


def map_tensors(change: Callable[..., Tensor], record: R, *others: R) -> R:
    """Apply a function to each tensor of a record, or to the corresponding tensors of several records.

    Everything else is kept as it is in the first record.
    """
    first: Any = record
    if isinstance(first, Tensor):
        return change(first, *others)  # type: ignore[return-value]
    if isinstance(first, tuple):
        columns: Any = zip(first, *others, strict=True)
    elif is_dataclass(first):
        columns = [[getattr(one, field.name) for one in (first, *others)] for field in fields(first)]
    else:
        return record
    parts = [map_tensors(change, *column) for column in columns]
    whole: R = type(first)(parts) if type(first) is tuple else type(first)(*parts)  # type: ignore[assignment]
    return whole


def concatenate(records: list[R], dim: int = 0) -> R:
    """Concatenate records: along dimension 0, T records of B clips become one of T * B clips, frame after frame."""
    return map_tensors(lambda *parts: torch.cat(parts, dim), *records)


def tensors(record: object) -> list[Tensor]:
    """Return all tensors of a record, in the order of its fields."""
    found: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(keep, record)
    return found


def copied(record: R) -> R:
    """Return the same record with every tensor cloned."""
    return map_tensors(torch.clone, record)


def group_by(records: list[R], key: Callable[[R], K]) -> dict[K, list[R]]:
    """Group records by a key, for example a shape that must be the same for `concatenate`."""
    groups: dict[K, list[R]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups
