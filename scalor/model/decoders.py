"""Glimpse decoder: the colours and the mask of an object from its z_what."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from scalor.model.encoders import PATCH_FEATURES, PATCHES

HIDDEN = 128
"""Length of the hidden layer between z_what and the patches."""
MASK_THRESHOLD = 0.3
"""A pixel of a sprite belongs to its object where the mask is above this value."""
INITIAL_MASK_SHIFT = 1.5
"""Value subtracted from the initial bias of the mask logits. Masks start faint, at a logit of about -1.5.

The sprites of an untrained model match nothing. Where they hide much of the frame, training drives presence to zero
before the sprites have learned to match anything (docs/log.md). No object is born while its mask stays below
`MASK_THRESHOLD`, so training should begin with single frames.
"""


class Sprite(NamedTuple):
    """Colours and mask of each object in glimpse coordinates, in [0, 1]; P is the side in pixels."""

    colour: Float[Tensor, "B N 3 P P"]
    mask: Float[Tensor, "B N 1 P P"]

    @property
    def shows(self) -> Bool[Tensor, "B N 1"]:
        """Return whether the mask has any pixel above `MASK_THRESHOLD`.

        An object with an empty mask changes no pixel, so without this test it could stay alive for ever at no cost.
        """
        return self.mask.amax((-1, -2)) > MASK_THRESHOLD


class GlimpseDecoder(nn.Module):
    """Decoder from z_what to colours and mask, both in [0, 1].

    A glimpse consists of 4 by 4 patches. Each patch is decoded from its own part of a hidden layer, with weights shared
    by all patches. The decoder uses matrix products only, for the same reason as `GlimpseEncoder`.
    """

    def __init__(self, what: int, glimpse: int) -> None:
        super().__init__()
        self.patch = glimpse // PATCHES
        self.all = nn.Sequential(
            nn.Linear(what, HIDDEN), nn.CELU(), nn.Linear(HIDDEN, PATCHES**2 * PATCH_FEATURES), nn.CELU()
        )
        first = nn.Linear(PATCH_FEATURES, 2 * PATCH_FEATURES)
        last = nn.Linear(2 * PATCH_FEATURES, 4 * self.patch**2)
        with torch.no_grad():
            last.bias[3 * self.patch**2 :] -= INITIAL_MASK_SHIFT
        self.each = nn.Sequential(first, nn.CELU(), last)

    def forward(self, what: Float[Tensor, "B N what"]) -> Sprite:
        patches = self.each(self.all(what).unflatten(-1, (PATCHES, PATCHES, PATCH_FEATURES)))
        split = torch.sigmoid(patches.float()).unflatten(-1, (4, self.patch, self.patch))  # [B, N, 4, 4, 4, p, p]
        drawn = split.permute(0, 1, 4, 2, 5, 3, 6).flatten(-2).flatten(-3, -2)  # [B, N, 4, P, P]
        return Sprite(drawn[:, :, :3], drawn[:, :, 3:])
