"""Random variables of the model, and the three estimators that sample them and compute their KL terms.

Networks return a `Normal` or presence logits and never sample. The caller passes an `Estimator` to the time step:
`Relaxed` for training, `Mode` for tracking, `Exact` for importance weights and generation. The paper (Section 3.2) uses
the reparameterization trick for continuous latents and the Gumbel-softmax trick for presence, as `Relaxed` does.

Letters: B clips, T frames, n normal and u uniform random numbers.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

PRESENCE_LIMIT = 8.8
"""Largest absolute value of presence logits (by tanh). Probabilities stay at least 1.5e-4 away from 0 and 1."""
REJECTED_PRESENCE = 1e-8
"""Prior probability of presence in a cell whose proposal was rejected, so that training discourages such proposals."""


@dataclass(frozen=True)
class Normal:
    """Independent normal distributions, one per element."""

    mean: Tensor
    std: Tensor

    @staticmethod
    def standard(like: Tensor) -> "Normal":
        """Return standard normal distributions in the shape of `like`."""
        return Normal(torch.zeros_like(like), torch.ones_like(like))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log density, element by element, nats."""
        return -0.5 * (((value - self.mean) / self.std) ** 2 + math.log(2 * math.pi)) - self.std.log()

    def sample(self) -> Tensor:
        """Return a reparameterised sample."""
        return self.mean + self.std * torch.randn_like(self.mean)


def positive(raw: Tensor) -> Tensor:
    """Return a standard deviation from a network's output: about 0.3 for an output of 0, and at least 0.001."""
    return softplus(raw - 1.0) + 1e-3


def kl_normal(q: Normal, p: Normal) -> Tensor:
    """Return KL(q || p), element by element, nats."""
    ratio = (q.std / p.std) ** 2
    return 0.5 * (((q.mean - p.mean) / p.std) ** 2 + ratio - 1 - ratio.log())


def kl_bernoulli(q_logits: Tensor, p_logits: Tensor) -> Tensor:
    """Return KL(q || p) of two Bernoulli distributions given by logits, element by element, nats."""
    q = q_logits.sigmoid()
    return q * (q_logits - p_logits) + logsigmoid(-q_logits) - logsigmoid(-p_logits)


def log_prob_bernoulli(logits: Tensor, value: Tensor) -> Tensor:
    """Return the log probability of a value that is exactly 0 or 1."""
    return value * logits - softplus(logits)


def log_odds(probability: float) -> float:
    """Return the logit of a probability."""
    return math.log(probability) - math.log1p(-probability)


def logit(probability: float | Tensor, like: Tensor) -> Tensor:
    """Return the logit of a probability in the shape of `like`, without a copy from the host."""
    if isinstance(probability, Tensor):
        return torch.logit(probability.to(like.dtype)).expand_as(like)
    return torch.full_like(like, log_odds(probability))


class Estimator(Protocol):
    """Interface of estimators: how latents are sampled, and how their KL terms are computed (q posterior, p prior)."""

    def at(self, frame: int) -> "Estimator":
        """Return the estimator for the samples of one frame."""
        ...

    def normal(self, q: Normal) -> Tensor:
        """Return a value of a normal latent."""
        ...

    def presence(self, logits: Tensor) -> Tensor:
        """Return a value of presence, in [0, 1]."""
        ...

    def normal_cost(self, q: Normal, p: Normal, value: Tensor) -> Tensor:
        """Return the KL term of a normal latent, element by element."""
        ...

    def presence_cost(self, q_logits: Tensor, p_logits: Tensor, value: Tensor) -> Tensor:
        """Return the KL term of presence, element by element."""
        ...

    def rejection_cost(self, q_logits: Tensor, p_logits: Tensor) -> Tensor:
        """Return the amount that is added to the presence term of a rejected proposal."""
        ...

    def charged(self, proposed: Tensor, accepted: Tensor) -> Tensor:
        """Return the weight of the KL terms of a proposal's other latents: its presence before or after rejection."""
        ...


class Analytic:
    """KL terms in closed form; base class of `Relaxed` and `Mode`."""

    def normal_cost(self, q: Normal, p: Normal, value: Tensor) -> Tensor:
        """Return KL(q || p) in closed form."""
        return kl_normal(q, p)

    def presence_cost(self, q_logits: Tensor, p_logits: Tensor, value: Tensor) -> Tensor:
        """Return KL(q || p) in closed form."""
        return kl_bernoulli(q_logits, p_logits)

    def rejection_cost(self, q_logits: Tensor, p_logits: Tensor) -> Tensor:
        """Replace the prior of a rejected proposal by `REJECTED_PRESENCE`."""
        silent = logit(REJECTED_PRESENCE, q_logits)
        return kl_bernoulli(q_logits, silent) - kl_bernoulli(q_logits, p_logits)

    def charged(self, proposed: Tensor, accepted: Tensor) -> Tensor:
        """Return the presence after rejection."""
        return accepted


