"""Boxes to crop and paste."""

import torch
from torch import Tensor


def all_kinds(clips: int, count: int, frame: tuple[int, int], seed: int) -> Tensor:
    """Inside, over the border, off the screen, tiny, and larger than the frame."""
    random = torch.Generator().manual_seed(seed)
    extent = torch.tensor([frame[1], frame[0]], dtype=torch.float64)
    centre = (2 * torch.rand(clips, count, 2, generator=random, dtype=torch.float64) - 0.5) * extent
    size = 0.5 + 2.5 * torch.rand(clips, count, 2, generator=random, dtype=torch.float64) ** 2 * extent
    return torch.cat([centre, size], -1)


def sized(clips: int, count: int, frame: tuple[int, int], sizes: tuple[float, float], seed: int) -> Tensor:
    """Of a size between these two, with centres in and around the frame."""
    random = torch.Generator().manual_seed(seed)
    extent = torch.tensor([frame[1], frame[0]], dtype=torch.float64)
    centre = (1.2 * torch.rand(clips, count, 2, generator=random, dtype=torch.float64) - 0.1) * extent
    size = sizes[0] + (sizes[1] - sizes[0]) * torch.rand(clips, count, 2, generator=random, dtype=torch.float64)
    return torch.cat([centre, size], -1)
