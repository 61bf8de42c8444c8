"""The yardstick: the same model, computed the way the paper and its public code describe it.

Networks, weights, draws and costs are those of a `SCALOR`. Different is how they are put together, and in each of these
points this file does as the public code (JindongJiang/SCALOR) does:

- an object's colours, its weights and its mask are pasted with `affine_grid` and `grid_sample`, one after the other,
  each to a canvas of the object's own, as large as the frame;
- a glimpse is cropped with `grid_sample` from an image repeated for every object;
- a proposal is rejected by pasting its bare mask and comparing that canvas with the canvas of what is explained;
- after each frame a Python loop over the clips reads which objects are alive, picks them by `nonzero` and pads all
  clips to the largest count, so later work follows the number of objects and not the number of slots;
- drawing, priors, background and costs belong to the loop over time, frame by frame.

It is not slowed on purpose. In two points it does less than the public code: an object is gathered in one piece instead
of eleven, and only as many proposals are looked at closely as the model looks at. (The public code looks at every cell
of every frame: that is `proposals` of `elbo`.)

The mathematics is the model's but for one rule: the model measures the areas of its rejection test in the proposal's
own glimpse, border of the frame or not; here, as in the public code, they are counted in whole pixels of the canvas.

Letters: B clips, T frames, N objects, D proposals, G cells, H by W pixels, P glimpse side.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, celu, grid_sample

from scalor.data.observation import Observation
from scalor.model.costs import Costs
from scalor.model.decoders import MASK_THRESHOLD, Sprite
from scalor.model.discovery import EXPLAINED_MASK, Proposals
from scalor.model.elbo import ElboTerms
from scalor.model.geometry import touches_frame
from scalor.model.propagation import POSTERIOR_STAYS, SEARCH_SCALE, PriorInput, PropagationPosterior, Transition
from scalor.model.scalor import PRESENCE_PRIOR, SCALOR
from scalor.model.state import ObjectState, Roster, SceneState, end_duplicates
from scalor.model.world import View
from scalor.nn.distributions import PRESENCE_LIMIT, Estimator, Mode, Normal, positive


class Canvases(NamedTuple):
    """Objects, each on a canvas of its own."""

    painted: Float[Tensor, "B N 3 H W"]
    """Colour by weight."""
    weight: Float[Tensor, "B N 1 H W"]
    """Mask by presence and nearness."""
    opacity: Float[Tensor, "B N 1 H W"]
    """Mask by presence."""


class Scene(NamedTuple):
    """What is remembered between frames."""

    state: SceneState
    """N is the largest number of live objects in any clip."""
    prior: Float[Tensor, "B N prior"]
    """What the transition prior remembers of each."""


class Frame(NamedTuple):
    """What the posterior made of a frame."""

    following: PropagationPosterior | None
    """None in the first frame: there was nothing to follow."""
    expected: Transition | None
    """What the prior expected of the objects followed."""
    proposals: Proposals
    shown: list[Canvases]
    after: Scene


class Bound(NamedTuple):
    """The evidence lower bound, and how many objects were alive a clip and frame."""

    terms: ElboTerms
    objects: float


def elbo(
    model: SCALOR,
    video: Observation,
    estimator: Estimator,
    presence_prior: float | Tensor = PRESENCE_PRIOR,
    proposals: int | None = None,
) -> Bound:
    """What `model.elbo` computes, frame by frame; with a close look at `proposals` cells of every frame, if given."""
    clips, like = len(video), video.image
    # The public code, too, encodes all frames before its loop over time.
    views, _ = model.look(video.time_first(), model.no_memory(clips, video.size, like))
    scene = nothing_seen(model, clips, like)
    behind = model.background.empty(clips, like) if model.background else None
    likelihood, kl_background = like.new_zeros(clips), like.new_zeros(clips)
    discovered, propagated = (Costs(*like.new_zeros(4, clips)) for _ in range(2))
    alive = 0
    for t, view in enumerate(views):
        now = estimator.at(t)
        seen = follow(model, scene, view, now, proposals)
        discovered = add(discovered, seen.proposals.costs(presence_prior, estimator))
        if seen.following is not None and seen.expected is not None:
            propagated = add(propagated, seen.following.costs(seen.expected, estimator))
        colour, mask = draw(seen.shown)
        picture = mask * colour
        if model.background is not None and behind is not None:
            noise = now.normal(Normal.standard(behind.z_bg))
            backdrop = model.background(view.image[None], mask.detach()[None], noise[None], behind, estimator)
            picture = picture + (1 - mask) * backdrop.picture
            kl_background, behind = kl_background + backdrop.kl[0], backdrop.memory
        pixels = Normal(picture, torch.full_like(picture, model.config.sigma))
        likelihood = likelihood + pixels.log_prob(view.image).sum((1, 2, 3))
        scene = seen.after
        alive += int(scene.state.objects.alive.sum())
    terms = ElboTerms(likelihood, *discovered, *propagated, kl_background)
    return Bound(terms, alive / (clips * len(views)))


@torch.no_grad()
def watch(model: SCALOR, images: Iterable[Observation]) -> Iterator[SceneState]:
    """What tracking does, frame by frame, with posterior modes."""
    scene = memory = None
    for image in images:
        if scene is None or memory is None:
            scene = nothing_seen(model, len(image), image.image)
            memory = model.no_memory(len(image), image.size, image.image)
        (view,), memory = model.look(image[None], memory)
        scene = follow(model, scene, view, Mode()).after
        yield scene.state


def nothing_seen(model: SCALOR, clips: int, like: Tensor) -> Scene:
    state = model.start(clips, like)
    return Scene(state, model.no_past(clips, like).objects)


def follow(model: SCALOR, scene: Scene, view: View, estimator: Estimator, count: int | None = None) -> Frame:
    """One frame: propagate, discover what is not explained, gather the living."""
    image, entered = view.image, scene.state.objects
    if scene.state.fresh:
        kept, following, expected, shown, memory = entered, None, None, [], scene.prior
        explained = torch.zeros_like(image[:, :1])
    else:
        kept, sprite, following = propagate(model, scene.state, view, estimator)
        canvas = canvases(sprite, kept.where, kept.presence * entered.alive, kept.z_depth, image)
        shown = [canvas]
        explained = (canvas.opacity * kept.alive[..., None, None]).sum(1).clamp(max=1).detach()
        (known,), memory = model.propagation.prior.remember([following.entered], scene.prior)
        expected = model.propagation.prior(known, following.entered.last)
    count = count or model.proposal_count(scene.state, (image.shape[-2], image.shape[-1]))
    newborn, proposals, proposed = discover(model, view, explained, count, estimator)
    after = gather(model, scene.state.roster, kept, memory, newborn)
    return Frame(following, expected, proposals, [*shown, proposed], after)


def propagate(
    model: SCALOR, state: SceneState, view: View, estimator: Estimator
) -> tuple[ObjectState, Sprite, PropagationPosterior]:
    """The posterior of the objects that were there before (paper: Algorithm 2)."""
    net, config, appearance = model.propagation, model.config, model.appearance
    objects, image = state.objects, view.image
    entered = PriorInput.of(state)
    expected = net.shift(objects.where, objects.z_where) if config.inertia else objects.where
    known = torch.cat([look(model, expected, view), entered.last], -1)
    hidden = net.tracker(net.enter(known).flatten(0, 1), objects.tracker.flatten(0, 1))
    tracker = hidden.float().unflatten(0, known.shape[:2])

    step, raw = net.move(torch.cat([known, tracker], -1)).float().chunk(2, -1)
    q_where = Normal(objects.z_where + step if config.inertia else step, positive(raw))
    z_where = estimator.normal(q_where)
    where = net.shift(objects.where, z_where)

    code = appearance.encoder(crop(image, where, config.glimpse))
    gate, raw = net.blend(torch.cat([code, tracker], -1)).float().chunk(2, -1)
    gate = gate.sigmoid()
    q_what = Normal(gate * appearance.what_of(code).mean + (1 - gate) * objects.z_what, positive(raw))
    z_what = estimator.normal(q_what)

    judged = net.judge(torch.cat([code, tracker, z_what, z_where], -1)).float()
    q_depth = Normal(objects.z_depth + judged[..., :1], positive(judged[..., 1:2]))
    z_depth = estimator.normal(q_depth)
    logits = PRESENCE_LIMIT * torch.tanh(judged[..., 2:] + POSTERIOR_STAYS)
    presence = estimator.presence(logits)

    sprite = appearance.draw(z_what)
    latent = torch.cat([z_where, z_what, z_depth], -1)
    inside = touches_frame(where, (image.shape[-2], image.shape[-1]))[..., None]
    stays = (presence > config.death_presence) & sprite.shows & inside
    kept = ObjectState(where, latent, presence, tracker, objects.alive * stays)
    posterior = beside(q_where, q_what, q_depth)
    return kept, sprite, PropagationPosterior(entered, posterior, latent, logits, presence)


def look(model: SCALOR, where: Float[Tensor, "B N 4"], view: View) -> Float[Tensor, "B N seen"]:
    """The features and the pixels around a place for each object."""
    net, config = model.propagation, model.config
    in_cells, cells = where[..., :2] / net.cell, config.attention_cells
    extra = []
    if config.attention:
        window = torch.cat([in_cells, torch.full_like(in_cells, float(cells))], -1)
    else:
        rows, columns = view.features.shape[-2:]
        whole = torch.tensor([float(columns), float(rows)], device=where.device).expand_as(in_cells)
        window = torch.cat([whole / 2, whole], -1)
        extra = [2 * in_cells / whole - 1]
    seen = [net.attend(crop(view.features, window, cells).flatten(2)), *extra]
    if config.search:
        around = torch.cat([where[..., :2], where[..., 2:] * SEARCH_SCALE], -1)
        seen.append(net.searcher(crop(view.image, around, config.glimpse)))
    return torch.cat(seen, -1)


def discover(
    model: SCALOR, view: View, explained: Float[Tensor, "B 1 H W"], count: int, estimator: Estimator
) -> tuple[ObjectState, Proposals, Canvases]:
    """The posterior of new objects: proposal and rejection (paper: Algorithm 1)."""
    net, config, appearance, image = model.discovery, model.config, model.appearance, view.image
    mixed = celu(view.cells + net.from_mask(net.around(explained)))
    heads = net.heads(mixed).float()  # [B, G, 11]
    logits = PRESENCE_LIMIT * torch.tanh(heads[..., 0])
    presence = estimator.presence(logits)
    cells = presence.topk(count, -1).indices
    chosen = heads.gather(1, cells[..., None].expand(-1, -1, heads.shape[-1]))
    mean, raw = chosen[..., 1:].chunk(2, -1)
    std = positive(raw)
    z_where, z_depth = estimator.normal(Normal(mean, std)).split([4, 1], -1)
    where = net.place(z_where, cells, image.shape[-1] // config.cell[1])

    q_what = appearance.infer(crop(image, where, config.glimpse))
    z_what = estimator.normal(q_what)
    sprite = appearance.draw(z_what)
    latent = torch.cat([z_where, z_what, z_depth], -1)
    proposed = presence.gather(1, cells)
    with torch.no_grad():
        rejected = reject(model, paste(sprite.mask, where, image.shape[-2:])[:, :, 0], explained)
    accepted = (proposed * (1 - rejected))[..., None]
    where_and_depth = Normal(mean[..., :4], std[..., :4]), Normal(mean[..., 4:], std[..., 4:])
    posterior = beside(where_and_depth[0], q_what, where_and_depth[1])
    proposals = Proposals(logits, presence, heads[..., 1:5], cells, posterior, latent, rejected)
    newborn = net.newborn(where, latent, accepted, sprite)
    return newborn, proposals, canvases(sprite, where, accepted, z_depth, image)


def reject(model: SCALOR, masks: Float[Tensor, "B D H W"], explained: Float[Tensor, "B 1 H W"]) -> Float[Tensor, "B D"]:
    """1 where propagated objects explain too much of a proposal, by areas on its canvas."""
    if not model.config.rejection:
        return torch.zeros(masks.shape[:2], device=masks.device)
    own = masks > MASK_THRESHOLD
    share = (own & (explained > EXPLAINED_MASK)).sum((-1, -2)) / own.sum((-1, -2)).clamp(min=1)
    return (share >= model.config.rejection_overlap).float()


def gather(
    model: SCALOR, roster: Roster, kept: ObjectState, memory: Float[Tensor, "B N prior"], newborn: ObjectState
) -> Scene:
    """The living and the newborn of each clip, one clip after the other, padded to the largest count."""
    old = torch.cat([kept.pack(), memory], -1)
    new = torch.cat([newborn.pack(), newborn.where.new_zeros(*newborn.where.shape[:2], memory.shape[-1])], -1)
    rows, ids, born, next_ids = [], [], [], []
    for clip in range(len(old)):
        stay = kept.alive[clip, :, 0].nonzero()[:, 0]
        come = newborn.alive[clip, :, 0].nonzero()[:, 0][: model.config.slots - len(stay)]
        first = int(roster.next_id[clip])
        rows.append(torch.cat([old[clip, stay], new[clip, come]]))
        ids.append(torch.cat([roster.id[clip, stay], torch.arange(first, first + len(come), device=old.device)]))
        born.append([False] * len(stay) + [True] * len(come))
        next_ids.append(first + len(come))
    most = max(1, *(len(row) for row in rows))
    blank = ObjectState.empty(1, most, kept.latent.shape[-1], kept.tracker.shape[-1], old).pack()[0]
    nobody = torch.cat([blank, blank.new_zeros(most, memory.shape[-1])], -1)
    packed = torch.stack([torch.cat([row, nobody[len(row) :]]) for row in rows])
    state = SceneState(
        kept.unpack(packed[..., : blank.shape[-1]]),
        Roster(
            torch.stack([torch.cat([row, row.new_full((most - len(row),), -1)]) for row in ids]),
            torch.tensor(next_ids, device=old.device),
        ),
        torch.tensor([row + [False] * (most - len(row)) for row in born], device=old.device),
        torch.zeros(len(old), device=old.device),
    )
    state = end_duplicates(state) if model.config.end_duplicates else state
    return Scene(state, packed[..., blank.shape[-1] :])


def canvases(
    sprite: Sprite,
    where: Float[Tensor, "B N 4"],
    presence: Float[Tensor, "B N 1"],
    z_depth: Float[Tensor, "B N 1"],
    image: Tensor,
) -> Canvases:
    opacity = sprite.mask * presence[..., None, None]
    weight = opacity * torch.sigmoid(-z_depth)[..., None, None]
    layers = (sprite.colour * weight, weight, opacity)
    return Canvases(*(paste(layer, where, image.shape[-2:]) for layer in layers))


def draw(shown: list[Canvases]) -> tuple[Float[Tensor, "B 3 H W"], Float[Tensor, "B 1 H W"]]:
    """All canvases over each other: the colour of the objects and their mask M (paper: Algorithm 3)."""
    painted, weight, opacity = (torch.cat(parts, 1) for parts in zip(*shown, strict=True))
    colour = painted.sum(1) / (weight.sum(1) + 1e-5)
    return colour, opacity.sum(1).clamp(max=1)


def crop(image: Float[Tensor, "B C H W"], where: Float[Tensor, "B N 4"], samples: int) -> Float[Tensor, "B N C P P"]:
    """Every object's glimpse, from its own copy of the image."""
    b, c, h, w = image.shape
    n = where.shape[1]
    x, y, width, height = where.flatten(0, 1).unbind(-1)
    matrices = affine(width / w, 2 * x / w - 1, height / h, 2 * y / h - 1)
    copies = image[:, None].expand(-1, n, -1, -1, -1).reshape(b * n, c, h, w)
    return sample(copies, matrices, (samples, samples)).view(b, n, c, samples, samples)


