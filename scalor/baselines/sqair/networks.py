"""Networks of SQAIR: boxes and glimpses, propagation with its prior, and discovery."""

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.baselines.sqair.config import SQAIRConfig
from scalor.baselines.sqair.sampling import Sampler, has_room
from scalor.baselines.sqair.state import Candidates, EncodedFrame, SQAIRState
from scalor.kernels import crop
from scalor.nn.distributions import Normal, log_odds, positive
from scalor.nn.gradients import walled


def mlp(*widths: int) -> nn.Sequential:
    """Return linear layers with ELUs between them; the last layer is linear."""
    layers: list[nn.Module] = []
    for i, o in pairwise(widths):
        layers += [nn.Linear(i, o), nn.ELU()]
    return nn.Sequential(*layers[:-1])


def normal(raw: Tensor, around: Tensor, sharp: float = 0.0) -> Normal:
    """Return a normal from a network's output: the mean is `around` plus the output; `sharp` lowers the initial std."""
    mean, spread = raw.float().chunk(2, -1)
    return Normal(around + mean, positive(spread - sharp))


class GlimpseNetworks(nn.Module):
    """Conversions between latents and pixels: z_where to a box, glimpse to encoding, z_what to a drawn glimpse."""

    extent: Tensor
    expected: Tensor

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        self.glimpse, hidden, pixels = config.glimpse, config.hidden_dim, 3 * config.glimpse**2
        self.size_range, self.reach, self.darkness = config.size_range, config.reach, config.darkness
        self.encoder = nn.Sequential(mlp(pixels, hidden, hidden), nn.ELU())
        self.what = nn.Linear(hidden, 2 * config.what_dim)
        self.decoder = mlp(config.what_dim, hidden, hidden, pixels)
        self.register_buffer("extent", torch.tensor(config.frame[::-1]).float(), persistent=False)
        self.register_buffer("expected", torch.tensor(config.object_size[::-1]), persistent=False)

    def box(self, z_where: Float[Tensor, "*shape 4"]) -> Float[Tensor, "*shape 4"]:
        """Return the boxes of z_where, (x, y, w, h) in pixels."""
        centre = self.extent * (0.5 + 0.5 * self.reach * z_where[..., :2].tanh())
        return torch.cat([centre, self.expected * (1 + self.size_range * z_where[..., 2:].tanh())], -1)

    def crop(self, image: Float[Tensor, "B 3 H W"], z_where: Float[Tensor, "R n 4"]) -> Float[Tensor, "R n 3 P P"]:
        """Return the glimpses of the image inside the boxes of z_where."""
        rows, boxes = z_where.shape[:2]
        glimpses = crop(image, self.box(z_where).view(len(image), -1, 4), self.glimpse)
        return glimpses.reshape(rows, boxes, *glimpses.shape[2:])

    def draw(self, z_what: Float[Tensor, "*shape what"]) -> Float[Tensor, "*shape 3 P P"]:
        """Return the glimpses that z_what decodes to, pixels in [0, 1]."""
        pixels = (self.decoder(z_what).float() - self.darkness).sigmoid()
        glimpses: Tensor = pixels.unflatten(-1, (3, self.glimpse, self.glimpse))
        return glimpses


class SequentialPropagation(nn.Module):
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
        self, scene: SQAIRState, view: EncodedFrame, appearance: GlimpseNetworks, sampler: Sampler
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


class SequentialDiscovery(nn.Module):
    """Discovery as in AIR: at each step one more object or the end, then the object's z_where and z_what."""

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        hidden, latents = config.hidden_dim, config.latents
        self.limit = config.discovery_limit
        self.bias = config.discovery_bias
        self.where_shift, self.what_shift = config.discovery_where_shift, config.discovery_what_shift
        self.newcomer_bias = log_odds(config.later_discovery)
        self.explained = nn.Sequential(nn.Linear(latents, hidden), nn.ELU())
        self.enter = nn.Linear(2 * hidden, hidden)
        self.recur = nn.Linear(hidden + latents, hidden, bias=False)
        self.presence = mlp(hidden, hidden, 1)
        self.newcomer = mlp(hidden, hidden, 1)
        self.where = mlp(hidden, hidden, 8)

    def forward(
        self,
        kept: Candidates,
        room: Float[Tensor, "R 1"],
        first: bool,
        steps: int,
        view: EncodedFrame,
        appearance: GlimpseNetworks,
        sampler: Sampler,
    ) -> Candidates:
        """Return the results of `steps` discovery steps; `kept` are the propagated objects, `room` the free slots."""
        explained = (self.explained(kept.latent) * kept.taken).sum(1)
        entered = self.enter(torch.cat([view.code, explained], -1))
        hidden = torch.zeros_like(view.code)
        latent = kept.latent.new_zeros(len(hidden), kept.latent.shape[-1])
        going = torch.ones_like(room)
        free = has_room(room, steps)
        one_more, bias = (self.presence, self.bias) if first else (self.newcomer, self.newcomer_bias)
        made = []
        for step in range(steps):
            hidden = (entered + self.recur(torch.cat([hidden, latent.detach()], -1))).float().tanh()
            logits = walled(one_more(hidden).float() + bias, self.limit)
            going = going * sampler.choose(logits) * free[:, step, None]
            where = normal(self.where(hidden), torch.zeros_like(latent[:, :4]), self.where_shift)
            z_where = sampler.normal(where)
            code = appearance.encoder(appearance.crop(view.image, z_where[:, None]).flatten(1))
            what = normal(appearance.what(code), torch.zeros_like(latent[:, 4:]), self.what_shift)
            latent = torch.cat([z_where, sampler.normal(what)], -1)
            made.append(Candidates(logits, going, joint(where, what), latent))
        return stack_candidates(made)
