"""Functions that change gradients in the backward pass only.

**Clipping per object** (`even`). The place of an object depends on where the tracker looked for it, and that place
depends on the place before. This recurrence is stable for most objects. For a few it is not: their gradients grow from
frame to frame and dominate the training step (docs/log.md, "one object's gradient"). So each object's gradient is
clipped to a multiple of the geometric mean over objects.

**Clamping to a limit** (`walled`). A tanh that keeps a number within a limit saturates: after a long push against the
limit there is no gradient that leads back. `walled` clamps instead, and zeroes only the gradient that pushes outward.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.nn.ranks import sum_over_ranks


def even(values: Float[Tensor, "B N F"], times: float) -> Float[Tensor, "B N F"]:
    """Return the same values; clip the gradient of each object in the backward pass.

    The norm of an object's gradient is limited to `times` the geometric mean of the norms of all objects in the batch,
    that of all ranks, whose gradient is not zero.
    """
    evened: Tensor = Even.apply(values, times)  # type: ignore[no-untyped-call]
    return evened


class Even(torch.autograd.Function):
    """Autograd function of `even`."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, times: float) -> Tensor:
        """Return the same values."""
        ctx.times = times
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Clip the gradient of each object."""
        (gradient,) = gradients
        norm = gradient.norm(dim=-1, keepdim=True)
        some = norm > 0
        logs = torch.where(some, norm, 1).log()
        total = sum_over_ranks(torch.stack([logs.sum(), some.sum().to(logs.dtype)]))
        usual = (total[0] / total[1].clamp(min=1)).exp()
        return gradient * torch.where(some, ctx.times * usual / norm, 1).clamp(max=1), None


def walled(numbers: Tensor, limit: float) -> Tensor:
    """Clamp numbers to [-limit, limit].

    In the backward pass, the gradient of a number at the limit or beyond is zero where gradient descent would push the
    number outward, and unchanged where it would pull the number back.
    """
    kept: Tensor = Walled.apply(numbers, limit)  # type: ignore[no-untyped-call]
    return kept


class Walled(torch.autograd.Function):
    """Autograd function of `walled`."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor, limit: float) -> Tensor:
        """Clamp the numbers."""
        ctx.save_for_backward(numbers)
        ctx.limit = limit
        return numbers.clamp(-limit, limit)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Zero the gradient that pushes outward at the limit."""
        (numbers,) = ctx.saved_tensors
        outward = (numbers.abs() >= ctx.limit) & (numbers * gradient < 0)
        return gradient.masked_fill(outward, 0), None
