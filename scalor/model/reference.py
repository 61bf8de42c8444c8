"""The model as the paper and its public code write it: short, dense and slow. It is the oracle of the fast model.

Networks, weights, random numbers and KL terms are those of a `SCALOR`. What differs is how they are put together. In
each of these points this file does as the public code (JindongJiang/SCALOR):

- Colours, weights and masks are pasted with `affine_grid` and `grid_sample`, each object on a canvas of its own, as
  large as the frame. The fast model never makes such a canvas (`scalor.kernels`).
- A glimpse is cropped with `grid_sample` from a copy of the image for each object.
- A proposal is rejected by areas on its canvas. The fast model compares areas in the proposal's glimpse. This is the
  only difference in mathematics: at the border of a frame the two areas differ.
- After each frame a Python loop over the clips gathers the objects that are alive, so the work follows the number of
  objects. The fast model has a fixed number of slots.
- Rendering, priors, background and KL terms belong to the loop over time. The fast model computes them for all frames
  together.

Letters: B clips, T frames, N objects, D proposals, G cells, H by W pixels, P glimpse side.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, celu, grid_sample

from scalor.data.observation import Observation
from scalor.model.discovery import Proposals
from scalor.model.elbo import KL_TERMS, ElboTerms
from scalor.model.geometry import touches_frame
from scalor.model.glimpses import MASK_THRESHOLD, Sprite
from scalor.model.latents import Latents, pack_normals
from scalor.model.propagation import PriorInput, PropagationPosterior
from scalor.model.rendering import RenderInput
from scalor.model.scalor import PRESENCE_PRIOR, SCALOR
from scalor.model.state import ObjectState, SceneState, end_duplicates
from scalor.model.time_step import FrameFeatures
from scalor.nn.distributions import PRESENCE_LIMIT, Estimator, Mode, Normal, positive
from scalor.nn.records import concatenate

Canvases = Float[Tensor, "B _ 5 H W"]
"""Each object on a canvas of its own.

Channels: colour times weight (3), weight (mask times presence times nearness), opacity (mask times presence).
"""


class ReferenceElbo(NamedTuple):
    """The evidence lower bound and the reconstruction."""

    terms: ElboTerms
    image: Float[Tensor, "B T 3 H W"]
    objects: float
    """Mean number of live objects per clip and frame."""


class ReferenceStep(NamedTuple):
    """Result of the posterior for one frame."""

    kl: list[Tensor]
    """KL terms of the discovery trail, then of the propagation trail, nats per clip (`KL_TERMS` but the last)."""
    shown: RenderInput
    """Objects to render: the propagated ones, then the proposals."""
    state: SceneState
    """State after the frame. N is the largest number of live objects in any clip."""
    hidden: Float[Tensor, "B N prior"]
    """Hidden state of each object's transition prior."""


def elbo(
    model: SCALOR,
    video: Observation,
    estimator: Estimator,
    presence_prior: float | Tensor = PRESENCE_PRIOR,
    proposals: int | None = None,
) -> ReferenceElbo:
    """Compute what `SCALOR.elbo` computes, frame by frame (equation: `scalor.model.elbo.explain`).

    `proposals` replaces the number of proposals of each frame. The public code has one for each cell.
    """
    clips, like, sigma = len(video), video.image, model.config.sigma
    # The public code, too, encodes all frames before its loop over time.
    features, _ = model.encode(video.time_first(), model.start_encoder(clips, video.size, like))
    state, hidden = model.start(clips, like), model.start_prior(clips, like).objects
    memory = model.background.empty(clips, like) if model.background else None
    log_likelihood, kls, images, alive = like.new_zeros(clips), [], [], 0
    for t, seen in enumerate(features):
        frame, now = video[:, t], estimator.at(t)
        step = posterior_step(model, state, hidden, seen, now, presence_prior, proposals)
        colour, mask = draw(paste_objects(step.shown, video.size, model.config.depth_sharpness))
        background, kl_background = frame.still, like.new_zeros(1, clips)
        if model.background is not None and memory is not None:
            noise = now.normal(Normal.standard(memory.z_bg))
            background, kl_background, memory = model.background(
                frame.image[None], mask.detach()[None], noise[None], memory, estimator
            )
        image = mask * colour + (0 if background is None else (1 - mask) * background)
        pixels = Normal(image, torch.full_like(image, sigma))
        log_likelihood = log_likelihood + pixels.log_prob(frame.image).sum((1, 2, 3))
        kls.append(torch.stack([*step.kl, kl_background[0]]))
        images.append(image)
        state, hidden = step.state, step.hidden
        alive += int(state.objects.alive.sum())
    terms = ElboTerms(log_likelihood, dict(zip(KL_TERMS, torch.stack(kls).sum(0), strict=True)))
    return ReferenceElbo(terms, torch.stack(images, 1), alive / (clips * len(features)))


