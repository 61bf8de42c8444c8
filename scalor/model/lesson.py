"""Supervised losses of the posterior on clips with known truth, in addition to the evidence lower bound.

They compare presence, bounding box, mask and depth of the posterior with the truth. This is a sleep phase: the
inference networks learn from scenes whose latents are known. The paper has no such losses.

Each slot is bound to the true object at its birth. It stays bound to it while it is alive, unless it moves too far away
(`LOST_AT`). A slot that is bound to no object, or to one that has left, should end. So the losses also teach identity:
when two objects cross, each slot must stay with its own object.

Letters: B clips, T frames, K slots, D proposals, G cells, N true objects, M propagated objects and proposals together,
P glimpse side.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, smooth_l1_loss, softplus

from scalor.data.clip import Truth
from scalor.data.observation import Observation
from scalor.model.geometry import Ruler, corners
from scalor.model.time_step import PosteriorStep, World

MARGIN = 1.12
"""Target box of a glimpse, in multiples of the object's bounding box, so that the glimpse shows the outline."""
BOUND_AT = 0.3
"""A newborn object is bound to a true object only where the intersection over union of their boxes is above this."""
LOST_AT = 1.2
"""Largest distance between a slot and its true object, in typical sizes. Beyond it the slot is no longer bound."""
WANTED, FAINT, GONE = 0.25, 0.05, 0.12
"""Thresholds on the visible share of a true object.

An object above `WANTED` should be discovered. An object that is not above `FAINT` cannot be discovered. Between the two
the cells around the object have target 0 with weight `NEIGHBOUR`. A propagated object that is not above `GONE` counts
as hidden.
"""
NEIGHBOUR, FOUND, HIDDEN = 0.15, 2.0, 0.2
"""Weights in the presence losses: cells around an object's centre, the cell at its centre, hidden objects."""
PLACE, MASK, DEPTH = 3.0, 3.0, 0.3
"""Weights of the box, mask and depth losses. The presence losses have weight 1."""
SHARP = 0.1
"""Error of a box corner, in typical sizes, below which the loss is quadratic (smooth L1)."""
OVERLAP = 0.05
"""Intersection over union of two boxes above which the depth loss compares the objects."""


@dataclass(frozen=True)
class LessonTerms:
    """Losses per clip, as means over frames, each multiplied by its weight."""

    lesson_found: Float[Tensor, " B"]
    """Presence of new objects, in all cells."""
    lesson_found_place: Float[Tensor, " B"]
    """Bounding boxes of new objects."""
    lesson_kept: Float[Tensor, " B"]
    """Presence of propagated objects."""
    lesson_kept_place: Float[Tensor, " B"]
    """Bounding boxes of propagated objects."""
    lesson_mask: Float[Tensor, " B"]
    """Masks of propagated and new objects."""
    lesson_depth: Float[Tensor, " B"]
    """Depth order of propagated objects that overlap."""

    @property
    def total(self) -> Float[Tensor, " B"]:
        """Return the sum of all losses."""
        return torch.stack([getattr(self, field.name) for field in fields(self)]).sum(0)

    def to_dict(self) -> dict[str, Tensor]:
        """Return the losses by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


LESSON_TERMS = tuple(field.name for field in fields(LessonTerms))
"""Names of the losses."""


class Targets(NamedTuple):
    """The targets of one frame, from its truth."""

    box: Float[Tensor, "B N 4"]
    """x0, y0, x1, y1 of each true object with a margin, pixels."""
    visible: Float[Tensor, "B N"]
    """Share of the object's full area that is in view and not occluded."""
    there: Bool[Tensor, "B N"]
    """True where the object is in the scene at this frame."""
    order: Int[Tensor, "B N"]
    """Depth order; 0 is in front of all others."""
    owner: Int[Tensor, "B H W"]
    """Index of the object that a pixel shows; -1 for the background."""


class Binding(NamedTuple):
    """The true object of each slot in one frame."""

    target: Int[Tensor, "B K"]
    """Index of the true object of each slot that was alive before the frame; -1 for none."""
    alive: Bool[Tensor, "B K"]
    """True for slots that were alive before the frame."""
    taken: Bool[Tensor, "B N"]
    """True for true objects to which a slot was bound before the frame."""


def teach(world: World, steps: list[PosteriorStep], video: Observation, truth: Truth) -> LessonTerms:
    """Compute the losses of a video from the results of `World.posterior_step`, as means over its frames."""
    with torch.no_grad():
        targets = [at_frame(truth, t) for t in range(len(steps))]
        bindings = bind(world, steps, targets)
    losses = []
    for t, (one, target, binding) in enumerate(zip(steps, targets, bindings, strict=True)):
        ruler = None if video.ruler is None else video.ruler[:, t]
        found, found_place, born = discovery_loss(world, one, video.size, ruler, target, binding)
        kept, kept_place = propagation_loss(world, one, target, binding)
        mask, depth = mask_loss(one, target, binding, born), depth_loss(one, target, binding)
        losses.append(torch.stack([found, PLACE * found_place, kept, PLACE * kept_place, MASK * mask, DEPTH * depth]))
    return LessonTerms(*torch.stack(losses).mean(0))


