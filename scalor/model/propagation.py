"""Propagation of all objects to the next frame, in parallel: the transition prior and the posterior.

The prior p(z_t | z_<t) is Section 3.1 of the paper, the posterior Section 3.2 and Algorithm 2. All objects share one
GRU; each slot has its own hidden state. The networks output changes of the latents, so an untrained prior already
predicts that an object goes on as before.

Letters: B clips, K slots, N slots in use (empty ones at the end may be left out).
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.kernels import crop
from scalor.model.geometry import Ruler, at_row, size_within, touches_frame
from scalor.model.glimpses import CODE, Appearance, GlimpseEncoder, Sprite
from scalor.model.latents import Latents, kl_by_latent, pack_normals
from scalor.model.state import ObjectState, SceneState
from scalor.nn.distributions import PRESENCE_LIMIT, Estimator, Normal, positive


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
        self.bias = config.prior_bias
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

    def forward(
        self, memory: Float[Tensor, "B N prior"], last: Float[Tensor, "B N last"]
    ) -> tuple[Float[Tensor, "B N 1"], Normal]:
        """Return the prior: the logits of z_pres, and p(z_where, z_what, z_depth), concatenated.

        `memory` are the hidden states, `last` the latents and presence in the previous frame.
        """
        latents = last.shape[-1] - 1
        presence, change, raw = self.heads(memory).float().split([1, latents, latents], -1)
        return presence + self.bias, Normal(last[..., :latents] + change, positive(raw))


class PropagationPosterior(NamedTuple):
    """The posterior, and the sample from it, of the objects that were alive before a frame."""

    entered: PriorInput
    posterior: Normal
    """q(z_where, z_what, z_depth), concatenated."""
    latent: Float[Tensor, "B K latents"]
    """Latents sampled from `posterior`."""
    logits: Float[Tensor, "B K 1"]
    """Posterior logits of presence."""
    presence: Float[Tensor, "B K 1"]
    """Sampled presence."""

    def kl(
        self, p_presence: Float[Tensor, "B K 1"], p_latents: Normal, estimator: Estimator
    ) -> dict[str, Float[Tensor, " B"]]:
        """Return KL(q || p) of presence and of each latent, with p the transition prior, nats per clip.

        The terms of the latents are weighted by the sampled presence. Those of empty slots are 0.
        """
        alive = self.entered.alive
        presence = estimator.presence_cost(self.logits, p_presence, self.presence) * alive
        latents = estimator.normal_cost(self.posterior, p_latents, self.latent) * (alive * self.presence)
        return kl_by_latent(presence.sum((1, 2)), latents)


class Propagation(nn.Module):
    """Tracker networks of the posterior, and the transition prior."""

    typical: Tensor
    """Typical width and height of an object, pixels."""
    cell: Tensor
    """Width and height of a grid cell, pixels."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.prior = TransitionPrior(config)
        hidden, what = config.tracker_dim, config.what_dim
        attended = config.feature_dim * config.attention_cells**2
        self.attend = nn.Sequential(nn.Linear(attended, hidden), nn.CELU())
        seen = hidden + (CODE if config.search else 0) + (0 if config.attention else 2)
        if config.search:
            self.searcher = GlimpseEncoder(config.seen_channels, config.glimpse, CODE)
        last = config.latents + 1  # and presence
        self.enter = nn.Sequential(nn.Linear(seen + last, hidden), nn.CELU())
        self.tracker = nn.GRUCell(hidden, hidden)
        mix, step = nn.Linear(seen + last + hidden, hidden), nn.Linear(hidden, 2 * 4)
        if config.inertia:
            nn.init.normal_(step.weight, std=0.02)  # an untrained tracker roughly repeats the last move
        self.move = nn.Sequential(mix, nn.CELU(), step)
        self.blend = nn.Linear(CODE + hidden, 2 * what)  # gate, raw std
        # mean and raw std of depth, presence
        self.judge = nn.Sequential(nn.Linear(CODE + hidden + what + 4, hidden), nn.CELU(), nn.Linear(hidden, 3))
        self.register_buffer("typical", torch.tensor(config.object_size[::-1]), persistent=False)
        self.register_buffer("cell", torch.tensor(config.cell[::-1], dtype=torch.float32), persistent=False)

    def forward(
        self,
        state: SceneState,
        features: Float[Tensor, "B F Gh Gw"],
        image: Float[Tensor, "B C H W"],
        appearance: Appearance,
        estimator: Estimator,
        ruler: Ruler | None = None,
    ) -> tuple[ObjectState, Sprite, PropagationPosterior]:
        """Infer all objects of the state in a new frame (the posterior).

        Each tracker looks at the last place of its object; with `config.inertia`, at the place that results if the
        object repeats its last move. Return the objects (`alive` is 0 for those that end in the frame), their sprites,
        and the posterior.
        """
        objects = state.objects
        entered = PriorInput.of(state)
        inertia = self.config.inertia
        expected = self.shift(objects.where, objects.z_where, ruler) if inertia else objects.where
        seen = self.look(expected, features, image)
        known = torch.cat([seen, entered.last], -1)
        entry = self.enter(known).flatten(0, 1)
        tracker = self.tracker(entry, objects.tracker.flatten(0, 1)).float().unflatten(0, seen.shape[:2])

        step, raw = self.move(torch.cat([known, tracker], -1)).float().chunk(2, -1)
        q_where = Normal(objects.z_where + step if inertia else step, positive(raw))
        z_where = estimator.normal(q_where)
        where = self.shift(objects.where, z_where, ruler)

        code = appearance.encoder(crop(image, where, self.config.glimpse))
        fresh = appearance.what_of(code)
        gate, raw = self.blend(torch.cat([code, tracker], -1)).float().chunk(2, -1)
        gate = gate.sigmoid()
        # The gate lets a hidden object keep its last z_what.
        q_what = Normal(gate * fresh.mean + (1 - gate) * objects.z_what, positive(raw))
        z_what = estimator.normal(q_what)

        judged = self.judge(torch.cat([code, tracker, z_what, z_where], -1)).float()
        q_depth = Normal(objects.z_depth + judged[..., :1], positive(judged[..., 1:2]))
        z_depth = estimator.normal(q_depth)
        logits = PRESENCE_LIMIT * torch.tanh(judged[..., 2:] + self.config.posterior_bias)
        latent, presence = Latents(z_where, z_what, z_depth).pack(), estimator.presence(logits)
        sprite = appearance.draw(z_what)
        moved = self.carry(objects, where, latent, presence, sprite, (image.shape[-2], image.shape[-1]))
        posterior = pack_normals(q_where, q_what, q_depth)
        return (
            replace(moved, tracker=tracker),
            sprite,
            PropagationPosterior(entered, posterior, latent, logits, presence),
        )

    def sample(
        self,
        objects: ObjectState,
        p_presence: Float[Tensor, "B K 1"],
        p_latents: Normal,
        frame: tuple[int, int],
        appearance: Appearance,
        estimator: Estimator,
        ruler: Ruler | None = None,
    ) -> tuple[ObjectState, Sprite]:
        """Sample all objects in the next frame from the prior; `frame` is (height, width)."""
        latent, presence = estimator.normal(p_latents), estimator.presence(p_presence)
        latents = Latents.unpack(latent)
        where = self.shift(objects.where, latents.where, ruler)
        sprite = appearance.draw(latents.what)
        return self.carry(objects, where, latent, presence, sprite, frame), sprite

    def look(
        self, where: Float[Tensor, "B K 4"], features: Float[Tensor, "B F Gh Gw"], image: Tensor
    ) -> Float[Tensor, "B K seen"]:
        """Return the input of each tracker: the features around a box, and with `config.search` the pixels around it.

        Without `config.attention` every tracker gets the features of the whole frame and the position of its object.
        """
        cells = self.config.attention_cells
        in_cells = where[..., :2] / self.cell
        if self.config.attention:
            window = torch.cat([in_cells, torch.full_like(in_cells, float(cells))], -1)
            extra = []
        else:
            # The whole feature map, the same for every object, so its position is an extra input.
            rows, columns = features.shape[-2:]
            whole = torch.stack([torch.full_like(in_cells[..., 0], side) for side in (columns, rows)], -1)
            window = torch.cat([whole / 2, whole], -1)
            extra = [2 * in_cells / whole - 1]
        seen = [self.attend(crop(features, window, cells).flatten(2)), *extra]
        if self.config.search:
            around = torch.cat([where[..., :2], where[..., 2:] * self.config.search_scale], -1)
            seen.append(self.searcher(crop(image, around, self.config.glimpse)))
        return torch.cat(seen, -1)

    def shift(
        self, where: Float[Tensor, "B K 4"], z_where: Float[Tensor, "B K 4"], ruler: Ruler | None = None
    ) -> Float[Tensor, "B K 4"]:
        """Return the boxes after the move z_where.

        An object moves by at most its typical size per frame, and its size stays within `config.size_range` of it.
        """
        squashed = torch.tanh(z_where)
        typical = at_row(self.typical, where[..., 1], ruler)
        centre = where[..., :2] + typical * squashed[..., :2]
        return torch.cat([centre, size_within(squashed[..., 2:], typical, self.config.size_range)], -1)

    def carry(
        self,
        objects: ObjectState,
        where: Float[Tensor, "B K 4"],
        latent: Float[Tensor, "B K latents"],
        presence: Float[Tensor, "B K 1"],
        sprite: Sprite,
        frame: tuple[int, int],
    ) -> ObjectState:
        """Return the objects with their new boxes and latents, and end some of them.

        An object ends when its presence is not above `config.death_presence`, when its mask is empty, or when its box
        is outside the frame.
        """
        inside = touches_frame(where, frame)[..., None]
        stays = (presence > self.config.death_presence) & sprite.shows & inside
        return replace(
            objects,
            where=where,
            latent=latent,
            presence=presence,
            alive=objects.alive * stays,
        )
