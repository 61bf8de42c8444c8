"""The random variables of the model and the three ways to draw and to charge for them.

Networks give a `Normal` or presence logits and never draw themselves. The caller hands the time step an
`Estimator`: `Relaxed` for training, `Mode` for tracking, `Exact` for importance weights and generation.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
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


def logit(probability: float | Tensor, like: Tensor) -> Tensor:
    """The logit of a probability, shaped like `like`; a number never travels from the host."""
    if isinstance(probability, Tensor):
        return torch.logit(probability.to(like.dtype)).expand_as(like)
    return torch.full_like(like, math.log(probability) - math.log1p(-probability))


class Estimator(Protocol):
    """How latents are drawn, and what a draw costs against its prior."""

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


@dataclass(frozen=True)
class Relaxed(Analytic):
    """Training: reparameterised normals and Gumbel-relaxed presence, so that gradients reach everything."""

    temperature: float | Tensor

    def normal(self, q: Normal) -> Tensor:
        return q.sample()

    def presence(self, logits: Tensor) -> Tensor:
        uniform = torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)
        return ((logits + torch.logit(uniform)) / self.temperature).sigmoid()


@dataclass(frozen=True)
class Mode(Analytic):
    """Tracking: the most likely values; presence as its probability, so that thresholds mean something."""

    def normal(self, q: Normal) -> Tensor:
        return q.mean

    def presence(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()


@dataclass(frozen=True)
class Exact:
    """Discrete presence and single-sample log ratios: unbiased importance weights and honest generation.

    Rejection is a deterministic part of the model and of the posterior alike, so it cancels.
    """

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
