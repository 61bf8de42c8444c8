"""Glimpse encoder, posterior of z_what and glimpse decoder, shared by discovery and propagation (paper: Section 3.2).

Letters: B clips, N objects, C channels, P glimpse side in pixels.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.nn.distributions import Normal, positive

CODE = 128
"""Length of the code vector of a glimpse."""
PATCHES = 4
"""Number of patches along each side of a glimpse."""
PATCH_FEATURES = 64
"""Features per patch of a glimpse."""
HIDDEN = 128
"""Length of the hidden layer between z_what and the patches."""
MASK_THRESHOLD = 0.3
"""A pixel of a sprite belongs to its object where the mask is above this value."""


class Sprite(NamedTuple):
    """Colours and mask, in [0, 1]: of each object in glimpse coordinates, or of the whole foreground in a frame."""

    colour: Float[Tensor, "*shape 3 height width"]
    mask: Float[Tensor, "*shape 1 height width"]

    @property
    def shows(self) -> Bool[Tensor, "*shape 1"]:
        """Return whether the mask has any pixel above `MASK_THRESHOLD`.

        An object with an empty mask changes no pixel, so without this test it could stay alive for ever at no cost.
        """
        return self.mask.amax((-1, -2)) > MASK_THRESHOLD


class Appearance(nn.Module):
    """Glimpse encoder, z_what posterior and glimpse decoder."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.encoder = GlimpseEncoder(config.seen_channels, config.glimpse, CODE)
        self.what = nn.Linear(CODE, 2 * config.what_dim)
        self.decoder = GlimpseDecoder(config.what_dim, config.glimpse)
        self.decoder.start_masks(config.initial_mask)

    def infer(self, glimpses: Float[Tensor, "B N C P P"]) -> Normal:
        """Return q(z_what | glimpse)."""
        return self.what_of(self.encoder(glimpses))

    def what_of(self, code: Float[Tensor, "B N code"]) -> Normal:
        """Return q(z_what | glimpse) from the code of the glimpse."""
        mean, raw = self.what(code).float().chunk(2, -1)
        return Normal(mean, positive(raw))

    def draw(self, z_what: Float[Tensor, "B N what"]) -> Sprite:
        """Decode z_what into the colours and the mask of each object."""
        sprite: Sprite = self.decoder(z_what)
        return sprite


class GlimpseEncoder(nn.Module):
    """Encoder of a glimpse into a code vector.

    One layer with shared weights encodes each of 4 by 4 patches; two more layers combine the patches. All layers are
    matrix products: on so few pixels, launching convolutions would take longer than computing them.
    """

    def __init__(self, channels: int, glimpse: int, code: int) -> None:
        super().__init__()
        self.patch = glimpse // PATCHES
        self.each = nn.Sequential(nn.Linear(channels * self.patch**2, PATCH_FEATURES), nn.CELU())
        self.all = nn.Sequential(
            nn.Linear(PATCHES**2 * PATCH_FEATURES, 2 * code), nn.CELU(), nn.Linear(2 * code, code), nn.CELU()
        )

    def forward(self, glimpses: Float[Tensor, "B N C P P"]) -> Float[Tensor, "B N code"]:
        """Return the code of each glimpse."""
        split = glimpses.unflatten(-1, (PATCHES, self.patch)).unflatten(-3, (PATCHES, self.patch))
        patches = split.permute(0, 1, 3, 5, 2, 4, 6).flatten(-3)  # [B, N, 4, 4, C * patch * patch]
        code: Tensor = self.all(self.each(patches).flatten(2))
        return code


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
        self.each = nn.Sequential(first, nn.CELU(), last)

    @torch.no_grad()
    def start_masks(self, logit: float) -> None:
        """Shift the logits of untrained masks, which lie around 0.

        The sprites of an untrained model match nothing. Where they hide much of the frame, training drives presence to
        zero before the sprites have learned to match anything (docs/log.md). So masks start faint. No object is born
        while its mask stays below `MASK_THRESHOLD`, so training should begin with single frames.
        """
        bias = self.each[-1].bias
        assert isinstance(bias, Tensor)
        bias[3 * self.patch**2 :] += logit

    def forward(self, what: Float[Tensor, "B N what"]) -> Sprite:
        """Return the colours and the mask of each object."""
        patches = self.each(self.all(what).unflatten(-1, (PATCHES, PATCHES, PATCH_FEATURES)))
        split = torch.sigmoid(patches.float()).unflatten(-1, (4, self.patch, self.patch))  # [B, N, 4, 4, 4, p, p]
        drawn = split.permute(0, 1, 4, 2, 5, 3, 6).flatten(-2).flatten(-3, -2)  # [B, N, 4, P, P]
        return Sprite(drawn[:, :, :3], drawn[:, :, 3:])
