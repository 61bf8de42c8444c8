"""Propagation of the objects of the last frame, and its prior, the transition."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.baselines.sqair.appearance import Appearance, mlp, normal
from scalor.baselines.sqair.config import SQAIRConfig
from scalor.baselines.sqair.sampling import Sampler
from scalor.baselines.sqair.state import Candidates, EncodedFrame, ObjectState
from scalor.nn.distributions import Normal, positive


class Propagation(nn.Module):
    """Propagation of the last frame's objects, one after the other: presence, then z_where, then z_what."""

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        hidden, latents = config.hidden_dim, config.latents
        self.bias, self.where_shift = config.propagation_bias, config.where_shift
        self.tracker = nn.GRUCell(latents, hidden)
        self.expect = nn.Linear(hidden, 4)
        self.mask = nn.Linear(hidden, config.glimpse**2)
        self.enter = nn.Linear(2 * hidden + latents, hidden)
        self.relate = nn.Linear(hidden + latents, hidden, bias=False)
        self.presence = mlp(hidden, hidden, 1)
        self.where = mlp(hidden, hidden, 8)
        self.what = mlp(2 * hidden, hidden, 4 * config.what_dim)

    def forward(
        self, scene: ObjectState, view: EncodedFrame, appearance: Appearance, sampler: Sampler
    ) -> tuple[Candidates, Tensor]:
        """Return the propagated objects and the new hidden states of the temporal RNN."""
        last, slots = scene.latent, scene.latent.shape[1]
        tracker = each_slot(self.tracker, last, scene.tracker)
        # All objects at once: encode a glimpse at each expected location, through a mask that can hide neighbours.
        mask = self.mask(tracker).sigmoid().view(*tracker.shape[:2], 1, appearance.glimpse, appearance.glimpse)
        glimpses = appearance.crop(view.image, last[..., :4] + self.expect(tracker).float()) * mask
        entered = self.enter(torch.cat([appearance.encoder(glimpses.flatten(2)), tracker, last], -1))
        # One by one: the relation RNN conditions each object on those before it.
        relation = torch.zeros_like(tracker[:, 0])
        neighbour = torch.zeros_like(last[:, 0])
        made = []
        for slot in range(slots):
            there, old = scene.present[:, slot], last[:, slot]
            hidden = (entered[:, slot] + self.relate(torch.cat([relation, neighbour.detach()], -1))).float().tanh()
            logits = self.presence(hidden).float() + self.bias
            stays = there * sampler.choose(logits)
            where = normal(self.where(hidden), old[:, :4], self.where_shift)
            z_where = sampler.normal(where)
            code = appearance.encoder(appearance.crop(view.image, z_where[:, None]).flatten(1))
            what = self.update_what(code, hidden, old[:, 4:])
            latent = torch.cat([z_where, sampler.normal(what)], -1)
            relation = torch.where(there > 0, hidden, relation)
            neighbour = torch.where(stays > 0, latent, neighbour)
            made.append(Candidates(logits, stays, joint(where, what), latent))
        return stack_candidates(made), tracker

    def update_what(
        self, code: Float[Tensor, "R hidden"], hidden: Float[Tensor, "R hidden"], last: Float[Tensor, "R what"]
    ) -> Normal:
        """Return the posterior of z_what: its mean is a gated mix of the last z_what and the current glimpse."""
        keep, write, new, spread = self.what(torch.cat([code, hidden], -1)).float().chunk(4, -1)
        return Normal((keep + 1).sigmoid() * last + write.sigmoid() * new, positive(spread))


class Transition(nn.Module):
    """Prior of propagation: presence and latents of the objects, predicted from the past alone."""

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        hidden = config.hidden_dim
        self.bias, self.where_shift = config.prior_bias, config.where_shift
        self.remember = nn.GRUCell(config.latents, hidden)
        self.presence = mlp(hidden, hidden, 1)
        self.where = mlp(hidden, hidden, 8)
        self.what = mlp(hidden, hidden, 2 * config.what_dim)

    def forward(
        self, memory: Float[Tensor, "R N hidden"], last: Float[Tensor, "R N L"]
    ) -> tuple[Float[Tensor, "R N 1"], Normal]:
        """Return the presence logits and the normal of the latents."""
        where = normal(self.where(memory), last[..., :4], self.where_shift)
        what = normal(self.what(memory), last[..., 4:])
        return self.presence(memory).float() + self.bias, joint(where, what)


def each_slot(
    cell: nn.GRUCell, entering: Float[Tensor, "R N L"], state: Float[Tensor, "R N hidden"]
) -> Float[Tensor, "R N hidden"]:
    """Run one step of an RNN cell on every slot separately; return the new states."""
    after: Tensor = cell(entering.flatten(0, 1), state.flatten(0, 1)).float()
    return after.view(state.shape)


def joint(where: Normal, what: Normal) -> Normal:
    """Return the joint normal of z_where and z_what."""
    return Normal(torch.cat([where.mean, what.mean], -1), torch.cat([where.std, what.std], -1))


def stack_candidates(made: list[Candidates]) -> Candidates:
    """Stack the objects of a loop ([R, ...] each) into one record [R, n, ...]."""
    logits, taken, q, latent = zip(*made, strict=True)
    mean, std = torch.stack([one.mean for one in q], 1), torch.stack([one.std for one in q], 1)
    return Candidates(torch.stack(logits, 1), torch.stack(taken, 1), Normal(mean, std), torch.stack(latent, 1))
