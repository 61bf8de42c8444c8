"""How objects move when nobody looks: the transition prior p(z_t | z_<t), one GRU per object.

Means are changes to the last latents, so an untrained prior already says "goes on as before".
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.distributions import Estimator, Normal, positive
from scalor.model.state import ObjectState

PRIOR_STAYS = 5.0
"""Logit of an object's chance to stay, before anything is learned."""


class Transition(NamedTuple):
    """The prior over an object's next latents."""

    presence_logits: Float[Tensor, "B K 1"]
    z_where: Normal
    z_what: Normal
    z_depth: Normal
    hidden: Float[Tensor, "B K prior"]
    """The RNN's state after the last frame's latents."""


class TransitionPrior(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.widths = [4, config.what_dim, 1]
        latents = sum(self.widths)
        self.cell = nn.GRUCell(latents + 1, config.prior_dim)
        self.heads = nn.Linear(config.prior_dim, 1 + 2 * latents)
        nn.init.normal_(self.heads.weight, std=0.02)

    def forward(self, objects: ObjectState) -> Transition:
        """The last frame's latents are taken in now and not then, so that this frame's gradients reach the RNN."""
        seen = torch.cat([objects.z_where, objects.z_what, objects.z_depth, objects.presence], -1)
        hidden = self.cell(seen.flatten(0, 1), objects.prior.flatten(0, 1)).float().view(*seen.shape[:2], -1)
        heads = self.heads(hidden).float()
        latents = sum(self.widths)
        presence, change, raw = heads.split([1, latents, latents], -1)
        last = torch.cat([objects.z_where, objects.z_what, objects.z_depth], -1)
        means, stds = (last + change).split(self.widths, -1), positive(raw).split(self.widths, -1)
        where, what, depth = (Normal(mean, std) for mean, std in zip(means, stds, strict=True))
        return Transition(presence + PRIOR_STAYS, where, what, depth, hidden)


class Sampled(NamedTuple):
    """Latents sampled from a transition."""

    z_where: Float[Tensor, "B K 4"]
    z_what: Float[Tensor, "B K what"]
    z_depth: Float[Tensor, "B K 1"]
    presence: Float[Tensor, "B K 1"]


def sample_transition(transition: Transition, estimator: Estimator) -> Sampled:
    return Sampled(
        estimator.normal(transition.z_where),
        estimator.normal(transition.z_what),
        estimator.normal(transition.z_depth),
        estimator.presence(transition.presence_logits),
    )
