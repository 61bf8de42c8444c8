"""Processes that train one model together, as torchrun starts them; each one is a rank.

    torchrun --nproc-per-node 2 -m scalor train shapes-tiny

Each rank has its own part of every batch. All ranks have the same weights, because gradients are averaged before each
update. Without torchrun there is one rank, and these functions have no effect. Ranks on GPUs communicate by NCCL, on
CPUs by gloo.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, distributed, nn

from scalor.errors import InputError, require

T = TypeVar("T")

PATIENCE = timedelta(hours=2)
"""Longest time that ranks wait for each other: the first one prepares and evaluates alone."""


@contextmanager
def joined(device: torch.device) -> Iterator[torch.device]:
    """Join the other ranks inside the block, if torchrun started this process. Yield the device of this rank."""
    if "RANK" not in os.environ or not distributed.is_available() or distributed.is_initialized():
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield device
    finally:
        distributed.destroy_process_group()


def are_started() -> bool:
    """Return whether torchrun started this process and others beside it, joined or not."""
    return "RANK" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def count() -> int:
    """Return the number of ranks."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def rank() -> int:
    """Return the number of this rank, from 0."""
    return distributed.get_rank() if count() > 1 else 0


def is_first() -> bool:
    """Return whether this is the rank that writes files and prints."""
    return rank() == 0


def sum_over_ranks(values: Tensor) -> Tensor:
    """Sum a tensor over all ranks, in place, and return it."""
    if count() > 1:
        distributed.all_reduce(values)
    return values


def from_first(value: T) -> T:
    """Return the value that the first rank gives, in all ranks. It must be possible to pickle it."""
    if count() == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values)
    return values[0]


def any_rank(value: bool, device: torch.device) -> bool:
    """Return whether a value is true in any rank; the host waits for the answer."""
    if count() == 1:
        return value
    return bool(sum_over_ranks(torch.tensor(float(value), device=device)))


@contextmanager
def all_or_none(device: torch.device) -> Iterator[None]:
    """Wait at the end of the block until it has ended in all ranks. If it fails in one, raise InputError in the others.

    Without it, the others would wait for a rank that has ended. Inside the block, ranks must not communicate.
    """
    try:
        yield
    except BaseException:
        with suppress(RuntimeError):  # the other ranks may have ended, too
            any_rank(True, device)
        raise
    if any_rank(False, device):
        raise InputError("another process could not go on: correct what its message names, and start all again.")


def check_batch(batch: int) -> None:
    """Raise InputError unless a batch can be shared by all ranks."""
    fix = f"it must be a multiple of the number of processes, {count()}"
    require(batch % count() == 0, "train.batch", batch, fix)


def check_same_step(step: int, folder: object, device: torch.device) -> None:
    """Raise InputError in all ranks if a run would not go on at the same step in all of them."""
    if any_rank(step != from_first(step), device):
        raise InputError(f"folder {folder} is not the same for all processes: give one that all of them share.")


def average_gradients(parameters: Iterable[nn.Parameter], numbers: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    """Average the gradients of all ranks in place, and return the average of some numbers, all in one message.

    On a CPU a rank whose clips show no object has no gradient for some weights. A weight has a gradient afterwards if
    any rank had one.
    """
    if count() == 1:
        return numbers
    weights = list(parameters)
    parts = [torch.zeros_like(one) if one.grad is None else one.grad for one in weights]
    has = torch.tensor([one.grad is not None for one in weights], dtype=numbers.dtype, device=numbers.device)
    vector = sum_over_ranks(torch.cat([*(part.flatten() for part in parts), has, numbers])) / count()
    *gradients, has, numbers = vector.split([*(one.numel() for one in weights), len(weights), len(numbers)])
    present = [one.grad is not None for one in weights] if numbers.is_cuda else (has > 0).tolist()
    for one, gradient, some in zip(weights, gradients, present, strict=True):
        # A fused Adam reads weights and gradients in the order of memory, which differs between layouts.
        one.grad = torch.empty_like(one).copy_(gradient.view_as(one)) if some else None
    return numbers
