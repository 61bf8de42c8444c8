"""The background: a latent z_bg per frame with a temporal prior, and its picture.

The encoder sees the frame and what the objects leave uncovered; the decoder grows a small map into a smooth
picture of any size. It is kept weaker than the objects, so that it cannot explain them away.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from scalor.config import ModelConfig
from scalor.distributions import Estimator, Normal, positive
from scalor.model.encoders import shrinking_stack

START = 4
"""Side of the map that the encoder pools to and the decoder starts from."""
HIDDEN = 64


class Backdrop(NamedTuple):
    """The background of one frame."""

    picture: Float[Tensor, "B 3 H W"]
    z_bg: Float[Tensor, "B bg"]
    kl: Float[Tensor, " B"]


class Recollection(NamedTuple):
    """What the past says of this frame's background."""

    prior: Normal
    hidden: Float[Tensor, "B hidden"]

    def memory(self, z_bg: Float[Tensor, "B bg"]) -> Float[Tensor, "B memory"]:
        """What to remember once this frame's latent is known."""
        return torch.cat([self.hidden, z_bg], -1)


class Background(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        latent = config.background_dim
        self.latent = latent
        self.encoder = shrinking_stack(4, (16, 32), config.cell)
        self.posterior = nn.Linear(32 * START**2, 2 * latent)
        self.cell = nn.GRUCell(latent, HIDDEN)
        self.transition = nn.Linear(HIDDEN, 2 * latent)
        self.unfold = nn.Sequential(nn.Linear(latent, 32 * START**2), nn.CELU())
        self.grow = nn.Sequential(
            nn.Conv2d(32, 4 * 16, 3, padding=1),
            nn.PixelShuffle(2),
            nn.CELU(),
            nn.Conv2d(16, 4 * 16, 3, padding=1),
            nn.PixelShuffle(2),
            nn.CELU(),
            nn.Conv2d(16, 3, 3, padding=1),
        )

    def empty(self, clips: int, like: Tensor) -> Float[Tensor, "B memory"]:
        return torch.zeros(clips, HIDDEN + self.latent, device=like.device, dtype=torch.float32)

    def recall(self, memory: Float[Tensor, "B memory"], first: bool) -> Recollection:
        """The prior: standard normal in the first frame, then what the past suggests.

        The last frame's latent is taken in now and not then, so that this frame's gradients reach the RNN.
        """
        hidden, z_bg = memory.split([HIDDEN, self.latent], -1)
        if first:
            return Recollection(Normal.standard(z_bg), hidden)
        hidden = self.cell(z_bg, hidden).float()
        mean, raw = self.transition(hidden).float().chunk(2, -1)
        return Recollection(Normal(mean, positive(raw)), hidden)

    def forward(
        self,
        image: Float[Tensor, "B 3 H W"],
        foreground: Float[Tensor, "B 1 H W"],
        prior: Normal,
        estimator: Estimator,
    ) -> Backdrop:
        """The posterior: what is behind the objects."""
        seen = self.encoder(torch.cat([image, 1 - foreground], 1))
        pooled = adaptive_avg_pool2d(seen, START).flatten(1)
        mean, raw = self.posterior(pooled).float().chunk(2, -1)
        q = Normal(mean, positive(raw))
        z_bg = estimator.normal(q)
        kl = estimator.normal_cost(q, prior, z_bg).sum(-1)
        return Backdrop(self.draw(z_bg, image.shape[-2:]), z_bg, kl)

    def draw(self, z_bg: Float[Tensor, "B bg"], frame: tuple[int, int] | torch.Size) -> Tensor:
        seed = self.unfold(z_bg).view(-1, 32, START, START)
        small = torch.sigmoid(self.grow(seed).float())
        return interpolate(small, size=(frame[0], frame[1]), mode="bilinear", align_corners=False)
