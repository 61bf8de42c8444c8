"""Shared parts of the baselines without objects: checks of the input, evidence lower bound and layers.

Letters: B clips, T frames, H by W pixels.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.data.clip import Truth
from scalor.data.observation import Observation, check_frames
from scalor.errors import require
from scalor.model.elbo import pixel_log_likelihood
from scalor.nn.distributions import Estimator, Exact, Mode, Noise, Normal, Relaxed, positive
from scalor.nn.interface import Annealed, Bound, Model

StateT = TypeVar("StateT")
"""What a system carries between frames."""


@dataclass(frozen=True)
class Inference(Generic[StateT]):
    """Result of inference on observed frames."""

    pictures: Float[Tensor, "T B 3 H W"]
    """Means of the pixel distributions: the reconstruction."""
    kl: Float[Tensor, "T B"]
    """KL(q || p) of each frame's latent, nats; with `Exact` an estimate from one sample."""
    state: StateT
    """State after the last frame."""


class GeneratedFrames(NamedTuple):
    """A reconstructed or generated video of a system without objects."""

    frames: Float[Tensor, "B T 3 H W"]


class WholeFrames(Model):
    """Base class of the systems that model whole frames, without objects."""

    reported = ("log_likelihood", "kl", "squared_error")
    sigma: float
    """Standard deviation of the pixel noise."""

    @abstractmethod
    def infer(
        self, images: Float[Tensor, "T B 3 H W"], estimator: Estimator, cut_gradients: bool = False
    ) -> Inference[Any]:
        """Infer the latents of the frames; with `cut_gradients` no gradient flows between frames."""

    @abstractmethod
    def next_frame(
        self, state: Any, frame: tuple[int, int], estimator: Estimator
    ) -> tuple[Float[Tensor, "B 3 H W"], Any]:
        """Generate one frame of this height and width from the prior; return it and the new state."""

    @torch.inference_mode()
    def generate(
        self, frames: object, observe: int = 5, horizon: int = 5, *, estimator: Estimator | None = None
    ) -> GeneratedFrames:
        """Infer the latents of `observe` frames, then generate `horizon` frames from the prior.

        Parameters
        ----------
        frames
            [T, 3, H, W] or [B, T, 3, H, W] in [0, 1].
        observe
            Number of observed frames.
        horizon
            Number of generated frames.
        estimator
            `Mode()` for the most likely future; otherwise the future is drawn at random.

        Returns
        -------
        GeneratedFrames
            Observed frames (reconstructed), then generated ones.
        """
        images = self.observed(frames, observe, horizon)
        found = self.infer(images, Mode())
        pictures, state = list(found.pictures), found.state
        for _ in range(horizon):
            picture, state = self.next_frame(state, (images.shape[-2], images.shape[-1]), estimator or Exact())
            pictures.append(picture)
        return GeneratedFrames(torch.stack(pictures, 1).clamp(0, 1))

    def elbo(self, video: Float[Tensor, "B T 3 H W"], estimator: Estimator, cut_gradients: bool = False) -> Bound:
        """Return the evidence lower bound (ELBO); with `cut_gradients` no gradient flows between frames."""
        images = video.transpose(0, 1).contiguous()
        found = self.infer(images, estimator, cut_gradients)
        squared_error = (found.pictures - images).square().sum((0, 2, 3, 4))
        pixels = video[0].numel()
        log_likelihood = pixel_log_likelihood(squared_error, pixels, self.sigma)
        kl = found.kl.sum(0)
        numbers = {"log_likelihood": log_likelihood, "kl": kl, "squared_error": squared_error / pixels}
        return Bound(log_likelihood - kl, numbers)

    def bound(self, video: Observation, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
        """Return the objective of a training step: the evidence lower bound. The ground truth is not used."""
        return self.elbo(video.image, Relaxed(now.temperature, noise), now.cut_gradients)

    @torch.no_grad()
    def log_likelihood(self, frames: object, samples: int = 10) -> Float[Tensor, " B"]:
        """Return the importance-weighted lower bound on log p(video), nats per clip; it rises with `samples`."""
        require(samples >= 1, "samples", samples, "at least 1 is needed")
        video = self.receive(frames, minimum=1)
        weights = torch.stack([self.elbo(video, Exact()).elbo for _ in range(samples)])
        return weights.logsumexp(0) - math.log(samples)

    @torch.inference_mode()
    def reconstruct(self, frames: object) -> GeneratedFrames:
        """Return the reconstructed frames."""
        video = self.receive(frames, minimum=1)
        return self.generate(video, observe=video.shape[1], horizon=0)

    def observed(self, frames: object, observe: int, horizon: int) -> Float[Tensor, "T B 3 H W"]:
        """Check the arguments of `generate` and return the frames to observe."""
        require(observe >= 1, "observe", observe, "at least 1 frame must be seen")
        require(horizon >= 0, "horizon", horizon, "it must be 0 or more")
        return self.receive(frames, minimum=observe)[:, :observe].transpose(0, 1)

    def receive(self, frames: object, minimum: int) -> Float[Tensor, "B T 3 H W"]:
        """Check frames given by the user and return them on the model's device."""
        video = check_frames(frames, (1, 1), minimum)
        misfit = self.config.misfit((video.shape[-2], video.shape[-1]))
        require(misfit is None, "frames' shape", list(video.shape), f"{misfit}")
        return video.to(next(self.parameters()).device)


def halve(channels: int, out: int) -> nn.Sequential:
    """Return a strided convolution that halves height and width."""
    return nn.Sequential(nn.Conv2d(channels, out, 4, 2, 1), nn.CELU())


def double(channels: int, out: int) -> nn.Sequential:
    """Return a sub-pixel convolution that doubles height and width."""
    return nn.Sequential(nn.Conv2d(channels, 4 * out, 3, padding=1), nn.PixelShuffle(2), nn.CELU())


def normal(raw: Float[Tensor, "*shape twice"]) -> Normal:
    """Split a network output into the means and the standard deviations of a normal."""
    mean, std = raw.float().chunk(2, -1)
    return Normal(mean, positive(std))