@torch.no_grad()
def track(model: SCALOR, images: Iterable[Observation]) -> Iterator[SceneState]:
    """Yield the state after each frame, [B], with posterior modes."""
    state = hidden = memory = None
    for image in images:
        if state is None or hidden is None or memory is None:
            clips, like = len(image), image.image
            state, hidden = model.start(clips, like), model.start_prior(clips, like).objects
            memory = model.start_encoder(clips, image.size, like)
        (seen,), memory = model.encode(image[None], memory)
        step = posterior_step(model, state, hidden, seen, Mode(), PRESENCE_PRIOR)
        state, hidden = step.state, step.hidden
        yield state


def posterior_step(
    model: SCALOR,
    state: SceneState,
    hidden: Float[Tensor, "B N prior"],
    seen: FrameFeatures,
    estimator: Estimator,
    presence_prior: float | Tensor,
    count: int | None = None,
) -> ReferenceStep:
    """Infer one frame: propagate, discover what is not explained, gather the objects that are alive."""
    image, kept = seen.image, state.objects
    explained = torch.zeros_like(image[:, :1])
    known, kl_propagated = [], [image.new_zeros(len(image))] * 4
    if not state.fresh:
        kept, sprite, q = propagate(model, state, seen, estimator)
        explained = explain(model, RenderInput(kept.where, kept.presence * kept.alive, kept.z_depth, sprite), image)
        (memory,), hidden = model.propagation.prior.remember([q.entered], hidden)
        p_presence, p_latents = model.propagation.prior(memory, q.entered.last)
        kl_propagated = list(q.kl(p_presence, p_latents, estimator).values())
        known.append(RenderInput(kept.where, kept.presence * state.objects.alive, kept.z_depth, sprite))
    count = count or model.proposal_count(state, (image.shape[-2], image.shape[-1]))
    newborn, proposals, sprite = discover(model, seen, explained, count, estimator)
    kl = [*proposals.kl(presence_prior, estimator).values(), *kl_propagated]
    proposed = RenderInput(newborn.where, newborn.presence, newborn.z_depth, sprite)
    return ReferenceStep(kl, concatenate([*known, proposed], 1), *gather(model, state, kept, hidden, newborn))


