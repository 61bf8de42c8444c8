"""Propagation: every object carried to the next frame, all at once (paper: Algorithm 2)."""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.distributions import PRESENCE_LIMIT, Estimator, Normal, positive
from scalor.model.appearance import CODE, Appearance
from scalor.model.decoders import Sprite
from scalor.model.encoders import GlimpseEncoder
from scalor.model.geometry import crop, size_within, touches_frame
from scalor.model.prior import Sampled, Transition, TransitionPrior, sample_transition
from scalor.model.state import ObjectState

SEARCH_SCALE = 2.0
"""The search glimpse spans this many times the object's last box."""
POSTERIOR_STAYS = 2.0
"""The paper's high initial propagation probability, added before the squashing of presence."""


class Propagated(NamedTuple):
    """The objects in the new frame. `objects.alive` is 0 for those that ended in it."""

    objects: ObjectState
    sprite: Sprite
    kl_presence: Float[Tensor, " B"]
    kl_where: Float[Tensor, " B"]
    kl_what: Float[Tensor, " B"]
    kl_depth: Float[Tensor, " B"]


class Propagation(nn.Module):
    typical: Tensor
    cell: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.prior = TransitionPrior(config)
        hidden, what = config.tracker_dim, config.what_dim
        attended = config.feature_dim * config.attention_cells**2
        self.attend = nn.Sequential(nn.Linear(attended, hidden), nn.CELU())
        seen = hidden + (CODE if config.search else 0) + (0 if config.attention else 2)
        if config.search:
            self.searcher = GlimpseEncoder(config.glimpse, CODE)
        latents = 4 + what + 1 + 1
        self.enter = nn.Sequential(nn.Linear(seen + latents, hidden), nn.CELU())
        self.tracker = nn.GRUCell(hidden, hidden)
        self.move = nn.Sequential(nn.Linear(seen + latents + hidden, hidden), nn.CELU(), nn.Linear(hidden, 2 * 4))
        self.blend = nn.Linear(CODE + hidden, 2 * what)  # gate, raw std
        # mean and raw std of depth, presence
        self.judge = nn.Sequential(nn.Linear(CODE + hidden + what + 4, hidden), nn.CELU(), nn.Linear(hidden, 3))
        self.register_buffer("typical", torch.tensor(config.object_size[::-1]), persistent=False)
        self.register_buffer("cell", torch.tensor(config.cell[::-1], dtype=torch.float32), persistent=False)

    def forward(
        self,
        objects: ObjectState,
        features: Float[Tensor, "B F Gh Gw"],
        image: Float[Tensor, "B 3 H W"],
        appearance: Appearance,
        estimator: Estimator,
    ) -> Propagated:
        """The posterior: each tracker looks where its object was and follows it."""
        prior = self.prior(objects)
        seen = self.look(objects.where, features, image)
        last = torch.cat([objects.z_where, objects.z_what, objects.z_depth, objects.presence], -1)
        entered = self.enter(torch.cat([seen, last], -1)).flatten(0, 1)
        tracker = self.tracker(entered, objects.tracker.flatten(0, 1)).float().unflatten(0, seen.shape[:2])

        mean, raw = self.move(torch.cat([seen, last, tracker], -1)).float().chunk(2, -1)
        q_where = Normal(mean, positive(raw))
        z_where = estimator.normal(q_where)
        where = self.shift(objects.where, z_where)

        code = appearance.encoder(crop(image, where, self.config.glimpse))
        fresh = appearance.what_of(code)
        gate, raw = self.blend(torch.cat([code, tracker], -1)).float().chunk(2, -1)
        gate = gate.sigmoid()
        # What cannot be seen now is remembered.
        q_what = Normal(gate * fresh.mean + (1 - gate) * objects.z_what, positive(raw))
        z_what = estimator.normal(q_what)

        judged = self.judge(torch.cat([code, tracker, z_what, z_where], -1)).float()
        q_depth = Normal(objects.z_depth + judged[..., :1], positive(judged[..., 1:2]))
        z_depth = estimator.normal(q_depth)
        logits = PRESENCE_LIMIT * torch.tanh(judged[..., 2:] + POSTERIOR_STAYS)
        presence = estimator.presence(logits)

        sampled = Sampled(z_where, z_what, z_depth, presence)
        sprite = appearance.draw(z_what)
        moved = self.carry(objects, where, sampled, sprite, image.shape[-2:])
        there = objects.alive * presence

        def cost(q: Normal, p: Normal, value: Tensor) -> Tensor:
            return (estimator.normal_cost(q, p, value) * there).sum((1, 2))

        presence_cost = estimator.presence_cost(logits, prior.presence_logits, presence) * objects.alive
        return Propagated(
            objects=replace(moved, tracker=tracker, prior=prior.hidden),
            sprite=sprite,
            kl_presence=presence_cost.sum((1, 2)),
            kl_where=cost(q_where, prior.z_where, z_where),
            kl_what=cost(q_what, prior.z_what, z_what),
            kl_depth=cost(q_depth, prior.z_depth, z_depth),
        )

    def imagine(
        self, objects: ObjectState, frame: tuple[int, int], appearance: Appearance, estimator: Estimator
    ) -> tuple[ObjectState, Sprite]:
        """The prior: each object goes on as its history suggests."""
        transition: Transition = self.prior(objects)
        sampled = sample_transition(transition, estimator)
        where = self.shift(objects.where, sampled.z_where)
        sprite = appearance.draw(sampled.z_what)
        moved = self.carry(objects, where, sampled, sprite, frame)
        return replace(moved, prior=transition.hidden), sprite

    def look(
        self, where: Float[Tensor, "B K 4"], features: Float[Tensor, "B F Gh Gw"], image: Tensor
    ) -> Float[Tensor, "B K seen"]:
        """What a tracker sees: the features (and pixels) around its object's last place."""
        cells = self.config.attention_cells
        in_cells = where[..., :2] / self.cell
        if self.config.attention:
            window = torch.cat([in_cells, torch.full_like(in_cells, float(cells))], -1)
            extra = []
        else:
            # The whole map, the same for every object, which must then be told where it was.
            rows, columns = features.shape[-2:]
            whole = torch.stack([torch.full_like(in_cells[..., 0], side) for side in (columns, rows)], -1)
            window = torch.cat([whole / 2, whole], -1)
            extra = [2 * in_cells / whole - 1]
        seen = [self.attend(crop(features, window, cells).flatten(2)), *extra]
        if self.config.search:
            around = torch.cat([where[..., :2], where[..., 2:] * SEARCH_SCALE], -1)
            seen.append(self.searcher(crop(image, around, self.config.glimpse)))
        return torch.cat(seen, -1)

    def shift(self, where: Float[Tensor, "B K 4"], z_where: Float[Tensor, "B K 4"]) -> Float[Tensor, "B K 4"]:
        """An object moves by at most its typical size a frame, and its size stays in range."""
        squashed = torch.tanh(z_where)
        centre = where[..., :2] + self.typical * squashed[..., :2]
        return torch.cat([centre, size_within(squashed[..., 2:], self.typical, self.config.size_range)], -1)

    def carry(
        self,
        objects: ObjectState,
        where: Float[Tensor, "B K 4"],
        sampled: Sampled,
        sprite: Sprite,
        frame: tuple[int, int] | torch.Size,
    ) -> ObjectState:
        """The objects with their new latents. One ends when its presence falls, when there is nothing of it to
        see any more, or when it has left the view."""
        inside = touches_frame(where, (frame[0], frame[1]))[..., None]
        stays = (sampled.presence > self.config.death_presence) & sprite.shows & inside
        return replace(
            objects,
            where=where,
            z_where=sampled.z_where,
            z_what=sampled.z_what,
            z_depth=sampled.z_depth,
            presence=sampled.presence,
            alive=objects.alive * stays,
        )
