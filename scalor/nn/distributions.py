"""The random variables of the model and the three ways to draw and to charge for them.

Networks give a `Normal` or presence logits and never draw themselves. The caller hands the time step an
`Estimator`: `Relaxed` for training, `Mode` for tracking, `Exact` for importance weights and generation.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

PRESENCE_LIMIT = 8.8
"""Presence logits are squashed to this size: a probability stays 1.5e-4 away from 0 and from 1."""
REJECTED_PRESENCE = 1e-8
"""Prior presence of a cell whose proposal was rejected: it should have stayed silent."""


@dataclass(frozen=True)
class Normal:
    """Independent normals, one per element."""

    mean: Tensor
    std: Tensor

    @staticmethod
    def standard(like: Tensor) -> "Normal":
        return Normal(torch.zeros_like(like), torch.ones_like(like))

    def log_prob(self, value: Tensor) -> Tensor:
        return -0.5 * (((value - self.mean) / self.std) ** 2 + math.log(2 * math.pi)) - self.std.log()

    def sample(self) -> Tensor:
        return self.mean + self.std * torch.randn_like(self.mean)


def positive(raw: Tensor) -> Tensor:
    """A standard deviation from a network's output: about 0.3 at zero, never quite zero."""
    return softplus(raw - 1.0) + 1e-3


def kl_normal(q: Normal, p: Normal) -> Tensor:
    """KL(q || p), element by element."""
    ratio = (q.std / p.std) ** 2
    return 0.5 * (((q.mean - p.mean) / p.std) ** 2 + ratio - 1 - ratio.log())


def kl_bernoulli(q_logits: Tensor, p_logits: Tensor) -> Tensor:
    """KL(q || p) of two Bernoullis given by logits, element by element."""
    q = q_logits.sigmoid()
    return q * (q_logits - p_logits) + logsigmoid(-q_logits) - logsigmoid(-p_logits)


def log_prob_bernoulli(logits: Tensor, value: Tensor) -> Tensor:
    """Log probability of a value of exactly 0 or 1."""
    return value * logits - softplus(logits)


def log_odds(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)


def logit(probability: float | Tensor, like: Tensor) -> Tensor:
    """The logit of a probability, shaped like `like`; a number never travels from the host."""
    if isinstance(probability, Tensor):
        return torch.logit(probability.to(like.dtype)).expand_as(like)
    return torch.full_like(like, log_odds(probability))


class Estimator(Protocol):
    """How latents are drawn, and what a draw costs against its prior."""

    def at(self, frame: int) -> "Estimator":
        """The estimator for the draws of one frame."""
        ...

    def normal(self, q: Normal) -> Tensor: ...

    def presence(self, logits: Tensor) -> Tensor: ...

    def normal_cost(self, q: Normal, p: Normal, value: Tensor) -> Tensor: ...

    def presence_cost(self, q_logits: Tensor, p_logits: Tensor, value: Tensor) -> Tensor: ...

    def rejection_cost(self, q_logits: Tensor, p_logits: Tensor) -> Tensor:
        """What a rejected proposal costs beyond its presence cost."""
        ...

    def charged(self, proposed: Tensor, accepted: Tensor) -> Tensor:
        """The presence by which a proposal pays for its other latents: before or after rejection."""
        ...


class Analytic:
    """Costs as closed-form KL divergences."""

    def normal_cost(self, q: Normal, p: Normal, value: Tensor) -> Tensor:
        return kl_normal(q, p)

    def presence_cost(self, q_logits: Tensor, p_logits: Tensor, value: Tensor) -> Tensor:
        return kl_bernoulli(q_logits, p_logits)

    def rejection_cost(self, q_logits: Tensor, p_logits: Tensor) -> Tensor:
        silent = logit(REJECTED_PRESENCE, q_logits)
        return kl_bernoulli(q_logits, silent) - kl_bernoulli(q_logits, p_logits)

    def charged(self, proposed: Tensor, accepted: Tensor) -> Tensor:
        return accepted


class Noise:
    """Random numbers drawn beforehand, dealt out in order: a step is then a function of its inputs alone.

    Captured, compiled or plain, it computes the same, and trainings side by side share no random state.
    """

    def __init__(self, normals: Float[Tensor, "T B n"], uniforms: Float[Tensor, "T B u"]) -> None:
        self.normals, self.uniforms = normals, uniforms

    def at(self, frame: int) -> "FrameNoise":
        return FrameNoise(self.normals[frame], self.uniforms[frame])


class FrameNoise:
    """One frame's share of the noise."""

    def __init__(self, normals: Float[Tensor, "B n"], uniforms: Float[Tensor, "B u"]) -> None:
        self.normals, self.uniforms = normals, uniforms

    def normal(self, like: Tensor) -> Tensor:
        taken, self.normals = deal(self.normals, like)
        return taken

    def uniform(self, like: Tensor) -> Tensor:
        taken, self.uniforms = deal(self.uniforms, like)
        return taken


def deal(numbers: Float[Tensor, "B n"], like: Tensor) -> tuple[Tensor, Tensor]:
    """The first numbers of each clip in the shape of `like`, and those that are left."""
    count = like[0].numel()
    assert numbers.shape[1] >= count, "more noise is asked for than was drawn"
    return numbers[:, :count].unflatten(1, like.shape[1:]), numbers[:, count:]


@dataclass(frozen=True)
class Relaxed(Analytic):
    """Training: reparameterised normals and Gumbel-relaxed presence, so that gradients reach everything."""

    temperature: float | Tensor
    noise: Noise | FrameNoise | None = None
    """None: drawn when it is needed."""

    def at(self, frame: int) -> "Relaxed":
        return Relaxed(self.temperature, self.noise.at(frame) if isinstance(self.noise, Noise) else None)

    def normal(self, q: Normal) -> Tensor:
        if isinstance(self.noise, FrameNoise):
            return q.mean + q.std * self.noise.normal(q.mean)
        return q.sample()

    def presence(self, logits: Tensor) -> Tensor:
        uniform = self.noise.uniform(logits) if isinstance(self.noise, FrameNoise) else torch.rand_like(logits)
        return ((logits + torch.logit(uniform.clamp(1e-6, 1 - 1e-6))) / self.temperature).sigmoid()


@dataclass(frozen=True)
class Mode(Analytic):
    """Tracking: the most likely values; presence as its probability, so that thresholds mean something."""

    def at(self, frame: int) -> "Mode":
        return self

    def normal(self, q: Normal) -> Tensor:
        return q.mean

    def presence(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()


@dataclass(frozen=True)
class Exact:
    """Discrete presence and single-sample log ratios: unbiased importance weights and honest generation.

    Rejection is a deterministic part of the model and of the posterior alike, so it cancels.
    """

    def at(self, frame: int) -> "Exact":
        return self

    def normal(self, q: Normal) -> Tensor:
        return q.sample()

    def presence(self, logits: Tensor) -> Tensor:
        return (torch.rand_like(logits) < logits.sigmoid()).to(logits.dtype)

    def normal_cost(self, q: Normal, p: Normal, value: Tensor) -> Tensor:
        return q.log_prob(value) - p.log_prob(value)

    def presence_cost(self, q_logits: Tensor, p_logits: Tensor, value: Tensor) -> Tensor:
        return log_prob_bernoulli(q_logits, value) - log_prob_bernoulli(p_logits, value)

    def rejection_cost(self, q_logits: Tensor, p_logits: Tensor) -> Tensor:
        return torch.zeros_like(q_logits)

    def charged(self, proposed: Tensor, accepted: Tensor) -> Tensor:
        return proposed