def at_frame(truth: Truth, t: int) -> Targets:
    """Return the targets of frame `t`."""
    box = truth.box[:, t]
    middle, half = (box[..., :2] + box[..., 2:]) / 2, (box[..., 2:] - box[..., :2]) * (MARGIN / 2)
    return Targets(
        torch.cat([middle - half, middle + half], -1),
        truth.visible[:, t],
        truth.id[:, t] >= 0,
        truth.order,
        truth.owner[:, t],
    )


def bind(world: World, steps: list[PosteriorStep], targets: list[Targets]) -> list[Binding]:
    """Bind slots to true objects, from the birth of each slot to its end.

    The candidates for a newborn object are the true objects that are visible and not yet bound. It is bound to the one
    with the highest intersection over union, unless another newborn object fits that one better.
    """
    clips, slots = steps[0].state.id.shape
    device = targets[0].box.device
    count = targets[0].box.shape[1]
    bound = torch.full((clips, slots), -1, device=device)
    alive = torch.zeros(clips, slots, dtype=torch.bool, device=device)
    lost_at = LOST_AT * sum(world.config.object_size) / 2
    bindings = []
    for one, target in zip(steps, targets, strict=True):
        bindings.append(Binding(bound, alive, is_bound(bound, count)))
        state = one.state
        alive, new = state.id >= 0, state.discovered
        where = state.objects.where
        kept = torch.where(alive & ~new, bound, -1)
        middle = (target.box[..., :2] + target.box[..., 2:]) / 2
        away = (where[..., :2] - pick(middle, kept)).norm(dim=-1)
        kept = torch.where(away > lost_at, -1, kept)
        free = target.there & (target.visible > GONE) & ~is_bound(kept, count)
        overlap = ious(corners(where), target.box) * free[:, None] * new[..., None]  # [B, K, N]
        best, whom = overlap.max(-1)
        rival = overlap.amax(1).gather(1, whom)  # the best overlap of any newborn object with that true object
        bound = torch.where((best > BOUND_AT) & (best >= rival), whom, kept)
    return bindings


def is_bound(bound: Int[Tensor, "B K"], count: int) -> Bool[Tensor, "B N"]:
    """Return True for each of `count` true objects to which a slot is bound."""
    return (bound[..., None] == torch.arange(count, device=bound.device)).any(1)


def pick(values: Tensor, index: Int[Tensor, "B K"]) -> Tensor:
    """Select rows of [B, N, ...] by index. An index of -1 selects row 0; the caller must mask it."""
    at = index.clamp(min=0)
    if values.ndim == 2:
        return values.gather(1, at)
    return values.gather(1, at[..., None].expand(-1, -1, values.shape[-1]))


