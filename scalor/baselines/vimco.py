"""The importance-weighted bound, and VIMCO: its gradient when some of the latents are discrete.

k particles are drawn from the posterior q; w = p(x, z) / q(z | x) is a particle's weight. The bound is
log (w_1 + ... + w_k) / k (Burda et al. 2016). Continuous latents are reparameterised and need nothing special. A
discrete choice has no gradient of its own: it gets the bound as a reward, less what the bound would have been
without this particle, which the other particles tell (Mnih and Rezende 2016).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def importance_weighted_bound(log_weights: Float[Tensor, "B k"]) -> Float[Tensor, " B"]:
    """log of the mean weight: never above log p(x) in expectation, and nearer to it the more particles there are."""
    return log_weights.logsumexp(1) - math.log(log_weights.shape[1])


def vimco_surrogate(log_weights: Float[Tensor, "B k"], log_choices: Float[Tensor, "B k"]) -> Float[Tensor, " B"]:
    """The bound, to be maximised: its value as it is, its gradient VIMCO's, an unbiased one of the expected bound.

    `log_choices` is the log probability of all discrete choices of a particle under q.
    """
    bound = importance_weighted_bound(log_weights)
    with torch.no_grad():
        reward = bound[:, None] - bound_without(log_weights)
    return bound + (reward * (log_choices - log_choices.detach())).sum(1)


def bound_without(log_weights: Float[Tensor, "B k"]) -> Float[Tensor, "B k"]:
    """The bound with each particle's weight replaced by the geometric mean of the others' weights."""
    particles = log_weights.shape[1]
    assert particles > 1, "one particle has no others to compare it with"
    itself = torch.eye(particles, dtype=torch.bool, device=log_weights.device)
    everyone = log_weights[:, None].expand(-1, particles, -1)  # [B, k, k]: one row for each particle left out
    stand_in = everyone.masked_fill(itself, 0).sum(2) / (particles - 1)
    replaced = torch.where(itself, stand_in[..., None], everyone)
    return replaced.logsumexp(2) - math.log(particles)
