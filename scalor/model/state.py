"""What is remembered between frames: K object slots per clip, and who is who.

An object keeps its slot from birth to death, and ids come from a counter that never goes back. Shapes are
static, so a time step needs no loop over clips or objects and no look at a value on the host.
"""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.model.geometry import corners
from scalor.nn.gradients import even


@dataclass(frozen=True)
class ObjectState:
    """N objects of B clips. Values of an object that is not alive mean nothing and influence nothing."""

    where: Float[Tensor, "B N 4"]
    """x, y, w, h: centre and size, pixels."""
    latent: Float[Tensor, "B N latents"]
    """z_where, z_what and z_depth side by side, so that one operation serves all three."""
    presence: Float[Tensor, "B N 1"]
    tracker: Float[Tensor, "B N tracker"]
    """Hidden state of the posterior's tracker RNN."""
    alive: Float[Tensor, "B N 1"]
    """1 for an object, 0 for an empty slot."""

    @property
    def z_where(self) -> Float[Tensor, "B N 4"]:
        """The latent behind the last move: displacement in x and y, then size."""
        return self.latent[..., :4]

    @property
    def z_what(self) -> Float[Tensor, "B N what"]:
        return self.latent[..., 4:-1]

    @property
    def z_depth(self) -> Float[Tensor, "B N 1"]:
        return self.latent[..., -1:]

    @staticmethod
    def empty(clips: int, slots: int, latents: int, tracker: int, like: Tensor) -> "ObjectState":
        def zeros(width: int) -> Tensor:
            return torch.zeros(clips, slots, width, device=like.device, dtype=torch.float32)

        where = zeros(4) + 1  # a positive size keeps the arithmetic on dead slots finite
        return ObjectState(where, zeros(latents), zeros(1), zeros(tracker), zeros(1))

    def first(self, count: int) -> "ObjectState":
        return ObjectState(*(getattr(self, field.name)[:, :count] for field in fields(self)))

    def padded(self, count: int) -> "ObjectState":
        """With empty slots after the last, `count` in all."""
        clips, slots, latents = self.latent.shape
        if slots == count:
            return self
        empty = ObjectState.empty(clips, count - slots, latents, self.tracker.shape[-1], self.where)
        return self.unpack(torch.cat([self.pack(), empty.pack()], 1))

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
class SceneState:
    """The slots after a frame's births and deaths; its size does not depend on how many frames have passed."""

    objects: ObjectState
    roster: Roster
    discovered: Bool[Tensor, "B K"]
    """Slots filled in the last frame."""
    turned_away: Float[Tensor, " B"]
    """Births of the last frame that found no free slot."""
    fresh: bool = False
    """Whether no frame has been seen yet."""

    def detach(self) -> "SceneState":
        return replace(self, objects=self.objects.detach())

    def evened(self, times: float) -> "SceneState":
        """Itself; see `even` for its gradients. With 0 they are as they are."""
        if times == 0:
            return self
        objects = self.objects
        return replace(
            self, objects=replace(objects, where=even(objects.where, times), latent=even(objects.latent, times))
        )

    def occupied(self) -> "SceneState":
        """Without the empty slots after the last object of any clip. Reads on the host."""
        seats = (self.roster.id >= 0).any(0).nonzero()
        count = int(seats[-1]) + 1 if len(seats) else 1
        return replace(self, objects=self.objects.first(count), discovered=self.discovered[:, :count])


def join(kept: ObjectState, roster: Roster, newborn: ObjectState) -> SceneState:
    """Seat the newborn (those alive among the proposals, best first) on the free slots, in order.

    `roster` knows all slots; `kept` may leave out empty ones at the end.
    """
    slots = kept.padded(roster.id.shape[1])
    occupied = slots.alive[..., 0] > 0.5
    born = newborn.alive[..., 0] > 0.5
    births = born.sum(-1, keepdim=True)
    seat = (~occupied).cumsum(-1) - 1  # a free slot's place in the queue of free slots
    filled = ~occupied & (seat < births)
    place = born.cumsum(-1) - 1  # a newborn's place in the queue for them
    match = born[:, None, :] & (place[:, None, :] == seat[..., None])  # [B, K, D]
    source = match.to(torch.int8).argmax(-1)
    packed = newborn.pack()
    arriving = packed.gather(1, source[..., None].expand(-1, -1, packed.shape[-1]))
    objects = slots.unpack(torch.where(filled[..., None], arriving, slots.pack()))
    ids = torch.where(filled, roster.next_id[:, None] + seat, torch.where(occupied, roster.id, -1))
    seated = filled.sum(-1)
    return SceneState(
        objects,
        Roster(ids, roster.next_id + seated),
        filled,
        (births[:, 0] - seated).to(torch.float32),
    )


SAME_PLACE = 0.5
"""Two boxes with at least this intersection over union are at one place."""
SAME_LOOK = 0.1
"""Two z_what with at most this mean squared difference look alike; strangers differ by 1 to 2 (docs/log.md)."""


def end_duplicates(state: SceneState) -> SceneState:
    """Of two objects at one place that look alike, the younger ends: two trackers have met on one object.

    An object that passes behind another one is safe: its remembered looks differ.
    """
    objects, roster = state.objects, state.roster
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
        state,
        objects=replace(objects, alive=objects.alive * ~doubled[..., None]),
        roster=replace(roster, id=torch.where(doubled, -1, roster.id)),
        discovered=state.discovered & ~doubled,
    )
