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
from scalor.model.encoders import shrinking_stack
from scalor.nn.distributions import Estimator, Normal, positive

START = 4
"""Side of the map that the encoder pools to and the decoder starts from."""
HIDDEN = 64


class Backdrop(NamedTuple):
    """The background of T frames."""

    picture: Float[Tensor, "T*B 3 H W"]
    kl: Float[Tensor, "T B"]
    memory: "BackgroundMemory"


class BackgroundMemory(NamedTuple):
    """What the prior remembers of the backgrounds so far."""

    hidden: Float[Tensor, "B hidden"]
    z_bg: Float[Tensor, "B bg"]
    fresh: bool
    """Whether no frame has been seen yet."""


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

    def empty(self, clips: int, like: Tensor) -> BackgroundMemory:
        def zeros(width: int) -> Tensor:
            return torch.zeros(clips, width, device=like.device, dtype=torch.float32)

        return BackgroundMemory(zeros(HIDDEN), zeros(self.latent), fresh=True)

    def recall(self, memory: BackgroundMemory) -> Float[Tensor, "B hidden"]:
        """The state of the prior's RNN with the last frame taken in."""
        hidden: Tensor = self.cell(memory.z_bg, memory.hidden).float()
        return hidden

    def expect(self, hidden: Float[Tensor, "*shape hidden"]) -> Normal:
        """The prior after what has been: p(z_bg_t | z_bg_<t)."""
        mean, raw = self.transition(hidden).float().chunk(2, -1)
        return Normal(mean, positive(raw))

    def forward(
        self,
        images: Float[Tensor, "T B 3 H W"],
        foreground: Float[Tensor, "T B 1 H W"],
        noise: Float[Tensor, "T B bg"],
        memory: BackgroundMemory,
        estimator: Estimator,
        cut_gradients: bool = False,
    ) -> Backdrop:
        """The posterior: what is behind the objects, in all frames at once; only the prior's RNN goes by frame."""
        seen = self.encoder(torch.cat([images, 1 - foreground], 2).flatten(0, 1))
        pooled = adaptive_avg_pool2d(seen, START).flatten(1).unflatten(0, images.shape[:2])
        mean, raw = self.posterior(pooled).float().chunk(2, -1)
        q = Normal(mean, positive(raw))
        z_bg = q.mean + q.std * noise
        hiddens, priors = [], [Normal.standard(z_bg[:1])] if memory.fresh else []
        for t in range(len(images)):
            hidden = memory.hidden
            if not memory.fresh:
                hidden = self.recall(memory)
                hiddens.append(hidden)
            memory = BackgroundMemory(hidden, z_bg[t].detach() if cut_gradients else z_bg[t], fresh=False)
        if hiddens:
            priors.append(self.expect(torch.stack(hiddens)))
        prior = Normal(torch.cat([p.mean for p in priors]), torch.cat([p.std for p in priors]))
        kl = estimator.normal_cost(q, prior, z_bg).sum(-1)
        return Backdrop(self.draw(z_bg.flatten(0, 1), images.shape[-2:]), kl, memory)

    def dream(
        self, memory: BackgroundMemory, frame: tuple[int, int], estimator: Estimator
    ) -> tuple[Float[Tensor, "B 3 H W"], BackgroundMemory]:
        """The prior: the background goes on unseen for a frame."""
        hidden = memory.hidden if memory.fresh else self.recall(memory)
        z_bg = estimator.normal(Normal.standard(memory.z_bg) if memory.fresh else self.expect(hidden))
        return self.draw(z_bg, frame), BackgroundMemory(hidden, z_bg, fresh=False)

    def draw(self, z_bg: Float[Tensor, "B bg"], frame: tuple[int, int] | torch.Size) -> Tensor:
        seed = self.unfold(z_bg).view(-1, 32, START, START)
        small = torch.sigmoid(self.grow(seed).float())
        return interpolate(small, size=(frame[0], frame[1]), mode="bilinear", align_corners=False)
