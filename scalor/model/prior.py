"""How objects move when nobody looks: the transition prior p(z_t | z_<t), one GRU per object.

Means are changes to the last latents, so an untrained prior already says "goes on as before".
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.model.state import SceneState
from scalor.nn.distributions import Estimator, Normal, positive

PRIOR_STAYS = 5.0
"""Logit of an object's chance to stay, before anything is learned."""


class Transition(NamedTuple):
    """The prior over objects' next latents."""

    presence_logits: Float[Tensor, "B K 1"]
    latent: Normal


class Entering(NamedTuple):
    """What the prior is told of the objects that enter a frame."""

    last: Float[Tensor, "B K latents+1"]
    """Latents and presence in the frame before."""
    newborn: Bool[Tensor, "B K"]
    """Slots whose object was born in the frame before: what the slot remembers is another's."""
    alive: Float[Tensor, "B K 1"]

    @staticmethod
    def of(state: SceneState) -> "Entering":
        objects = state.objects
        return Entering(torch.cat([objects.latent, objects.presence], -1), state.discovered, objects.alive)


class TransitionPrior(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.cell = nn.GRUCell(config.latents + 1, config.prior_dim)
        self.heads = nn.Linear(config.prior_dim, 1 + 2 * config.latents)
        nn.init.normal_(self.heads.weight, std=0.02)

    def empty(self, clips: int, slots: int, like: Tensor) -> Float[Tensor, "B K prior"]:
        return torch.zeros(clips, slots, self.cell.hidden_size, device=like.device, dtype=torch.float32)

    def remember(
        self, entered: list[Entering], hidden: Float[Tensor, "B K prior"]
    ) -> tuple[list[Float[Tensor, "B N prior"]], Float[Tensor, "B K prior"]]:
        """What the RNN knows of the objects that enter each of several frames, and all it knows after them.

        Nothing of a frame is needed for its own prior, and no frame waits for its prior: it is asked for all of
        them at once, after they have been seen. Empty slots at the end may be left out of `entered`.
        """
        memories = []
        for frame in entered:
            count = frame.last.shape[1]
            before = hidden[:, :count].masked_fill(frame.newborn[..., None], 0)
            memory = self.cell(frame.last.flatten(0, 1), before.flatten(0, 1)).float().view_as(before)
            memories.append(memory)
            hidden = memory if count == hidden.shape[1] else torch.cat([memory, hidden[:, count:]], 1)
        return memories, hidden

    def forward(self, memory: Float[Tensor, "B N prior"], last: Float[Tensor, "B N last"]) -> Transition:
        latents = last.shape[-1] - 1
        presence, change, raw = self.heads(memory).float().split([1, latents, latents], -1)
        return Transition(presence + PRIOR_STAYS, Normal(last[..., :latents] + change, positive(raw)))


class Sampled(NamedTuple):
    """Latents sampled from a transition."""

    latent: Float[Tensor, "B K latents"]
    presence: Float[Tensor, "B K 1"]


def sample_transition(transition: Transition, estimator: Estimator) -> Sampled:
    return Sampled(estimator.normal(transition.latent), estimator.presence(transition.presence_logits))
