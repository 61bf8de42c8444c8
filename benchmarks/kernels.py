"""Crop and paste: ours against the plain matrix products, and against a canvas (or an image) per object."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.plan import Plan
from benchmarks.timing import clean_up, device_median
from benchmarks.training import by
from scalor.kernels import Backend, crop, forced, paste
from scalor.model import reference

Work = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class KernelRow:
    kernel: str
    clips: int
    objects: int
    channels: int
    glimpse: int
    frame: str
    version: str
    forward_us: float
    both_us: float
    """Forward and backward."""
    off: float
    """Largest difference from the matrix products, against the largest value."""
    gradient_off: float


@dataclass(frozen=True)
class Shape:
    clips: int
    objects: int
    channels: int
    glimpse: int
    side: int
    box: float
    """Boxes are about this large, pixels."""


def shapes(plan: Plan) -> dict[str, list[Shape]]:
    """What training at 64x64 asks for, and a crowd; fewer clips on the CPU."""
    if plan.tiny:
        return {"paste": [Shape(1, 2, 5, 8, 16, 6.0)], "crop": [Shape(1, 2, 3, 8, 16, 6.0)]}
    gpu = plan.device == "cuda"
    return {
        "paste": [
            Shape(16 * plan.length if gpu else 16, 48, 5, 16, 64, 10.0),
            Shape(20, 64, 5, 32, 128, 20.0) if gpu else Shape(2, 64, 5, 32, 128, 20.0),
            Shape(1, 1_040, 5, 16, 512, 10.0) if gpu else Shape(1, 256, 5, 16, 128, 10.0),
        ],
        "crop": [
            Shape(16, 32, 3, 16, 64, 10.0),
            Shape(16, 32, 64, 4, 8, 4.0),
            Shape(1, 1_040, 3, 16, 512, 10.0) if gpu else Shape(1, 256, 3, 16, 128, 10.0),
        ],
    }


def versions(plan: Plan) -> list[tuple[str, Backend | None]]:
    """None stands for the dense yardstick."""
    ours: Backend = "triton" if plan.device == "cuda" else "local"
    return [("matrix products", "matmul"), ("ours", ours), ("dense", None)]


def rows(plan: Plan) -> list[KernelRow]:
    """Microseconds of crop and paste, by version."""
    made = []
    for kernel, several in shapes(plan).items():
        for shape in several:
            clean_up(plan.where)
            values, where = material(plan, kernel, shape)
            truth: tuple[Tensor, Tensor] | None = None
            for name, backend in versions(plan):
                work = worker(kernel, shape, backend)
                result = outcome(work, values, where)
                truth = truth or result
                off, gradient_off = (difference(*pair) for pair in zip(result, truth, strict=True))
                forward, both = times(plan, work, values, where)
                size = (shape.clips, shape.objects, shape.channels, shape.glimpse, by((shape.side, shape.side)))
                made.append(KernelRow(kernel, *size, name, 1e6 * forward, 1e6 * both, off, gradient_off))
    return made


def material(plan: Plan, kernel: str, shape: Shape) -> tuple[Tensor, Tensor]:
    """Random glimpses or images, and boxes all over the frame."""
    torch.manual_seed(plan.seed)
    boxes = torch.rand(shape.clips, shape.objects, 4)
    where = torch.cat([boxes[..., :2] * shape.side, shape.box * (0.8 + 0.4 * boxes[..., 2:])], -1)
    if kernel == "paste":
        values = torch.rand(shape.clips, shape.objects, shape.channels, shape.glimpse, shape.glimpse)
    else:
        values = torch.rand(shape.clips, shape.channels, shape.side, shape.side)
    return values.to(plan.where), where.to(plan.where)


def worker(kernel: str, shape: Shape, backend: Backend | None) -> Work:
    frame = (shape.side, shape.side)

    def pasted(values: Tensor, where: Tensor) -> Tensor:
        if backend is None:
            return reference.paste(values, where, frame).sum(1)
        with forced(backend):
            return paste(values, where, frame)

    def cropped(values: Tensor, where: Tensor) -> Tensor:
        if backend is None:
            return reference.crop(values, where, shape.glimpse)
        with forced(backend):
            return crop(values, where, shape.glimpse)

    return pasted if kernel == "paste" else cropped


def outcome(work: Work, values: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    """The result, and a gradient of both inputs."""
    values, where = values.clone().requires_grad_(), where.clone().requires_grad_()
    result = work(values, where)
    gradients = torch.autograd.grad(result.square().sum(), (values, where))
    return result.detach(), torch.cat([gradient.flatten() for gradient in gradients])


def difference(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max())


def times(plan: Plan, work: Work, values: Tensor, where: Tensor) -> tuple[float, float]:
    leaves = values.clone().requires_grad_(), where.clone().requires_grad_()
    with torch.no_grad():
        gradient = torch.ones_like(work(values, where))

    def forward() -> None:
        with torch.no_grad():
            work(values, where)

    def both() -> None:
        torch.autograd.grad(work(*leaves), leaves, gradient)

    def timed(one: Callable[[], None]) -> float:
        return device_median(one, plan.where, plan.rounds, plan.calls)

    return timed(forward), timed(both)