def propagate(
    model: SCALOR, state: SceneState, seen: FrameFeatures, estimator: Estimator
) -> tuple[ObjectState, Sprite, PropagationPosterior]:
    """Infer the objects that were alive before the frame (paper: Algorithm 2)."""
    net, config, appearance = model.propagation, model.config, model.appearance
    objects, image, ruler = state.objects, seen.image, seen.ruler
    entered = PriorInput.of(state)
    expected = net.shift(objects.where, objects.z_where, ruler) if config.inertia else objects.where
    known = torch.cat([attend(model, expected, seen), entered.last], -1)
    hidden = net.tracker(net.enter(known).flatten(0, 1), objects.tracker.flatten(0, 1))
    tracker = hidden.float().unflatten(0, known.shape[:2])

    step, raw = net.move(torch.cat([known, tracker], -1)).float().chunk(2, -1)
    q_where = Normal(objects.z_where + step if config.inertia else step, positive(raw))
    z_where = estimator.normal(q_where)
    where = net.shift(objects.where, z_where, ruler)

    code = appearance.encoder(crop(image, where, config.glimpse))
    gate, raw = net.blend(torch.cat([code, tracker], -1)).float().chunk(2, -1)
    gate = gate.sigmoid()
    q_what = Normal(gate * appearance.what_of(code).mean + (1 - gate) * objects.z_what, positive(raw))
    z_what = estimator.normal(q_what)

    judged = net.judge(torch.cat([code, tracker, z_what, z_where], -1)).float()
    q_depth = Normal(objects.z_depth + judged[..., :1], positive(judged[..., 1:2]))
    z_depth = estimator.normal(q_depth)
    logits = PRESENCE_LIMIT * torch.tanh(judged[..., 2:] + config.posterior_bias)
    presence = estimator.presence(logits)

    sprite = appearance.draw(z_what)
    latent = Latents(z_where, z_what, z_depth).pack()
    inside = touches_frame(where, (image.shape[-2], image.shape[-1]))[..., None]
    stays = (presence > config.death_presence) & sprite.shows & inside
    kept = ObjectState(where, latent, presence, tracker, objects.alive * stays)
    q = PropagationPosterior(entered, pack_normals(q_where, q_what, q_depth), latent, logits, presence)
    return kept, sprite, q


def attend(model: SCALOR, where: Float[Tensor, "B N 4"], seen: FrameFeatures) -> Float[Tensor, "B N seen"]:
    """Return the features and the pixels around a place for each object."""
    net, config = model.propagation, model.config
    in_cells, cells = where[..., :2] / net.cell, config.attention_cells
    position = []
    if config.attention:
        window = torch.cat([in_cells, torch.full_like(in_cells, float(cells))], -1)
    else:
        rows, columns = seen.features.shape[-2:]
        whole = torch.tensor([float(columns), float(rows)], device=where.device).expand_as(in_cells)
        window = torch.cat([whole / 2, whole], -1)
        position = [2 * in_cells / whole - 1]
    attended = [net.attend(crop(seen.features, window, cells).flatten(2)), *position]
    if config.search:
        around = torch.cat([where[..., :2], where[..., 2:] * config.search_scale], -1)
        attended.append(net.searcher(crop(seen.image, around, config.glimpse)))
    return torch.cat(attended, -1)


