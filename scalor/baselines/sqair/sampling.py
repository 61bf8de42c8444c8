"""How latents are drawn: from noise drawn beforehand, or at their most likely values; and the stopping process."""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.nn.distributions import FrameNoise, Noise, Normal, log_prob_bernoulli


class Sampler(Protocol):
    """A way to draw latents from their distributions."""

    def normal(self, q: Normal) -> Tensor:
        """Return a value of the distribution."""
        ...

    def choose(self, logits: Tensor) -> Tensor:
        """Return 0 or 1 for each presence logit."""
        ...


class NoiseSampler:
    """Random draws, computed from noise that was drawn beforehand."""

    def __init__(self, noise: FrameNoise) -> None:
        self.noise = noise

    def normal(self, q: Normal) -> Tensor:
        """Return the mean plus noise times the standard deviation."""
        return q.mean + q.std * self.noise.normal(q.mean)

    def choose(self, logits: Tensor) -> Tensor:
        """Return 1 where a uniform number lies below the probability."""
        return (self.noise.uniform(logits) < logits.sigmoid()).float()


class ModeSampler:
    """The most likely values, without randomness."""

    def normal(self, q: Normal) -> Tensor:
        """Return the mean."""
        return q.mean

    def choose(self, logits: Tensor) -> Tensor:
        """Return 1 where the probability is above a half."""
        return (logits > 0).float()


def samplers_of(noise: Noise, frames: int, particles: int) -> list[Sampler]:
    """Return the draws of every frame: each clip's noise, divided among its particles."""
    shares = [noise.at(t) for t in range(frames)]
    return [
        NoiseSampler(
            FrameNoise(
                share.normals.unflatten(1, (particles, -1)).flatten(0, 1),
                share.uniforms.unflatten(1, (particles, -1)).flatten(0, 1),
            )
        )
        for share in shares
    ]


def stopping_log_prob(
    logits: Float[Tensor, "R D 1"], taken: Float[Tensor, "R D 1"], room: Float[Tensor, "R 1"]
) -> Float[Tensor, " R"]:
    """Return the log probability of the choices of a stopping process: at every step one more object, or the end.

    After the end, or when no slot is free, there is no choice, and a step contributes 0.

    Parameters
    ----------
    logits
        Log odds of one more object at each step.
    taken
        1 for each step that discovered an object, else 0.
    room
        Number of free slots.
    """
    going = torch.cat([torch.ones_like(taken[:, :1]), taken[:, :-1]], 1)
    asked = going[..., 0] * has_room(room, taken.shape[1])
    return (asked * log_prob_bernoulli(logits, taken)[..., 0]).sum(1)


def has_room(room: Float[Tensor, "R 1"], steps: int) -> Float[Tensor, "R D"]:
    """Return 1 for every step of discovery for which a slot is free, else 0; `room` is the number of free slots."""
    return (torch.arange(steps, device=room.device) < room).float()
