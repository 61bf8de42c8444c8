"""Background: one latent z_bg per frame with a temporal prior, and the background picture (paper: Algorithm 3).

The encoder takes the frame and 1 - M, where M is the foreground mask. The decoder enlarges a small map into a smooth
picture of any size. Its capacity is kept low, so that it cannot explain the objects.

With `config.background_thumbnail` the latent is also read from a thumbnail of what the objects leave free, and drawn as
one, both by single linear layers. Colours are learned this way; through the decoder alone they were not (docs/log.md).

The prior p(z_bg_t | z_bg_<t) depends on earlier backgrounds only. In the paper it is also conditioned on the objects.

Letters: B clips, T frames, H by W pixels.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from scalor.config import ModelConfig
from scalor.model.image_encoder import shrinking_stack
from scalor.nn.distributions import Estimator, Normal, positive

START = 4
"""Height and width of the map that the encoder pools to and that the decoder starts from, positions."""
HIDDEN = 64
"""Length of the hidden state of the prior's RNN."""
TONE_SCALE = 4.0
"""Factor of the thumbnail's deviations from grey, which are small."""
LEAST_OPEN = 0.01
"""Smallest share of a thumbnail's pixel that its colour is divided by."""


class BackgroundMemory(NamedTuple):
    """State of the prior's RNN between frames."""

    hidden: Float[Tensor, "B hidden"]
    z_bg: Float[Tensor, "B bg"]
    """Latent of the last frame, not yet fed to the RNN."""
    fresh: bool
    """True before the first frame."""


class Background(nn.Module):
    """Posterior, temporal prior and decoder of z_bg."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        latent = config.background_dim
        self.latent = latent
        self.encoder = shrinking_stack(4, (16, 32), config.cell)
        self.posterior = nn.Linear(32 * START**2, 2 * latent)
        self.cell = nn.GRUCell(latent, HIDDEN)
        self.transition = nn.Linear(HIDDEN, 2 * latent)
        self.side = config.background_map
        if self.side == START:
            channels, self.unfold = 32, nn.Sequential(nn.Linear(latent, 32 * START**2), nn.CELU())
        else:
            # A large map of its own for every direction of the hidden layer: scenes that return are learned by heart.
            channels = 16
            self.unfold = nn.Sequential(
                nn.Linear(latent, HIDDEN), nn.CELU(), nn.Linear(HIDDEN, channels * self.side**2), nn.CELU()
            )
        self.thumbnail = config.background_thumbnail
        if self.thumbnail:
            self.read_tones = nn.Linear(3 * self.thumbnail**2, 2 * latent, bias=False)
            self.tones = nn.Linear(latent, 3 * self.thumbnail**2)
        self.grow = nn.Sequential(
            nn.Conv2d(channels, 4 * 16, 3, padding=1),
            nn.PixelShuffle(2),
            nn.CELU(),
            nn.Conv2d(16, 4 * 16, 3, padding=1),
            nn.PixelShuffle(2),
            nn.CELU(),
            nn.Conv2d(16, 3, 3, padding=1),
        )

    def empty(self, clips: int, like: Tensor) -> BackgroundMemory:
        """Return the state before the first frame, on the device of `like`."""

        def zeros(width: int) -> Tensor:
            return torch.zeros(clips, width, device=like.device, dtype=torch.float32)

        return BackgroundMemory(zeros(HIDDEN), zeros(self.latent), fresh=True)

    def recall(self, memory: BackgroundMemory) -> Float[Tensor, "B hidden"]:
        """Return the hidden state of the prior's RNN after the last frame's z_bg."""
        hidden: Tensor = self.cell(memory.z_bg, memory.hidden).float()
        return hidden

    def expect(self, hidden: Float[Tensor, "*shape hidden"]) -> Normal:
        """Return the prior p(z_bg_t | z_bg_<t). Its mean is absolute, not a change to the last latent."""
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
    ) -> tuple[Float[Tensor, "TB 3 H W"], Float[Tensor, "T B"], BackgroundMemory]:
        """Infer z_bg in all frames, draw the background pictures and compute the KL divergence from the prior.

        All frames are processed together, except for the prior's RNN. The prior of the very first frame is a standard
        normal.

        Parameters
        ----------
        images
            The frames, in [0, 1].
        foreground
            The foreground mask M of each frame.
        noise
            Standard normal noise for sampling z_bg; zero for the posterior mean.
        memory
            State of the prior before the first of these frames.
        estimator
            Decides whether the KL divergence is in closed form or estimated from the sample.
        cut_gradients
            Stop gradients from each frame's prior to the latents of earlier frames.

        Returns
        -------
        tuple[Tensor, Tensor, BackgroundMemory]
            The background pictures of all frames, frame after frame; KL(q || p) of z_bg in each frame, nats; the state
            of the prior after the last frame.
        """
        seen = self.encoder(torch.cat([images, 1 - foreground], 2).flatten(0, 1))
        pooled = adaptive_avg_pool2d(seen, START).flatten(1).unflatten(0, images.shape[:2])
        read = self.posterior(pooled)
        if self.thumbnail:
            thumbnails = self.shrunk(images.flatten(0, 1), foreground.flatten(0, 1))
            read = read + self.read_tones(thumbnails.view(*read.shape[:2], -1))
        mean, raw = read.float().chunk(2, -1)
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
        return self.draw(z_bg.flatten(0, 1), images.shape[-2:]), kl, memory

    def sample(
        self, memory: BackgroundMemory, frame: tuple[int, int], estimator: Estimator
    ) -> tuple[Float[Tensor, "B 3 H W"], BackgroundMemory]:
        """Sample z_bg of the next frame from the prior. Return the background picture and the new state."""
        hidden = memory.hidden if memory.fresh else self.recall(memory)
        z_bg = estimator.normal(Normal.standard(memory.z_bg) if memory.fresh else self.expect(hidden))
        return self.draw(z_bg, frame), BackgroundMemory(hidden, z_bg, fresh=False)

    def draw(self, z_bg: Float[Tensor, "B bg"], frame: tuple[int, int] | torch.Size) -> Tensor:
        """Decode z_bg into background pictures [B, 3, H, W] in [0, 1]."""
        seed = self.unfold(z_bg).unflatten(-1, (-1, self.side, self.side))
        logits = self.grow(seed).float()
        if self.thumbnail:
            tones = self.tones(z_bg).float().unflatten(-1, (3, self.thumbnail, self.thumbnail))
            logits = logits + interpolate(tones, logits.shape[-2:], mode="bicubic", align_corners=False)
        small = torch.sigmoid(logits)
        return interpolate(small, size=(frame[0], frame[1]), mode="bilinear", align_corners=False)

    def shrunk(self, images: Float[Tensor, "B 3 H W"], foreground: Float[Tensor, "B 1 H W"]) -> Tensor:
        """Return a thumbnail of each frame without its objects, as scaled deviations from grey [B, 3, side, side]."""
        uncovered = 1 - foreground
        total = adaptive_avg_pool2d((images - 0.5) * uncovered, self.thumbnail)
        return TONE_SCALE * total / adaptive_avg_pool2d(uncovered, self.thumbnail).clamp(min=LEAST_OPEN)
