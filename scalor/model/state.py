"""What is remembered between frames: K object slots per clip, and who is who.

An object keeps its slot from birth to death, and ids come from a counter that never goes back. Shapes are
static, so a time step needs no loop over clips or objects and no look at a value on the host.
"""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.model.geometry import corners


@dataclass(frozen=True)
class ObjectState:
    """N objects of B clips. Values of an object that is not alive mean nothing and influence nothing."""

    where: Float[Tensor, "B N 4"]
    """x, y, w, h: centre and size, pixels."""
    z_where: Float[Tensor, "B N 4"]
    """The latent behind the last move: displacement in x and y, then size."""
    z_what: Float[Tensor, "B N what"]
    z_depth: Float[Tensor, "B N 1"]
    presence: Float[Tensor, "B N 1"]
    tracker: Float[Tensor, "B N tracker"]
    """Hidden state of the posterior's tracker RNN."""
    prior: Float[Tensor, "B N prior"]
    """Hidden state of the transition prior's RNN, before it takes in this frame's latents."""
    alive: Float[Tensor, "B N 1"]
    """1 for an object, 0 for an empty slot."""

    @staticmethod
    def empty(clips: int, slots: int, what: int, tracker: int, prior: int, like: Tensor) -> "ObjectState":
        def zeros(width: int) -> Tensor:
            return torch.zeros(clips, slots, width, device=like.device, dtype=torch.float32)

        where = zeros(4) + 1  # a positive size keeps the arithmetic on dead slots finite
        return ObjectState(where, zeros(4), zeros(what), zeros(1), zeros(1), zeros(tracker), zeros(prior), zeros(1))

    def pack(self) -> Float[Tensor, "B N F"]:
        """All fields side by side, so that choosing among objects is one operation."""
        return torch.cat([getattr(self, field.name) for field in fields(self)], -1)

    def unpack(self, packed: Float[Tensor, "B M F"]) -> "ObjectState":
        """The inverse of `pack`, with this record's widths."""
        widths = [getattr(self, field.name).shape[-1] for field in fields(self)]
        return ObjectState(*packed.split(widths, -1))

    def detach(self) -> "ObjectState":
        return ObjectState(*(getattr(self, field.name).detach() for field in fields(self)))


@dataclass(frozen=True)
class Roster:
    """Who sits in which slot, and the next free number."""

    id: Int[Tensor, "B K"]
    """-1 for an empty slot."""
    next_id: Int[Tensor, " B"]

    @staticmethod
    def empty(clips: int, slots: int, like: Tensor) -> "Roster":
        return Roster(
            torch.full((clips, slots), -1, device=like.device, dtype=torch.int64),
            torch.zeros(clips, device=like.device, dtype=torch.int64),
        )


@dataclass(frozen=True)
class Joined:
    """The slots after births and deaths."""

    objects: ObjectState
    roster: Roster
    discovered: Bool[Tensor, "B K"]
    """Slots filled in this very frame."""
    turned_away: Float[Tensor, " B"]
    """Births that found no free slot."""


def join(slots: ObjectState, roster: Roster, newborn: ObjectState) -> Joined:
    """Seat the newborn (those alive among the proposals, best first) on the free slots, in order."""
    occupied = slots.alive[..., 0] > 0.5
    born = newborn.alive[..., 0] > 0.5
    births = born.sum(-1, keepdim=True)
    seat = (~occupied).cumsum(-1) - 1  # a free slot's place in the queue of free slots
    filled = ~occupied & (seat < births)
    queue = torch.argsort(born.to(torch.int8), dim=-1, descending=True, stable=True)  # the born first, order kept
    source = queue.gather(-1, seat.clamp(0, born.shape[1] - 1))
    packed = newborn.pack()
    arriving = packed.gather(1, source[..., None].expand(-1, -1, packed.shape[-1]))
    objects = slots.unpack(torch.where(filled[..., None], arriving, slots.pack()))
    ids = torch.where(filled, roster.next_id[:, None] + seat, torch.where(occupied, roster.id, -1))
    seated = filled.sum(-1)
    return Joined(
        objects,
        Roster(ids, roster.next_id + seated),
        filled,
        (births[:, 0] - seated).to(torch.float32),
    )


SAME_PLACE = 0.5
"""Two boxes with at least this intersection over union are at one place."""
SAME_LOOK = 0.2
"""Two z_what with at most this mean squared difference look alike; strangers differ by about 2 where z_what is used."""


def end_duplicates(joined: Joined) -> Joined:
    """Of two objects at one place that look alike, the younger ends: two trackers have met on one object.

    An object that passes behind another one is safe: its remembered looks differ.
    """
    objects, roster = joined.objects, joined.roster
    box = corners(objects.where)  # [B, K, 4]
    low = torch.maximum(box[:, :, None, :2], box[:, None, :, :2])
    high = torch.minimum(box[:, :, None, 2:], box[:, None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)  # [B, K, K]
    area = objects.where[..., 2:].prod(-1)
    same_place = shared >= SAME_PLACE * (area[:, :, None] + area[:, None, :] - shared)
    look = objects.z_what
    length = look.square().sum(-1)
    difference = (length[:, :, None] + length[:, None] - 2 * look @ look.transpose(1, 2)) / look.shape[-1]
    alive = objects.alive[..., 0] > 0.5
    older = roster.id[:, None, :] < roster.id[:, :, None]
    doubled = (same_place & (difference <= SAME_LOOK) & older & alive[:, None, :]).any(-1) & alive  # [B, K]
    return replace(
        joined,
        objects=replace(objects, alive=objects.alive * ~doubled[..., None]),
        roster=replace(roster, id=torch.where(doubled, -1, roster.id)),
        discovered=joined.discovered & ~doubled,
    )
