"""Gradients that are kept from running away.

**From later frames.** Where an object will be depends on where it was looked for, and that on where it was: a loop
through the picture. For most objects it settles. For a few it does not, and their gradients grow from frame to frame
until they are all there is of a step (docs/log.md, "one object's gradient"). So no object may have far more of it than
objects usually have.

**Against a limit.** What is kept within a limit by a tanh, and pushed against it for long, ends where no gradient leads
back from. A wall stops the push instead.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def even(values: Float[Tensor, "B N F"], times: float) -> Float[Tensor, "B N F"]:
    """The same values. Backwards, an object's gradient is cut to so many times the usual one: the geometric mean over
    all objects of the batch that have any."""
    evened: Tensor = Even.apply(values, times)  # type: ignore[no-untyped-call]
    return evened


class Even(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, times: float) -> Tensor:
        ctx.times = times
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        norm = gradient.norm(dim=-1, keepdim=True)
        some = norm > 0
        logs = torch.where(some, norm, 1).log()
        usual = (logs.sum() / some.sum().clamp(min=1)).exp()
        return gradient * torch.where(some, ctx.times * usual / norm, 1).clamp(max=1), None


def walled(numbers: Tensor, limit: float) -> Tensor:
    """Numbers within a limit either way. A loss can pull one back from there, and cannot push it further."""
    kept: Tensor = Walled.apply(numbers, limit)  # type: ignore[no-untyped-call]
    return kept


class Walled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, limit: float) -> Tensor:
        ctx.save_for_backward(numbers)
        ctx.limit = limit
        return numbers.clamp(-limit, limit)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (numbers,) = ctx.saved_tensors
        outward = (numbers.abs() >= ctx.limit) & (numbers * gradient < 0)
        return gradient.masked_fill(outward, 0), None
