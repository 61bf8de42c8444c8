"""Networks that look: the image encoder with its ConvLSTM, and the glimpse encoder.

Their depth follows from the sizes in a loop. Nothing here depends on the frame's size, only on the cell's
and the glimpse's, and nothing sees an absolute position: a moved scene gives moved features. There is no
normalisation: it was tried, and gave nothing but slower steps (docs/log.md).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import celu

PATCHES = 4
"""A glimpse is so many patches wide and high."""
PATCH_FEATURES = 64


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

    def __init__(self, channels: int, cell: tuple[int, int], features: int, memory: bool = True) -> None:
        super().__init__()
        self.features = features if memory else 0
        self.look = shrinking_stack(channels, (features // 2, features), cell)
        self.frames_alone = None if memory else nn.Sequential(Surroundings(features), Surroundings(features))
        if not memory:
            return
        self.enter = nn.Conv2d(features, 4 * features, 3, padding=1)
        self.step = MemoryCell(features)

    def empty(self, clips: int, grid: tuple[int, int], like: Tensor) -> Memory:
        zeros = torch.zeros(clips, self.features, *grid, device=like.device, dtype=torch.float32)
        return Memory(zeros, zeros)  # of no channels where nothing is remembered

    def forward(
        self, frames: Float[Tensor, "T B C H W"], memory: Memory, cut_gradients: bool = False
    ) -> tuple[Float[Tensor, "T B F Gh Gw"], Memory]:
        """The features of T frames and what is remembered after them.

        All frames are looked at together; only the memory goes from frame to frame.
        """
        if self.frames_alone is not None:
            features = self.frames_alone(self.look(frames.flatten(0, 1))).float()
            return features.unflatten(0, frames.shape[:2]), memory
        entered = self.enter(self.look(frames.flatten(0, 1))).unflatten(0, frames.shape[:2])
        shown = []
        for one in entered:
            memory = self.step(one, memory)
            shown.append(memory.hidden)
            if cut_gradients:
                memory = Memory(memory.hidden.detach(), memory.cell.detach())
        return torch.stack(shown), memory


class Surroundings(nn.Module):
    """Adds to each cell's features what the cells up to three away from it show."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.near = nn.Conv2d(features, features, 3, padding=1)
        self.far = nn.Conv2d(features, features, 3, padding=2, dilation=2)

    def forward(self, features: Float[Tensor, "B F Gh Gw"]) -> Float[Tensor, "B F Gh Gw"]:
        return features + celu(self.far(celu(self.near(features))))


class MemoryCell(nn.Module):
    """One step of the ConvLSTM."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.remember = nn.Conv2d(features, 4 * features, 3, padding=1, bias=False)

    def forward(self, entered: Float[Tensor, "B gates Gh Gw"], memory: Memory) -> Memory:
        keep, write, show, value = (entered + self.remember(memory.hidden)).float().chunk(4, 1)
        cell = (keep + 1).sigmoid() * memory.cell + write.sigmoid() * value.tanh()
        return Memory(show.sigmoid() * cell.tanh(), cell)


class GlimpseEncoder(nn.Module):
    """A glimpse as a code vector: 4 by 4 patches looked at alike, then all of them together.

    Matrix products alone: convolutions of a few pixels would cost more in starting than in computing.
    """

    def __init__(self, channels: int, glimpse: int, code: int) -> None:
        super().__init__()
        self.patch = glimpse // PATCHES
        self.each = nn.Sequential(nn.Linear(channels * self.patch**2, PATCH_FEATURES), nn.CELU())
        self.all = nn.Sequential(
            nn.Linear(PATCHES**2 * PATCH_FEATURES, 2 * code), nn.CELU(), nn.Linear(2 * code, code), nn.CELU()
        )

    def forward(self, glimpses: Float[Tensor, "B N C P P"]) -> Float[Tensor, "B N code"]:
        split = glimpses.unflatten(-1, (PATCHES, self.patch)).unflatten(-3, (PATCHES, self.patch))
        patches = split.permute(0, 1, 3, 5, 2, 4, 6).flatten(-3)  # [B, N, 4, 4, C * patch * patch]
        code: Tensor = self.all(self.each(patches).flatten(2))
        return code