def ious(one: Float[Tensor, "B K 4"], other: Float[Tensor, "B N 4"]) -> Float[Tensor, "B K N"]:
    """Return the intersection over union of all pairs of boxes (x0, y0, x1, y1)."""
    low = torch.maximum(one[:, :, None, :2], other[:, None, :, :2])
    high = torch.minimum(one[:, :, None, 2:], other[:, None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    area = [(box[..., 2:] - box[..., :2]).prod(-1) for box in (one, other)]
    return shared / (area[0][:, :, None] + area[1][:, None] - shared).clamp(min=1e-6)


def discovery_loss(
    world: World, step: PosteriorStep, frame: tuple[int, int], ruler: Ruler | None, target: Targets, binding: Binding
) -> tuple[Tensor, Tensor, Int[Tensor, "B D"]]:
    """Compute the losses of discovery, per clip.

    Returns
    -------
    tuple[Tensor, Tensor, Tensor]
        The presence loss of all cells, the box loss of the objects that should be discovered, and the index of the true
        object of each proposal (-1 for none).
    """
    height, width = world.config.cell
    rows, columns = (side // step for side, step in zip(frame, (height, width), strict=True))
    cells = rows * columns
    open_ = target.there & ~binding.taken
    wanted, possible = open_ & (target.visible > WANTED), open_ & (target.visible > FAINT)
    middle = (target.box[..., :2] + target.box[..., 2:]) / 2
    column = (middle[..., 0] / width).floor().long().clamp(0, columns - 1)
    row = (middle[..., 1] / height).floor().long().clamp(0, rows - 1)
    cell = row * columns + column  # [B, N]
    logits = step.proposals.logits
    spare = torch.full_like(cell, cells)  # one more cell after the last, for objects without a target
    goal = logits.new_zeros(len(cell), cells + 1).scatter(1, torch.where(wanted, cell, spare), 1.0)
    weight = torch.ones_like(goal)
    for down in (-1, 0, 1):
        for across in (-1, 0, 1):
            near = (row + down).clamp(0, rows - 1) * columns + (column + across).clamp(0, columns - 1)
            weight = weight.scatter(1, torch.where(possible, near, spare), NEIGHBOUR)
    weight = torch.where(goal > 0, FOUND, weight)
    missed = binary_cross_entropy_with_logits(logits, goal[:, :cells], weight[:, :cells], reduction="none").sum(-1)

    z_where = step.proposals.where_means.gather(1, cell[..., None].expand(-1, -1, 4))
    where = world.discovery.place(z_where, cell, columns, ruler)
    off = place_error(world, corners(where), target.box) * wanted
    with torch.no_grad():
        found = (step.proposals.cells[..., None] == cell[:, None]) & wanted[:, None]  # [B, D, N]
        born = torch.where(found.any(-1), found.to(torch.int8).argmax(-1), -1)
    return missed, off.sum(-1), born


def place_error(world: World, box: Float[Tensor, "B M 4"], goal: Float[Tensor, "B M 4"]) -> Float[Tensor, "B M"]:
    """Return the smooth L1 error of the corners, in typical sizes, summed over the four coordinates."""
    size = sum(world.config.object_size) / 2
    return smooth_l1_loss(box / size, goal / size, reduction="none", beta=SHARP).sum(-1)


def propagation_loss(world: World, step: PosteriorStep, target: Targets, binding: Binding) -> tuple[Tensor, Tensor]:
    """Compute the presence and the box loss of the propagated objects, per clip."""
    if step.propagated is None:
        nothing = torch.zeros_like(target.visible[:, 0])
        return nothing, nothing
    logits = step.propagated.logits[..., 0]
    count = logits.shape[1]  # empty slots at the end may be left out
    bound, alive = binding.target[:, :count], binding.alive[:, :count]
    there = (bound >= 0) & pick(target.there.float(), bound).bool()
    shows = there & (pick(target.visible, bound) > GONE)
    weight = torch.where(there & ~shows, HIDDEN, 1.0) * alive
    kept = binary_cross_entropy_with_logits(logits, there.float(), weight, reduction="none").sum(-1)
    where = corners(step.shown.where[:, :count])
    off = place_error(world, where, pick(target.box, bound)) * (weight * there)
    return kept, off.sum(-1)


def mask_loss(step: PosteriorStep, target: Targets, binding: Binding, born: Int[Tensor, "B D"]) -> Float[Tensor, " B"]:
    """Compute the mask loss, per clip: binary cross-entropy, summed over the objects that are bound.

    The loss of an object is the mean over the pixels of its glimpse that show the object itself or the background.
    Pixels that show another object are left out.
    """
    followed = 0 if step.propagated is None else step.propagated.logits.shape[1]
    whom = torch.cat([torch.where(binding.alive, binding.target, -1)[:, :followed], born], 1)  # [B, M]
    with torch.no_grad():
        shown = owners(target.owner, step.shown.where, step.shown.sprite.mask.shape[-1])  # [B, M, P, P]
        mine = shown == whom[..., None, None]
        asked = (mine | (shown == -1)) & (whom >= 0)[..., None, None]
    mask = step.shown.sprite.mask[:, :, 0].float().clamp(1e-4, 1 - 1e-4)
    wrong = -torch.where(mine, mask, 1 - mask).log() * asked
    each = wrong.sum((-1, -2)) / asked.sum((-1, -2)).clamp(min=1)
    return each.sum(-1)


def owners(owner: Int[Tensor, "B H W"], where: Float[Tensor, "B M 4"], samples: int) -> Int[Tensor, "B M P P"]:
    """Return the owner of the pixel nearest to each sample of a glimpse; -2 outside the frame."""
    height, width = owner.shape[-2:]
    steps = (torch.arange(samples, device=owner.device) + 0.5) / samples - 0.5
    column = (where[..., :1] + where[..., 2:3] * steps).floor().long()  # [B, M, P]
    row = (where[..., 1:2] + where[..., 3:] * steps).floor().long()
    inside = ((column >= 0) & (column < width))[..., None, :] & ((row >= 0) & (row < height))[..., :, None]
    place = row.clamp(0, height - 1)[..., :, None] * width + column.clamp(0, width - 1)[..., None, :]
    shown = owner.flatten(1).gather(1, place.flatten(1)).view(place.shape)
    return torch.where(inside, shown, -2)


def depth_loss(step: PosteriorStep, target: Targets, binding: Binding) -> Float[Tensor, " B"]:
    """Compute the depth loss, per clip.

    Of two propagated objects that overlap, the one in front should have the smaller z_depth.
    """
    if step.propagated is None:
        return torch.zeros_like(target.visible[:, 0])
    count = step.propagated.logits.shape[1]
    bound = torch.where(binding.alive, binding.target, -1)[:, :count]
    box, order = pick(target.box, bound), pick(target.order, bound)
    known = (bound >= 0) & pick(target.there.float(), bound).bool()
    pairs = known[:, :, None] & known[:, None] & (ious(box, box) > OVERLAP) & (order[:, :, None] < order[:, None])
    depth = step.shown.z_depth[:, :count, 0]
    return (softplus(depth[:, :, None] - depth[:, None]) * pairs).sum((1, 2))
