"""Image encoder with a ConvLSTM (paper: Algorithms 1 and 2, feature encoding).

The number of convolutional layers is computed from the size of a cell. No weight depends on the size of the frame, only
on the size of a cell. The encoder gets no absolute position: if the scene moves by whole cells, its features move by
the same number of cells. There are no normalisation layers: they made steps slower and did not improve
results (docs/log.md).

Letters: B clips, T frames, F feature channels, Gh by Gw cells.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import celu


def prime_factors(number: int) -> list[int]:
    """Return the prime factors in ascending order."""
    factors, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors


def shrink(channels: int, out: int, factor: tuple[int, int]) -> nn.Sequential:
    """Return a convolution that divides height and width exactly by `factor`, with overlapping windows."""
    padding = [max(1, f // 2) for f in factor]
    kernel = [f + 2 * p for f, p in zip(factor, padding, strict=True)]
    conv = nn.Conv2d(channels, out, (kernel[0], kernel[1]), factor, (padding[0], padding[1]))
    return nn.Sequential(conv, nn.CELU())


def shrinking_stack(channels: int, widths: tuple[int, ...], cell: tuple[int, int]) -> nn.Sequential:
    """Return the `shrink` layers that reduce a cell to one position, and one convolution at that resolution.

    `widths` are the output channels of the layers; the last one is repeated as often as needed.
    """
    rows, columns = prime_factors(cell[0]), prime_factors(cell[1])
    depth = max(len(rows), len(columns))
    rows, columns = rows + [1] * (depth - len(rows)), columns + [1] * (depth - len(columns))
    layers = []
    for i, factor in enumerate(zip(rows, columns, strict=True)):
        out = widths[min(i, len(widths) - 1)]
        layers.append(shrink(channels, out, factor))
        channels = out
    return nn.Sequential(*layers, nn.Conv2d(channels, widths[-1], 3, padding=1), nn.CELU())


class EncoderMemory(NamedTuple):
    """Hidden and cell state of the ConvLSTM. Without a ConvLSTM both have no channels."""

    hidden: Float[Tensor, "B F Gh Gw"]
    cell: Float[Tensor, "B F Gh Gw"]


class ImageEncoder(nn.Module):
    """Encoder of a frame into one feature vector per grid cell.

    With `memory` the features depend on this frame and the frames before (paper: ConvLSTM). Without it each frame is
    encoded on its own.
    """

    def __init__(self, channels: int, cell: tuple[int, int], features: int, memory: bool = True) -> None:
        super().__init__()
        self.features = features if memory else 0
        self.look = shrinking_stack(channels, (features // 2, features), cell)
        self.frames_alone = None if memory else nn.Sequential(Surroundings(features), Surroundings(features))
        if not memory:
            return
        self.enter = nn.Conv2d(features, 4 * features, 3, padding=1)
        self.step = MemoryCell(features)

    def empty(self, clips: int, grid: tuple[int, int], like: Tensor) -> EncoderMemory:
        """Return the memory before the first frame, on the device of `like`; `grid` is (Gh, Gw)."""
        zeros = torch.zeros(clips, self.features, *grid, device=like.device, dtype=torch.float32)
        return EncoderMemory(zeros, zeros)  # no channels without a ConvLSTM

    def forward(
        self, frames: Float[Tensor, "T B C H W"], memory: EncoderMemory, cut_gradients: bool = False
    ) -> tuple[Float[Tensor, "T B F Gh Gw"], EncoderMemory]:
        """Return the features of T frames and the memory after the last one.

        The convolutions process all frames together; only the ConvLSTM runs frame by frame. With `cut_gradients` no
        gradient passes from one frame to the frame before.
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
                memory = EncoderMemory(memory.hidden.detach(), memory.cell.detach())
        return torch.stack(shown), memory


class Surroundings(nn.Module):
    """Residual block that adds context from up to three cells away to the features of each cell."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.near = nn.Conv2d(features, features, 3, padding=1)
        self.far = nn.Conv2d(features, features, 3, padding=2, dilation=2)

    def forward(self, features: Float[Tensor, "B F Gh Gw"]) -> Float[Tensor, "B F Gh Gw"]:
        """Return the features with context."""
        return features + celu(self.far(celu(self.near(features))))


class MemoryCell(nn.Module):
    """One step of the ConvLSTM."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.remember = nn.Conv2d(features, 4 * features, 3, padding=1, bias=False)

    def forward(self, entered: Float[Tensor, "B gates Gh Gw"], memory: EncoderMemory) -> EncoderMemory:
        """Return the memory after a frame. `entered` is the contribution of the frame to the four gates."""
        keep, write, show, value = (entered + self.remember(memory.hidden)).float().chunk(4, 1)
        cell = (keep + 1).sigmoid() * memory.cell + write.sigmoid() * value.tanh()
        return EncoderMemory(show.sigmoid() * cell.tanh(), cell)
