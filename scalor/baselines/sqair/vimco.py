"""The importance-weighted bound, and VIMCO, an estimator of its gradient when some latents are discrete.

k particles are drawn from the posterior q; w = p(x, z) / q(z | x) is the weight of a particle. The bound is
log((w_1 + ... + w_k) / k) (Burda et al. 2016). Continuous latents are reparameterised. A discrete choice has no such
gradient: its log probability is multiplied by a reward, the bound minus an estimate of the bound without this particle.
The estimate comes from the other particles (Mnih and Rezende 2016).

Letters: B clips, k particles.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def importance_weighted_bound(log_weights: Float[Tensor, "B k"]) -> Float[Tensor, " B"]:
    """Return the log of the mean weight.

    Its expectation is at most log p(x), and approaches it as the number of particles grows.
    """
    return log_weights.logsumexp(1) - math.log(log_weights.shape[1])


def vimco_surrogate(log_weights: Float[Tensor, "B k"], log_choices: Float[Tensor, "B k"]) -> Float[Tensor, " B"]:
    """Return an objective whose value is the bound and whose gradient is VIMCO's.

    The gradient is an unbiased estimate of that of the expected bound. `log_choices` is the log probability of all
    discrete choices of a particle under q.
    """
    bound = importance_weighted_bound(log_weights)
    with torch.no_grad():
        reward = bound[:, None] - bound_without(log_weights)
    return bound + (reward * (log_choices - log_choices.detach())).sum(1)


def bound_without(log_weights: Float[Tensor, "B k"]) -> Float[Tensor, "B k"]:
    """Return, for each particle, the bound with its weight replaced by the geometric mean of the other weights."""
    particles = log_weights.shape[1]
    assert particles > 1, "one particle has no others to compare it with"
    itself = torch.eye(particles, dtype=torch.bool, device=log_weights.device)
    everyone = log_weights[:, None].expand(-1, particles, -1)  # [B, k, k]: one row for each particle left out
    stand_in = everyone.masked_fill(itself, 0).sum(2) / (particles - 1)
    replaced = torch.where(itself, stand_in[..., None], everyone)
    return replaced.logsumexp(2) - math.log(particles)