class Noise:
    """Random numbers of a training step, drawn in advance and used in order.

    So the step is a pure function of its inputs: it computes the same whether it is captured, compiled or neither, and
    runs that train side by side share no random state.
    """

    def __init__(self, normals: Float[Tensor, "T B n"], uniforms: Float[Tensor, "T B u"]) -> None:
        self.normals, self.uniforms = normals, uniforms

    def at(self, frame: int) -> "FrameNoise":
        """Return the random numbers of one frame."""
        return FrameNoise(self.normals[frame], self.uniforms[frame])


class FrameNoise:
    """The random numbers of one frame. Each call takes the next unused ones."""

    def __init__(self, normals: Float[Tensor, "B n"], uniforms: Float[Tensor, "B u"]) -> None:
        self.normals, self.uniforms = normals, uniforms

    def normal(self, like: Tensor) -> Tensor:
        """Return standard normal numbers in the shape of `like`."""
        taken, self.normals = deal(self.normals, like)
        return taken

    def uniform(self, like: Tensor) -> Tensor:
        """Return uniform numbers in the shape of `like`."""
        taken, self.uniforms = deal(self.uniforms, like)
        return taken


def deal(numbers: Float[Tensor, "B n"], like: Tensor) -> tuple[Tensor, Tensor]:
    """Split off the first numbers of each clip, in the shape of `like`. Return them and the rest."""
    count = like[0].numel()
    assert numbers.shape[1] >= count, "more noise is asked for than was drawn"
    return numbers[:, :count].unflatten(1, like.shape[1:]), numbers[:, count:]


@dataclass(frozen=True)
class Relaxed(Analytic):
    """Estimator for training: reparameterised normals and Gumbel-relaxed presence, so all samples have gradients."""

    temperature: float | Tensor
    """Temperature of relaxed presence."""
    noise: Noise | FrameNoise | None = None
    """Random numbers drawn in advance. With None they are drawn when needed."""

    def at(self, frame: int) -> "Relaxed":
        """Return the estimator with the random numbers of one frame."""
        return Relaxed(self.temperature, self.noise.at(frame) if isinstance(self.noise, Noise) else None)

    def normal(self, q: Normal) -> Tensor:
        """Return a reparameterised sample."""
        if isinstance(self.noise, FrameNoise):
            return q.mean + q.std * self.noise.normal(q.mean)
        return q.sample()

    def presence(self, logits: Tensor) -> Tensor:
        """Return a Gumbel-relaxed sample, between 0 and 1."""
        uniform = self.noise.uniform(logits) if isinstance(self.noise, FrameNoise) else torch.rand_like(logits)
        return ((logits + torch.logit(uniform.clamp(1e-6, 1 - 1e-6))) / self.temperature).sigmoid()


@dataclass(frozen=True)
class Mode(Analytic):
    """Estimator for tracking: the most likely values. Presence is its probability, so that thresholds apply to it."""

    def at(self, frame: int) -> "Mode":
        """Return this estimator: it draws nothing."""
        return self

    def normal(self, q: Normal) -> Tensor:
        """Return the mean."""
        return q.mean

    def presence(self, logits: Tensor) -> Tensor:
        """Return the probability."""
        return logits.sigmoid()


@dataclass(frozen=True)
class Exact:
    """Estimator for importance weights and generation: presence of 0 or 1, KL terms as log ratios of one sample.

    The importance weights are unbiased. Rejection is a deterministic part of both the model and the posterior, so it
    cancels and has no term.
    """

    def at(self, frame: int) -> "Exact":
        """Return this estimator: its samples are independent."""
        return self

    def normal(self, q: Normal) -> Tensor:
        """Return a sample."""
        return q.sample()

    def presence(self, logits: Tensor) -> Tensor:
        """Return a sample, 0 or 1."""
        return (torch.rand_like(logits) < logits.sigmoid()).to(logits.dtype)

    def normal_cost(self, q: Normal, p: Normal, value: Tensor) -> Tensor:
        """Return log q - log p at the sample."""
        return q.log_prob(value) - p.log_prob(value)

    def presence_cost(self, q_logits: Tensor, p_logits: Tensor, value: Tensor) -> Tensor:
        """Return log q - log p at the sample."""
        return log_prob_bernoulli(q_logits, value) - log_prob_bernoulli(p_logits, value)

    def rejection_cost(self, q_logits: Tensor, p_logits: Tensor) -> Tensor:
        """Return 0: rejection cancels."""
        return torch.zeros_like(q_logits)

    def charged(self, proposed: Tensor, accepted: Tensor) -> Tensor:
        """Return the presence before rejection."""
        return proposed