def discover(
    model: SCALOR, seen: FrameFeatures, explained: Float[Tensor, "B 1 H W"], count: int, estimator: Estimator
) -> tuple[ObjectState, Proposals, Sprite]:
    """Infer new objects by proposal and rejection (paper: Algorithm 1)."""
    net, config, appearance, image = model.discovery, model.config, model.appearance, seen.image
    heads = net.heads(celu(seen.cells + net.from_mask(net.around(explained)))).float()  # [B, G, 11]
    logits = PRESENCE_LIMIT * torch.tanh(heads[..., 0])
    presence = estimator.presence(logits)
    cells = presence.topk(count, -1).indices
    chosen = heads.gather(1, cells[..., None].expand(-1, -1, heads.shape[-1]))
    mean, raw = chosen[..., 1:].chunk(2, -1)
    std = positive(raw)
    z_where, z_depth = estimator.normal(Normal(mean, std)).split([4, 1], -1)
    where = net.place(z_where, cells, image.shape[-1] // config.cell[1], seen.ruler)

    q_what = appearance.infer(crop(image, where, config.glimpse))
    z_what = estimator.normal(q_what)
    sprite = appearance.draw(z_what)
    with torch.no_grad():
        rejected = reject(model, paste(sprite.mask, where, image.shape[-2:])[:, :, 0], explained)
    accepted = (presence.gather(1, cells) * (1 - rejected))[..., None]
    q = pack_normals(Normal(mean[..., :4], std[..., :4]), q_what, Normal(mean[..., 4:], std[..., 4:]))
    latents = Latents(z_where, z_what, z_depth)
    proposals = Proposals(logits, presence, heads[..., 1:5], cells, q, latents.pack(), rejected)
    newborn = net.newborn(where, latents, accepted, sprite)
    return newborn, proposals, sprite


@torch.no_grad()
def explain(model: SCALOR, shown: RenderInput, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B 1 H W"]:
    """Return how far propagated objects explain each pixel: cover it and, if that counts, have its colour."""
    frame, tolerance = (image.shape[-2], image.shape[-1]), model.config.explained_error
    if not tolerance:
        return draw(paste_objects(shown, frame, sharpness=0))[1]
    colour, mask = draw(paste_objects(shown, frame, model.config.depth_sharpness))
    true = image[:, 3:] + 0.5 if model.config.still else image
    return mask * torch.exp(-(colour - true).square().sum(1, keepdim=True) / (2 * tolerance**2))


def reject(model: SCALOR, masks: Float[Tensor, "B D H W"], explained: Float[Tensor, "B 1 H W"]) -> Float[Tensor, "B D"]:
    """Return 1 where propagated objects explain too much of a proposal, by areas on its canvas."""
    if not model.config.rejection:
        return torch.zeros(masks.shape[:2], device=masks.device)
    own = masks > MASK_THRESHOLD
    share = (own & (explained > model.config.explained_mask)).sum((-1, -2)) / own.sum((-1, -2)).clamp(min=1)
    return (share >= model.config.rejection_overlap).float()


def gather(
    model: SCALOR, before: SceneState, kept: ObjectState, hidden: Float[Tensor, "B N prior"], newborn: ObjectState
) -> tuple[SceneState, Float[Tensor, "B M prior"]]:
    """Collect the live and the newborn objects of each clip, padded to the largest number in any clip."""
    old = torch.cat([kept.pack(), hidden], -1)
    new = torch.cat([newborn.pack(), newborn.where.new_zeros(*newborn.where.shape[:2], hidden.shape[-1])], -1)
    rows, ids, born, next_ids = [], [], [], []
    for clip in range(len(old)):
        stay = kept.alive[clip, :, 0].nonzero()[:, 0]
        come = newborn.alive[clip, :, 0].nonzero()[:, 0][: model.config.slots - len(stay)]
        first = int(before.next_id[clip])
        rows.append(torch.cat([old[clip, stay], new[clip, come]]))
        ids.append(torch.cat([before.id[clip, stay], torch.arange(first, first + len(come), device=old.device)]))
        born.append([False] * len(stay) + [True] * len(come))
        next_ids.append(first + len(come))
    most = max(1, *(len(row) for row in rows))
    blank = ObjectState.empty(1, most, kept.latent.shape[-1], kept.tracker.shape[-1], old).pack()[0]
    empty = torch.cat([blank, blank.new_zeros(most, hidden.shape[-1])], -1)
    packed = torch.stack([torch.cat([row, empty[len(row) :]]) for row in rows])
    state = SceneState(
        kept.unpack(packed[..., : blank.shape[-1]]),
        torch.stack([torch.cat([row, row.new_full((most - len(row),), -1)]) for row in ids]),
        torch.tensor(next_ids, device=old.device),
        torch.tensor([row + [False] * (most - len(row)) for row in born], device=old.device),
        torch.zeros(len(old), device=old.device),
    )
    config = model.config
    if config.end_duplicates:
        state = end_duplicates(state, config.duplicate_iou, config.duplicate_what)
    return state, packed[..., blank.shape[-1] :]


def paste_objects(shown: RenderInput, frame: tuple[int, int], sharpness: float) -> Canvases:
    """Paste colours, weights and masks of all objects, each object on a canvas of its own.

    With a `sharpness`, objects are composited from front to back, and what does not show of an object has no opacity.
    """
    opacity = shown.sprite.mask * shown.presence[..., None, None]
    if sharpness:
        opacity = weight = opacity * uncovered(opacity, shown, sharpness)
    else:
        weight = opacity * torch.sigmoid(-shown.z_depth)[..., None, None]
    layers = (shown.sprite.colour * weight, weight, opacity)
    return torch.cat([paste(layer, shown.where, frame) for layer in layers], 2)


def uncovered(opacity: Float[Tensor, "B N 1 P P"], shown: RenderInput, sharpness: float) -> Float[Tensor, "B N 1 P P"]:
    """Return which share of each pixel of an object no nearer object hides. All other objects are looked at."""
    count, side = shown.where.shape[1], opacity.shape[-1]
    left = []
    for i in range(count):
        share = torch.ones_like(opacity[:, i])
        for j in (j for j in range(count) if j != i):
            own, other = shown.where[:, i], shown.where[:, j]
            scale, shift = own[:, 2:] / other[:, 2:], 2 * (own[:, :2] - other[:, :2]) / other[:, 2:]
            seen = sample(opacity[:, j], affine(scale[:, 0], shift[:, 0], scale[:, 1], shift[:, 1]), (side, side))
            nearer = torch.sigmoid(sharpness * (shown.z_depth[:, i] - shown.z_depth[:, j]))
            share = share * (1 - seen * nearer[..., None, None])
        left.append(share)
    return torch.stack(left, 1)


def draw(canvases: Canvases) -> tuple[Float[Tensor, "B 3 H W"], Float[Tensor, "B 1 H W"]]:
    """Return the colour of all objects together and their mask M (paper: Algorithm 3)."""
    whole = canvases.sum(1)
    return whole[:, :3] / (whole[:, 3:4] + 1e-5), whole[:, 4:].clamp(max=1)


def crop(image: Float[Tensor, "B C H W"], where: Float[Tensor, "B N 4"], samples: int) -> Float[Tensor, "B N C P P"]:
    """Return each object's glimpse, from its own copy of the image."""
    b, c, h, w = image.shape
    n = where.shape[1]
    x, y, width, height = where.flatten(0, 1).unbind(-1)
    matrices = affine(width / w, 2 * x / w - 1, height / h, 2 * y / h - 1)
    copies = image[:, None].expand(-1, n, -1, -1, -1).reshape(b * n, c, h, w)
    return sample(copies, matrices, (samples, samples)).view(b, n, c, samples, samples)


def paste(
    glimpses: Float[Tensor, "B N C P P"], where: Float[Tensor, "B N 4"], frame: tuple[int, int] | torch.Size
) -> Float[Tensor, "B N C H W"]:
    """Return each glimpse stretched over its box, on a canvas of its own."""
    b, n, c = glimpses.shape[:3]
    h, w = frame
    x, y, width, height = where.flatten(0, 1).unbind(-1)
    matrices = affine(w / width, (w - 2 * x) / width, h / height, (h - 2 * y) / height)
    return sample(glimpses.flatten(0, 1), matrices, (h, w)).view(b, n, c, h, w)


def sample(
    images: Float[Tensor, "BN C H W"], matrices: Float[Tensor, "BN 2 3"], size: tuple[int, int]
) -> Float[Tensor, "BN C h w"]:
    """Sample images through affine windows. Positions need float32, whatever the networks use."""
    with torch.autocast(images.device.type, enabled=False):
        grid = affine_grid(matrices.float(), [*images.shape[:2], *size], align_corners=False)
        return grid_sample(images.float(), grid, align_corners=False)


def affine(
    across: Float[Tensor, " BN"], right: Float[Tensor, " BN"], along: Float[Tensor, " BN"], down: Float[Tensor, " BN"]
) -> Float[Tensor, "BN 2 3"]:
    """Return the matrices of stretches by `across` and `along` and shifts by `right` and `down`."""
    zero = torch.zeros_like(across)
    return torch.stack([torch.stack([across, zero, right], -1), torch.stack([zero, along, down], -1)], 1)
