"""Operations on records of tensors: dataclasses and named tuples, possibly nested."""

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


def together(records: list[R]) -> R:
    """Concatenate T records of B clips to one record of T * B clips, frame after frame."""
    first: Any = records[0]
    if isinstance(first, Tensor):
        return torch.cat(records)  # type: ignore[arg-type, return-value]
    if is_dataclass(first):
        names = [field.name for field in fields(first)]
        columns = [[getattr(record, name) for record in records] for name in names]
    else:
        columns = [list(column) for column in zip(*records, strict=True)]
    whole: R = type(first)(*map(together, columns))
    return whole


def alike(records: list[R], key: Callable[[R], K]) -> dict[K, list[R]]:
    """Group records by a key, for example a shape that must be the same for `together`."""
    groups: dict[K, list[R]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def tensors(record: object) -> list[Tensor]:
    """Return all tensors of a record, in the order of its fields."""
    if isinstance(record, Tensor):
        return [record]
    return [tensor for part in parts(record) for tensor in tensors(part)]


def copied(record: R) -> R:
    """Return the same record with every tensor cloned."""
    if isinstance(record, Tensor):
        return cast(R, record.clone())
    own = [copied(part) for part in parts(record)]
    return type(record)(*own) if own else record


def parts(record: object) -> list[object]:
    """Return the fields of a record; an empty list for anything else."""
    if isinstance(record, tuple):
        return list(record)
    if is_dataclass(record):
        return [getattr(record, field.name) for field in fields(record)]
    return []
