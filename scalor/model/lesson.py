"""What a posterior that is shown the truth should have inferred: a lesson beside the evidence lower bound.

On clips whose truth is known, the posterior's presence, place, mask and depth are compared with it (a sleep phase: the
recognition networks learn from scenes whose latents are known). Every slot is bound to the true object that it was born
on, for as long as it lives; what is bound to nothing, or to an object that has left, should end. So identity is part of
the lesson: a slot must stay with its own object when two cross.

Letters: B clips, T frames, K slots, D proposals, G cells, N true objects, P glimpse side.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, smooth_l1_loss, softplus

from scalor.data.clip import Truth
from scalor.model.geometry import Ruler, corners
from scalor.model.world import Seen, World, read_ruler

MARGIN = 1.12
"""Boxes to look through are so many times as large as the object's own, so that its outline can be seen."""
BOUND_AT = 0.3
"""A newborn belongs to the true object with which its box has at least this intersection over union."""
LOST_AT = 1.2
"""A slot farther from its object than so many typical sizes has lost it."""
WANTED, FAINT, GONE = 0.25, 0.05, 0.12
"""Visible shares: above the first an object should be found, below the second it cannot be. A followed one that is less
visible than the third is hidden."""
NEIGHBOUR, FOUND, HIDDEN = 0.15, 2.0, 0.2
"""Weights of cells around a centre, of the cell at it, and of objects that are hidden."""
PLACE, MASK, DEPTH = 3.0, 3.0, 0.3
"""Weights of places, masks and depths beside presence, which has 1."""
SHARP = 0.1
"""Errors of a place below this share of a typical size count by their square."""
OVERLAP = 0.05
"""Objects whose boxes share this much of their union should know which of them is in front."""


