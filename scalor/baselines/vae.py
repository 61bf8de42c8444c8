"""Sequential VAE: one latent per frame with a recurrent prior, and no other recurrent state.

    prior        p(z_t | z_<t): standard normal for the first frame, then a GRU over the latents
    likelihood   p(x_t | z_t), normal pixels of one sigma
    posterior    q(z_t | x_t)

As in the SCALOR paper's comparison (Section 5.2) it resembles the background module, applied to whole frames: a latent
of 64 dimensions, an encoder that pools to a small feature map, and a decoder that upsamples one. No weight depends on
the size of the frame.

Letters: B clips, T frames, H by W pixels.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from scalor.baselines.whole_frames import Inference, WholeFrames, double, halve, normal
from scalor.errors import require
from scalor.nn.distributions import Estimator, Normal
from scalor.settings import Settings, setting


@dataclass(frozen=True)
class VAEConfig(Settings):
    """Settings of a sequential VAE."""

    system: ClassVar[str] = "vae"
    frame: tuple[int, int] = setting((64, 64), "height and width of a training frame, pixels", ge=1)
    channels: tuple[int, ...] = setting(
        (32, 64, 64),
        "channels of the encoder's layers, each of which halves the frame before it is pooled",
        ge=1,
        shortest=1,
    )
    growth: tuple[int, ...] = setting(
        (64, 32, 32, 16),
        "channels of the decoder's layers, each of which doubles the pooled map; then it is resized",
        ge=1,
        shortest=1,
    )
    pooled: int = setting(
        4, "side of the feature map that the encoder pools to and the decoder starts from, pixels", ge=1
    )
    latent_dim: int = setting(64, "length of the latent of a frame", ge=1)
    state_dim: int = setting(128, "length of the state of the prior's GRU", ge=1)
    sigma: float = setting(0.2, "standard deviation of the pixel noise, pixels in [0, 1]", gt=0)

    def check(self) -> None:
        """Check that the layers can halve the frame and grow it back."""
        misfit = self.misfit(self.frame)
        require(misfit is None, "model.frame", self.frame, f"{misfit}")

    def misfit(self, frame: tuple[int, int]) -> str | None:
        """Return why the model cannot see frames of a size, or None if it can."""
        shrunk = 2 ** len(self.channels)
        if any(side % shrunk for side in frame):
            return f"the {len(self.channels)} layers of model.channels halve it, so both must be multiples of {shrunk}"
        return None


class Memory(NamedTuple):
    """State of the prior, carried between frames."""

    hidden: Float[Tensor, "B state"]
    """Hidden state of the GRU."""
    z: Float[Tensor, "B latent"]
    """Latent of the last frame."""


class SequentialVAE(WholeFrames):
    """A VAE per frame whose latents have a recurrent prior."""

    def __init__(self, config: VAEConfig) -> None:
        super().__init__()
        self.config: VAEConfig = config
        self.sigma = config.sigma
        latent, channels, growth = config.latent_dim, config.channels, config.growth
        pooled = config.pooled
        self.encoder = nn.Sequential(*(halve(width, out) for width, out in zip((3, *channels), channels, strict=False)))
        self.posterior = nn.Linear(channels[-1] * pooled**2, 2 * latent)
        self.recurrence = nn.GRUCell(latent, config.state_dim)
        self.transition = nn.Linear(config.state_dim, 2 * latent)
        self.unfold = nn.Sequential(nn.Linear(latent, growth[0] * pooled**2), nn.CELU())
        self.grow = nn.Sequential(
            *(double(width, out) for width, out in zip((growth[0], *growth), growth, strict=False)),
            nn.Conv2d(growth[-1], 3, 3, padding=1),
        )

    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        """Return how many normal and uniform numbers a frame needs: one normal for each number of the latent."""
        return self.config.latent_dim, 0

    def infer(
        self, images: Float[Tensor, "T B 3 H W"], estimator: Estimator, cut_gradients: bool = False
    ) -> Inference[Memory]:
        """Infer the latents of all frames at once; only the prior's GRU runs from frame to frame."""
        steps, clips = images.shape[:2]
        pooled = adaptive_avg_pool2d(self.encoder(images.flatten(0, 1)).float(), self.config.pooled).flatten(1)
        q = normal(self.posterior(pooled).unflatten(0, (steps, clips)))
        z = torch.stack([estimator.at(t).normal(Normal(q.mean[t], q.std[t])) for t in range(steps)])
        carried = z.detach() if cut_gradients else z
        memory = Memory(torch.zeros(clips, self.config.state_dim, device=images.device), carried[0])
        hidden = []
        for t in range(1, steps):
            hidden.append(self.recall(memory))
            memory = Memory(hidden[-1].detach() if cut_gradients else hidden[-1], carried[t])
        prior = Normal.standard(z[:1])
        if hidden:
            later = normal(self.transition(torch.stack(hidden)))
            prior = Normal(torch.cat([prior.mean, later.mean]), torch.cat([prior.std, later.std]))
        kl = estimator.normal_cost(q, prior, z).sum(-1)
        pictures = self.draw(z.flatten(0, 1), (images.shape[-2], images.shape[-1])).unflatten(0, (steps, clips))
        return Inference(pictures, kl, memory)

    def recall(self, memory: Memory) -> Float[Tensor, "B state"]:
        """Return the hidden state of the prior's GRU after the latent of the last frame."""
        hidden: Tensor = self.recurrence(memory.z, memory.hidden)
        return hidden.float()

    def next_frame(
        self, state: Memory, frame: tuple[int, int], estimator: Estimator
    ) -> tuple[Float[Tensor, "B 3 H W"], Memory]:
        """Generate one frame from the prior; return it and the new state."""
        hidden = self.recall(state)
        z = estimator.normal(normal(self.transition(hidden)))
        return self.draw(z, frame), Memory(hidden, z)

    def draw(self, z: Float[Tensor, "B latent"], frame: tuple[int, int]) -> Float[Tensor, "B 3 H W"]:
        """Return the means of the pixels: an upsampled feature map, resized to the frame.

        As in the VRNN, there is no sigmoid (see `VRNN.draw`).
        """
        seed = self.unfold(z).unflatten(1, (-1, self.config.pooled, self.config.pooled))
        grown = self.grow(seed).float()
        return interpolate(grown, size=frame, mode="bilinear", align_corners=False)
