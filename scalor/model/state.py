"""The state between frames: K object slots per clip, and the id of the object in each slot.

An object keeps its slot from birth to death. Ids come from a counter that only increases, so no id is used twice.
Shapes are static: a time step needs no loop over clips or objects and reads no value back to the host.

Letters: B clips, K slots, D proposals, N objects.
"""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.model.geometry import corners
from scalor.model.latents import Latents
from scalor.nn.gradients import even
from scalor.nn.records import map_tensors


@dataclass(frozen=True)
class ObjectState:
    """N objects in each of B clips. Values in empty slots (`alive` is 0) have no meaning and no effect."""

    where: Float[Tensor, "B N 4"]
    """Box as (x, y, w, h): centre and size, pixels."""
    latent: Float[Tensor, "B N latents"]
    """z_where, z_what and z_depth, concatenated (`Latents`)."""
    presence: Float[Tensor, "B N 1"]
    """z_pres: 0 or 1, a relaxed value in between, or a probability, depending on the estimator."""
    tracker: Float[Tensor, "B N tracker"]
    """Hidden state of the posterior's tracker RNN."""
    alive: Float[Tensor, "B N 1"]
    """1 where the slot holds an object, 0 where it is empty."""

    @property
    def z_where(self) -> Float[Tensor, "B N 4"]:
        """The last move, and width and height."""
        return Latents.unpack(self.latent).where

    @property
    def z_what(self) -> Float[Tensor, "B N what"]:
        """Appearance."""
        return Latents.unpack(self.latent).what

    @property
    def z_depth(self) -> Float[Tensor, "B N 1"]:
        """Depth; smaller is nearer to the camera."""
        return Latents.unpack(self.latent).depth

    @staticmethod
    def empty(clips: int, slots: int, latents: int, tracker: int, like: Tensor) -> "ObjectState":
        """Return `slots` empty slots per clip, on the device of `like`."""

        def zeros(width: int) -> Tensor:
            return torch.zeros(clips, slots, width, device=like.device, dtype=torch.float32)

        where = zeros(4) + 1  # a positive size keeps the arithmetic on empty slots finite
        return ObjectState(where, zeros(latents), zeros(1), zeros(tracker), zeros(1))

    def first(self, count: int) -> "ObjectState":
        """Return the first `count` slots."""
        return map_tensors(lambda part: part[:, :count], self)

    def padded(self, count: int) -> "ObjectState":
        """Return this state with empty slots appended, `count` slots in all."""
        clips, slots, latents = self.latent.shape
        if slots == count:
            return self
        empty = ObjectState.empty(clips, count - slots, latents, self.tracker.shape[-1], self.where)
        return self.unpack(torch.cat([self.pack(), empty.pack()], 1))

    def pack(self) -> Float[Tensor, "B N F"]:
        """Concatenate all fields, so that selecting objects is one operation."""
        return torch.cat([getattr(self, field.name) for field in fields(self)], -1)

    def unpack(self, packed: Float[Tensor, "B M F"]) -> "ObjectState":
        """Split a tensor made by `pack` into fields of the same widths as this record's."""
        widths = [getattr(self, field.name).shape[-1] for field in fields(self)]
        return ObjectState(*packed.split(widths, -1))

    def detach(self) -> "ObjectState":
        """Return a copy without gradient history."""
        return map_tensors(torch.detach, self)


