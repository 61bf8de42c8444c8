"""Appearance of objects: the z_what encoder and decoder shared by discovery and propagation (paper: Section 3.2)."""

from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.model.decoders import GlimpseDecoder, Sprite
from scalor.model.encoders import GlimpseEncoder
from scalor.nn.distributions import Normal, positive

CODE = 128
"""Length of the code vector of a glimpse."""


class Appearance(nn.Module):
    """Glimpse encoder, z_what posterior and glimpse decoder."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.encoder = GlimpseEncoder(config.seen_channels, config.glimpse, CODE)
        self.what = nn.Linear(CODE, 2 * config.what_dim)
        self.decoder = GlimpseDecoder(config.what_dim, config.glimpse)

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