def paste(
    glimpses: Float[Tensor, "B N C P P"], where: Float[Tensor, "B N 4"], frame: tuple[int, int] | torch.Size
) -> Float[Tensor, "B N C H W"]:
    """Every glimpse stretched over its box, on a canvas of its own."""
    b, n, c = glimpses.shape[:3]
    h, w = frame
    x, y, width, height = where.flatten(0, 1).unbind(-1)
    matrices = affine(w / width, (w - 2 * x) / width, h / height, (h - 2 * y) / height)
    return sample(glimpses.flatten(0, 1), matrices, (h, w)).view(b, n, c, h, w)


def sample(
    images: Float[Tensor, "BN C H W"], matrices: Float[Tensor, "BN 2 3"], size: tuple[int, int]
) -> Float[Tensor, "BN C h w"]:
    """Images seen through affine windows. Places need float32, whatever the networks use."""
    with torch.autocast(images.device.type, enabled=False):
        grid = affine_grid(matrices.float(), [*images.shape[:2], *size], align_corners=False)
        return grid_sample(images.float(), grid, align_corners=False)


def affine(across: Tensor, right: Tensor, along: Tensor, down: Tensor) -> Float[Tensor, "BN 2 3"]:
    """The matrices of stretches by `across` and `along` and shifts by `right` and `down`."""
    zero = torch.zeros_like(across)
    return torch.stack([torch.stack([across, zero, right], -1), torch.stack([zero, along, down], -1)], 1)


def beside(*parts: Normal) -> Normal:
    return Normal(torch.cat([part.mean for part in parts], -1), torch.cat([part.std for part in parts], -1))


def add(one: Costs, other: Costs) -> Costs:
    return Costs(*(a + b for a, b in zip(one, other, strict=True)))
