"""Networks that draw: an object's colours and mask from z_what, by sub-pixel convolution."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

MASK_ON = 0.3
"""A pixel of a sprite belongs to its object when the mask is above this."""


class Sprite(NamedTuple):
    """How objects look, each in its own glimpse frame."""

    colour: Float[Tensor, "B N 3 P P"]
    mask: Float[Tensor, "B N 1 P P"]

    @property
    def shows(self) -> Bool[Tensor, "B N 1"]:
        """Whether there is anything to see: an object without a pixel could linger for ever at no cost."""
        return self.mask.amax((-1, -2)) > MASK_ON


class GlimpseDecoder(nn.Module):
    """z_what -> colour and mask, both in [0, 1]."""

    def __init__(self, what: int, glimpse: int) -> None:
        super().__init__()
        self.start = glimpse // 4
        self.width = 32
        self.unfold = nn.Sequential(nn.Linear(what, self.width * self.start**2), nn.CELU())
        self.draw = nn.Sequential(
            nn.Conv2d(self.width, 4 * 16, 3, padding=1),
            nn.PixelShuffle(2),
            nn.CELU(),
            nn.Conv2d(16, 4 * 4, 3, padding=1),
            nn.PixelShuffle(2),
        )

    def forward(self, what: Float[Tensor, "B N what"]) -> Sprite:
        b, n, _ = what.shape
        seed = self.unfold(what).view(b * n, self.width, self.start, self.start)
        drawn = torch.sigmoid(self.draw(seed).float()).unflatten(0, (b, n))
        return Sprite(drawn[:, :, :3], drawn[:, :, 3:])