@dataclass(frozen=True)
class LessonTerms:
    """Losses per clip and frame, each already weighed."""

    lesson_found: Float[Tensor, " B"]
    """Presence of new objects, in every cell."""
    lesson_found_place: Float[Tensor, " B"]
    lesson_kept: Float[Tensor, " B"]
    """Presence of followed objects."""
    lesson_kept_place: Float[Tensor, " B"]
    lesson_mask: Float[Tensor, " B"]
    lesson_depth: Float[Tensor, " B"]

    @property
    def total(self) -> Float[Tensor, " B"]:
        return torch.stack([getattr(self, field.name) for field in fields(self)]).sum(0)

    def to_dict(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


LESSON_TERMS = tuple(field.name for field in fields(LessonTerms))


class Targets(NamedTuple):
    """The truth of one frame, as slots and cells should know it."""

    box: Float[Tensor, "B N 4"]
    """Corners, pixels, with a margin."""
    visible: Float[Tensor, "B N"]
    there: Bool[Tensor, "B N"]
    order: Int[Tensor, "B N"]
    """0 is in front of all others."""
    owner: Int[Tensor, "B H W"]
    """Index of the object that a pixel shows, -1 for the scene."""


class Binding(NamedTuple):
    """Who follows whom in one frame."""

    target: Int[Tensor, "B K"]
    """The true object of each slot that was alive before the frame, -1 for none."""
    alive: Bool[Tensor, "B K"]
    """Slots that were alive before the frame."""
    taken: Bool[Tensor, "B N"]
    """True objects that a slot was bound to before the frame."""


def teach(world: World, seen: list[Seen], video: Float[Tensor, "B T C H W"], truth: Truth) -> LessonTerms:
    """The losses of all frames of a video, as means over time."""
    with torch.no_grad():
        targets = [at_frame(truth, t) for t in range(len(seen))]
        bindings = bind(world, seen, targets)
    frame = (video.shape[-2], video.shape[-1])
    losses = []
    for t, (one, target, binding) in enumerate(zip(seen, targets, bindings, strict=True)):
        ruler = read_ruler(video[:, t, 6:]) if world.config.still else None
        found, found_place, born = discovery_loss(world, one, frame, ruler, target, binding)
        kept, kept_place = propagation_loss(world, one, target, binding)
        mask, depth = mask_loss(one, target, binding, born), depth_loss(one, target, binding)
        losses.append(torch.stack([found, PLACE * found_place, kept, PLACE * kept_place, MASK * mask, DEPTH * depth]))
    return LessonTerms(*torch.stack(losses).mean(0))


def at_frame(truth: Truth, t: int) -> Targets:
    box = truth.box[:, t]
    middle, half = (box[..., :2] + box[..., 2:]) / 2, (box[..., 2:] - box[..., :2]) * (MARGIN / 2)
    return Targets(
        torch.cat([middle - half, middle + half], -1),
        truth.visible[:, t],
        truth.id[:, t] >= 0,
        truth.order,
        truth.owner[:, t],
    )


def bind(world: World, seen: list[Seen], targets: list[Targets]) -> list[Binding]:
    """Follow each slot from its birth to its end: the true object that it was born on is its own."""
    clips, slots = seen[0].state.roster.id.shape
    device = targets[0].box.device
    count = targets[0].box.shape[1]
    bound = torch.full((clips, slots), -1, device=device)
    alive = torch.zeros(clips, slots, dtype=torch.bool, device=device)
    lost_at = LOST_AT * sum(world.config.object_size) / 2
    bindings = []
    for one, target in zip(seen, targets, strict=True):
        bindings.append(Binding(bound, alive, is_bound(bound, count)))
        state = one.state
        alive, new = state.roster.id >= 0, state.discovered
        where = state.objects.where
        kept = torch.where(alive & ~new, bound, -1)
        middle = (target.box[..., :2] + target.box[..., 2:]) / 2
        away = (where[..., :2] - pick(middle, kept)).norm(dim=-1)
        kept = torch.where(away > lost_at, -1, kept)
        free = target.there & (target.visible > GONE) & ~is_bound(kept, count)
        overlap = ious(corners(where), target.box) * free[:, None] * new[..., None]  # [B, K, N]
        best, whom = overlap.max(-1)
        rival = overlap.amax(1).gather(1, whom)  # of all newborns on that object the one that fits best
        bound = torch.where((best > BOUND_AT) & (best >= rival), whom, kept)
    return bindings


def is_bound(bound: Int[Tensor, "B K"], count: int) -> Bool[Tensor, "B N"]:
    return (bound[..., None] == torch.arange(count, device=bound.device)).any(1)


def pick(values: Tensor, index: Int[Tensor, "B K"]) -> Tensor:
    """Rows of [B, N, ...] by an index in which -1 stands for any."""
    at = index.clamp(min=0)
    if values.ndim == 2:
        return values.gather(1, at)
    return values.gather(1, at[..., None].expand(-1, -1, values.shape[-1]))


def ious(one: Float[Tensor, "B K 4"], other: Float[Tensor, "B N 4"]) -> Float[Tensor, "B K N"]:
    low = torch.maximum(one[:, :, None, :2], other[:, None, :, :2])
    high = torch.minimum(one[:, :, None, 2:], other[:, None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    area = [(box[..., 2:] - box[..., :2]).prod(-1) for box in (one, other)]
    return shared / (area[0][:, :, None] + area[1][:, None] - shared).clamp(min=1e-6)


def discovery_loss(
    world: World, seen: Seen, frame: tuple[int, int], ruler: Ruler | None, target: Targets, binding: Binding
) -> tuple[Tensor, Tensor, Int[Tensor, "B D"]]:
    """Presence in every cell, the places of those that should be found, and the true object of each proposal."""
    height, width = world.config.cell
    rows, columns = (side // step for side, step in zip(frame, (height, width), strict=True))
    cells = rows * columns
    open_ = target.there & ~binding.taken
    wanted, possible = open_ & (target.visible > WANTED), open_ & (target.visible > FAINT)
    middle = (target.box[..., :2] + target.box[..., 2:]) / 2
    column = (middle[..., 0] / width).floor().long().clamp(0, columns - 1)
    row = (middle[..., 1] / height).floor().long().clamp(0, rows - 1)
    cell = row * columns + column  # [B, N]
    logits = seen.proposals.logits
    spare = torch.full_like(cell, cells)  # a cell beyond the last, for what is not to be found
    goal = logits.new_zeros(len(cell), cells + 1).scatter(1, torch.where(wanted, cell, spare), 1.0)
    weight = torch.ones_like(goal)
    for down in (-1, 0, 1):
        for across in (-1, 0, 1):
            near = (row + down).clamp(0, rows - 1) * columns + (column + across).clamp(0, columns - 1)
            weight = weight.scatter(1, torch.where(possible, near, spare), NEIGHBOUR)
    weight = torch.where(goal > 0, FOUND, weight)
    missed = binary_cross_entropy_with_logits(logits, goal[:, :cells], weight[:, :cells], reduction="none").sum(-1)

    z_where = seen.proposals.where_means.gather(1, cell[..., None].expand(-1, -1, 4))
    where = world.discovery.place(z_where, cell, columns, ruler)
    off = place_error(world, corners(where), target.box) * wanted
    with torch.no_grad():
        found = (seen.proposals.cells[..., None] == cell[:, None]) & wanted[:, None]  # [B, D, N]
        born = torch.where(found.any(-1), found.to(torch.int8).argmax(-1), -1)
    return missed, off.sum(-1), born


def place_error(world: World, box: Float[Tensor, "B M 4"], goal: Float[Tensor, "B M 4"]) -> Float[Tensor, "B M"]:
    """Of corners, in typical sizes."""
    size = sum(world.config.object_size) / 2
    return smooth_l1_loss(box / size, goal / size, reduction="none", beta=SHARP).sum(-1)


def propagation_loss(world: World, seen: Seen, target: Targets, binding: Binding) -> tuple[Tensor, Tensor]:
    """Presence and place of the objects that were followed into this frame."""
    if seen.following is None:
        nothing = torch.zeros_like(target.visible[:, 0])
        return nothing, nothing
    logits = seen.following.logits[..., 0]
    count = logits.shape[1]  # empty slots at the end may be left out
    bound, alive = binding.target[:, :count], binding.alive[:, :count]
    there = (bound >= 0) & pick(target.there.float(), bound).bool()
    shows = there & (pick(target.visible, bound) > GONE)
    weight = torch.where(there & ~shows, HIDDEN, 1.0) * alive
    kept = binary_cross_entropy_with_logits(logits, there.float(), weight, reduction="none").sum(-1)
    where = corners(seen.shown.where[:, :count])
    off = place_error(world, where, pick(target.box, bound)) * (weight * there)
    return kept, off.sum(-1)


def mask_loss(seen: Seen, target: Targets, binding: Binding, born: Int[Tensor, "B D"]) -> Float[Tensor, " B"]:
    """Of all that is drawn and known: the mean over those pixels of a glimpse that show the object or the scene. What
    another object covers is not asked about."""
    followed = 0 if seen.following is None else seen.following.logits.shape[1]
    whom = torch.cat([torch.where(binding.alive, binding.target, -1)[:, :followed], born], 1)  # [B, M]
    with torch.no_grad():
        shown = owners(target.owner, seen.shown.where, seen.shown.sprite.mask.shape[-1])  # [B, M, P, P]
        mine = shown == whom[..., None, None]
        asked = (mine | (shown == -1)) & (whom >= 0)[..., None, None]
    mask = seen.shown.sprite.mask[:, :, 0].float().clamp(1e-4, 1 - 1e-4)
    wrong = -torch.where(mine, mask, 1 - mask).log() * asked
    each = wrong.sum((-1, -2)) / asked.sum((-1, -2)).clamp(min=1)
    return each.sum(-1)


def owners(owner: Int[Tensor, "B H W"], where: Float[Tensor, "B M 4"], samples: int) -> Int[Tensor, "B M P P"]:
    """What the pixels nearest to the samples of a glimpse show, -2 outside the frame."""
    height, width = owner.shape[-2:]
    steps = (torch.arange(samples, device=owner.device) + 0.5) / samples - 0.5
    column = (where[..., :1] + where[..., 2:3] * steps).floor().long()  # [B, M, P]
    row = (where[..., 1:2] + where[..., 3:] * steps).floor().long()
    inside = ((column >= 0) & (column < width))[..., None, :] & ((row >= 0) & (row < height))[..., :, None]
    place = row.clamp(0, height - 1)[..., :, None] * width + column.clamp(0, width - 1)[..., None, :]
    shown = owner.flatten(1).gather(1, place.flatten(1)).view(place.shape)
    return torch.where(inside, shown, -2)


def depth_loss(seen: Seen, target: Targets, binding: Binding) -> Float[Tensor, " B"]:
    """Of followed objects that overlap, the one in front should be nearer."""
    if seen.following is None:
        return torch.zeros_like(target.visible[:, 0])
    count = seen.following.logits.shape[1]
    bound = torch.where(binding.alive, binding.target, -1)[:, :count]
    box, order = pick(target.box, bound), pick(target.order, bound)
    known = (bound >= 0) & pick(target.there.float(), bound).bool()
    pairs = known[:, :, None] & known[:, None] & (ious(box, box) > OVERLAP) & (order[:, :, None] < order[:, None])
    depth = seen.shown.z_depth[:, :count, 0]
    return (softplus(depth[:, :, None] - depth[:, None]) * pairs).sum((1, 2))
