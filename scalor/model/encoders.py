"""Networks that look: the image encoder with its ConvLSTM, and the glimpse encoder.

Their depth follows from the sizes in a loop. Nothing here depends on the frame's size, only on the cell's
and the glimpse's, and nothing sees an absolute position: a moved scene gives moved features. There is no
normalisation: it was tried, and gave nothing but slower steps (docs/log.md).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn


def prime_factors(number: int) -> list[int]:
    factors, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors


def shrink(channels: int, out: int, factor: tuple[int, int]) -> nn.Sequential:
    """A convolution that divides height and width exactly by `factor`, with overlapping windows."""
    padding = [max(1, f // 2) for f in factor]
    kernel = [f + 2 * p for f, p in zip(factor, padding, strict=True)]
    conv = nn.Conv2d(channels, out, (kernel[0], kernel[1]), factor, (padding[0], padding[1]))
    return nn.Sequential(conv, nn.CELU())


def shrinking_stack(channels: int, widths: tuple[int, ...], cell: tuple[int, int]) -> nn.Sequential:
    """As many `shrink` layers as it takes to turn a cell into one position; the last width repeats."""
    rows, columns = prime_factors(cell[0]), prime_factors(cell[1])
    depth = max(len(rows), len(columns))
    rows, columns = rows + [1] * (depth - len(rows)), columns + [1] * (depth - len(columns))
    layers = []
    for i, factor in enumerate(zip(rows, columns, strict=True)):
        out = widths[min(i, len(widths) - 1)]
        layers.append(shrink(channels, out, factor))
        channels = out
    return nn.Sequential(*layers, nn.Conv2d(channels, widths[-1], 3, padding=1), nn.CELU())


class Memory(NamedTuple):
    """Hidden and cell state of the ConvLSTM."""

    hidden: Float[Tensor, "B F Gh Gw"]
    cell: Float[Tensor, "B F Gh Gw"]


class ImageEncoder(nn.Module):
    """One feature vector per grid cell, from this frame and the frames before (paper: ConvLSTM)."""

    def __init__(self, cell: tuple[int, int], features: int) -> None:
        super().__init__()
        self.features = features
        self.look = shrinking_stack(3, (features // 2, features), cell)
        self.gates = nn.Conv2d(2 * features, 4 * features, 3, padding=1)

    def empty(self, clips: int, grid: tuple[int, int], like: Tensor) -> Memory:
        zeros = torch.zeros(clips, self.features, *grid, device=like.device, dtype=torch.float32)
        return Memory(zeros, zeros)

    def forward(self, seen: Float[Tensor, "B F Gh Gw"], memory: Memory) -> Memory:
        """One step in time; `seen` is `look(frame)`, which may run for all frames at once."""
        gates = self.gates(torch.cat([seen, memory.hidden.to(seen.dtype)], 1)).float()
        keep, write, show, value = gates.chunk(4, 1)
        cell = (keep + 1).sigmoid() * memory.cell + write.sigmoid() * value.tanh()
        return Memory(show.sigmoid() * cell.tanh(), cell)


class GlimpseEncoder(nn.Module):
    """A glimpse as a code vector."""

    def __init__(self, glimpse: int, code: int) -> None:
        super().__init__()
        side, channels, width = glimpse, 3, 16
        layers: list[nn.Module] = []
        while side % 2 == 0 and side > 4:
            layers += [nn.Conv2d(channels, width, 4, 2, 1), nn.CELU()]
            side, channels, width = side // 2, width, min(2 * width, 64)
        self.net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * side * side, code), nn.CELU())

    def forward(self, glimpses: Float[Tensor, "B N 3 P P"]) -> Float[Tensor, "B N code"]:
        codes: Tensor = self.net(glimpses.flatten(0, 1))
        return codes.view(*glimpses.shape[:2], -1)
