"""Transition prior p(z_t | z_<t) of propagated objects (paper: Section 3.1, "Propagation").

All objects share one GRU; each slot has its own hidden state. The network outputs the change of each latent, so an
untrained prior already predicts that an object goes on as before.

Letters: B clips, K slots, N slots in use (empty ones at the end may be left out).
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.model.state import SceneState
from scalor.nn.distributions import Estimator, Normal, positive

PRIOR_STAYS = 5.0
"""Value added to the presence logit of the prior, so that an untrained prior gives objects a high chance to stay."""


class Transition(NamedTuple):
    """The prior of the presence and the latents of objects in the next frame."""

    presence_logits: Float[Tensor, "B K 1"]
    latent: Normal


class PriorInput(NamedTuple):
    """The input of the prior: the objects that were alive before a frame."""

    last: Float[Tensor, "B K latents+1"]
    """Latents and presence in the previous frame."""
    newborn: Bool[Tensor, "B K"]
    """True for slots whose object was born in the previous frame. Their hidden state is that of an earlier object."""
    alive: Float[Tensor, "B K 1"]
    """1 where the slot held an object before the frame, 0 where it was empty."""

    @staticmethod
    def of(state: SceneState) -> "PriorInput":
        """Return the input of the prior from the state after the previous frame."""
        objects = state.objects
        return PriorInput(torch.cat([objects.latent, objects.presence], -1), state.discovered, objects.alive)


class TransitionPrior(nn.Module):
    """GRU over the latents of each object, with output heads for its next presence and latents."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.cell = nn.GRUCell(config.latents + 1, config.prior_dim)
        self.heads = nn.Linear(config.prior_dim, 1 + 2 * config.latents)
        nn.init.normal_(self.heads.weight, std=0.02)

    def empty(self, clips: int, slots: int, like: Tensor) -> Float[Tensor, "B K prior"]:
        """Return the hidden states before the first frame, on the device of `like`."""
        return torch.zeros(clips, slots, self.cell.hidden_size, device=like.device, dtype=torch.float32)

    def remember(
        self, entered: list[PriorInput], hidden: Float[Tensor, "B K prior"]
    ) -> tuple[list[Float[Tensor, "B N prior"]], Float[Tensor, "B K prior"]]:
        """Run the GRU over several frames.

        The prior of a frame depends on earlier frames only, and the posterior does not use it. So the priors of all
        frames are computed together, after the posterior has processed the frames.

        Parameters
        ----------
        entered
            The objects that were alive before each frame. Empty slots at the end may be left out.
        hidden
            Hidden states of all slots before the first of these frames.

        Returns
        -------
        tuple[list[Tensor], Tensor]
            The hidden states for the prior of each frame (pass them to `forward`), and those of all slots after the
            last frame.
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
        """Return the prior from the hidden states and the last latents and presence."""
        latents = last.shape[-1] - 1
        presence, change, raw = self.heads(memory).float().split([1, latents, latents], -1)
        return Transition(presence + PRIOR_STAYS, Normal(last[..., :latents] + change, positive(raw)))


class Sampled(NamedTuple):
    """Latents sampled from a transition."""

    latent: Float[Tensor, "B K latents"]
    presence: Float[Tensor, "B K 1"]


def sample_transition(transition: Transition, estimator: Estimator) -> Sampled:
    """Draw presence and latents from the prior with the given estimator."""
    return Sampled(estimator.normal(transition.latent), estimator.presence(transition.presence_logits))