@dataclass(frozen=True)
class SceneState:
    """The slots after the births and deaths of a frame. Its size does not grow with the number of frames."""

    objects: ObjectState
    id: Int[Tensor, "B slots"]
    """Id of the object in each slot; -1 for an empty slot. `objects` may leave out empty slots at the end."""
    next_id: Int[Tensor, " B"]
    """Id of the next object that is born in the clip."""
    discovered: Bool[Tensor, "B N"]
    """True for slots whose object was born in the last frame."""
    turned_away: Float[Tensor, " B"]
    """Number of births in the last frame that were dropped because no slot was free."""
    fresh: bool = False
    """True before the first frame."""

    @staticmethod
    def empty(clips: int, slots: int, latents: int, tracker: int, like: Tensor) -> "SceneState":
        """Return the state before the first frame, on the device of `like`."""
        device = like.device
        return SceneState(
            ObjectState.empty(clips, slots, latents, tracker, like),
            torch.full((clips, slots), -1, device=device, dtype=torch.int64),
            torch.zeros(clips, device=device, dtype=torch.int64),
            torch.zeros(clips, slots, device=device, dtype=torch.bool),
            torch.zeros(clips, device=device),
            fresh=True,
        )

    def detach(self) -> "SceneState":
        """Return a copy whose objects have no gradient history."""
        return replace(self, objects=self.objects.detach())

    def evened(self, times: float) -> "SceneState":
        """Return the same values; clip each object's gradient in the backward pass (see `even`); 0 disables this."""
        if times == 0:
            return self
        objects = self.objects
        return replace(
            self, objects=replace(objects, where=even(objects.where, times), latent=even(objects.latent, times))
        )

    def occupied(self) -> "SceneState":
        """Drop the slots after the last one that is occupied in any clip; keep at least one. Reads ids on the host."""
        seats = (self.id >= 0).any(0).nonzero()
        count = int(seats[-1]) + 1 if len(seats) else 1
        return replace(self, objects=self.objects.first(count), discovered=self.discovered[:, :count])


def join(kept: ObjectState, before: SceneState, newborn: ObjectState) -> SceneState:
    """Put newborn objects into the free slots, in order, and give them new ids.

    Parameters
    ----------
    kept
        The propagated objects; `alive` is 0 for those that ended. Empty slots at the end may be missing.
    before
        The state before this frame, which has the ids of all K slots.
    newborn
        The proposals, most present first; `alive` marks the births. Births beyond the free slots are dropped.

    Returns
    -------
    SceneState
        All K slots after the frame. `turned_away` counts the dropped births of each clip.
    """
    slots = kept.padded(before.id.shape[1])
    occupied = slots.alive[..., 0] > 0.5
    born = newborn.alive[..., 0] > 0.5
    births = born.sum(-1, keepdim=True)
    seat = (~occupied).cumsum(-1) - 1  # index of a free slot among the free slots
    filled = ~occupied & (seat < births)
    place = born.cumsum(-1) - 1  # index of a newborn among the newborn
    match = born[:, None, :] & (place[:, None, :] == seat[..., None])  # [B, K, D]
    source = match.to(torch.int8).argmax(-1)
    packed = newborn.pack()
    arriving = packed.gather(1, source[..., None].expand(-1, -1, packed.shape[-1]))
    objects = slots.unpack(torch.where(filled[..., None], arriving, slots.pack()))
    ids = torch.where(filled, before.next_id[:, None] + seat, torch.where(occupied, before.id, -1))
    seated = filled.sum(-1)
    return SceneState(objects, ids, before.next_id + seated, filled, (births[:, 0] - seated).to(torch.float32))


def end_duplicates(state: SceneState, least_iou: float, most_difference: float) -> SceneState:
    """End the younger of two objects that have the same place and the same appearance.

    Their boxes overlap with an IoU of at least `least_iou`, and the mean squared difference of their z_what is at most
    `most_difference`. The z_what of different objects differ by 1 to 2 (docs/log.md).

    Such a pair means that two slots follow one object. The younger object is the one with the higher id. An object
    that passes behind another one does not end, because its remembered z_what differs.
    """
    objects = state.objects
    box = corners(objects.where)  # [B, K, 4]
    low = torch.maximum(box[:, :, None, :2], box[:, None, :, :2])
    high = torch.minimum(box[:, :, None, 2:], box[:, None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)  # [B, K, K]
    area = objects.where[..., 2:].prod(-1)
    same_place = shared >= least_iou * (area[:, :, None] + area[:, None, :] - shared)
    look = objects.z_what
    length = look.square().sum(-1)
    difference = (length[:, :, None] + length[:, None] - 2 * look @ look.transpose(1, 2)) / look.shape[-1]
    alive = objects.alive[..., 0] > 0.5
    older = state.id[:, None, :] < state.id[:, :, None]
    doubled = (same_place & (difference <= most_difference) & older & alive[:, None, :]).any(-1) & alive  # [B, K]
    return replace(
        state,
        objects=replace(objects, alive=objects.alive * ~doubled[..., None]),
        id=torch.where(doubled, -1, state.id),
        discovered=state.discovered & ~doubled,
    )
