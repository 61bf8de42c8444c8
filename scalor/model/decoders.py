"""Networks that draw: an object's colours and mask from z_what."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from scalor.model.encoders import PATCH_FEATURES, PATCHES

HIDDEN = 128
MASK_ON = 0.3
"""A pixel of a sprite belongs to its object when the mask is above this."""
FAINT = 1.5
"""Masks start faint, at a logit of -1.5. New objects look like nothing yet: where they hide much of the frame, presence
is given up before they look like something (docs/log.md). Before masks show, nothing is born: train on single frames
first."""


class Sprite(NamedTuple):
    """How objects look, each in its own glimpse frame."""

    colour: Float[Tensor, "B N 3 P P"]
    mask: Float[Tensor, "B N 1 P P"]

    @property
    def shows(self) -> Bool[Tensor, "B N 1"]:
        """Whether there is anything to see: an object without a pixel could linger for ever at no cost."""
        return self.mask.amax((-1, -2)) > MASK_ON


class GlimpseDecoder(nn.Module):
    """z_what -> colour and mask, both in [0, 1]: 4 by 4 patches, each drawn alike from its own part of a hidden
    layer. Matrix products alone, as in the encoder."""

    def __init__(self, what: int, glimpse: int) -> None:
        super().__init__()
        self.patch = glimpse // PATCHES
        self.all = nn.Sequential(
            nn.Linear(what, HIDDEN), nn.CELU(), nn.Linear(HIDDEN, PATCHES**2 * PATCH_FEATURES), nn.CELU()
        )
        first = nn.Linear(PATCH_FEATURES, 2 * PATCH_FEATURES)
        last = nn.Linear(2 * PATCH_FEATURES, 4 * self.patch**2)
        with torch.no_grad():
            last.bias[3 * self.patch**2 :] -= FAINT
        self.each = nn.Sequential(first, nn.CELU(), last)

    def forward(self, what: Float[Tensor, "B N what"]) -> Sprite:
        patches = self.each(self.all(what).unflatten(-1, (PATCHES, PATCHES, PATCH_FEATURES)))
        split = torch.sigmoid(patches.float()).unflatten(-1, (4, self.patch, self.patch))  # [B, N, 4, 4, 4, p, p]
        drawn = split.permute(0, 1, 4, 2, 5, 3, 6).flatten(-2).flatten(-3, -2)  # [B, N, 4, P, P]
        return Sprite(drawn[:, :, :3], drawn[:, :, 3:])
