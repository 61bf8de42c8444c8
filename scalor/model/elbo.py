"""Frames that were seen, explained all at once: drawn, charged for term by term (the evidence lower bound)."""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.config import ModelConfig
from scalor.model.background import BackgroundMemory
from scalor.model.costs import Costs
from scalor.model.discovery import Proposals
from scalor.model.rendering import Foreground, compose, draw
from scalor.model.world import Past, Seen, World, read_ruler
from scalor.nn.distributions import Estimator
from scalor.nn.records import alike, together


@dataclass(frozen=True)
class ElboTerms:
    """Nats per clip. `elbo` is the log-likelihood less every other term."""

    log_likelihood: Float[Tensor, " B"]
    kl_discovered_presence: Float[Tensor, " B"]
    kl_discovered_where: Float[Tensor, " B"]
    kl_discovered_what: Float[Tensor, " B"]
    kl_discovered_depth: Float[Tensor, " B"]
    kl_propagated_presence: Float[Tensor, " B"]
    kl_propagated_where: Float[Tensor, " B"]
    kl_propagated_what: Float[Tensor, " B"]
    kl_propagated_depth: Float[Tensor, " B"]
    kl_background: Float[Tensor, " B"]

    @property
    def elbo(self) -> Float[Tensor, " B"]:
        kls = [getattr(self, field.name) for field in fields(self)[1:]]
        return self.log_likelihood - torch.stack(kls).sum(0)

    def to_dict(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Activity:
    """What the model was busy with, per clip and frame; the guards watch these."""

    objects: Float[Tensor, " B"]
    """Objects alive."""
    discovered: Float[Tensor, " B"]
    """Objects born."""
    turned_away: Float[Tensor, " B"]
    """Births that found no free slot."""
    crowded_out: Float[Tensor, " B"]
    """Cells that wanted a birth beyond the number of proposals."""
    rejected: Float[Tensor, " B"]
    """Proposals refused because propagated objects explain them."""
    foreground: Float[Tensor, " B"]
    """Share of the pixels covered by objects."""
    squared_error: Float[Tensor, " B"]
    """Mean squared error of the reconstruction."""

    def to_dict(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Painting(NamedTuple):
    """T frames as the model draws them."""

    picture: Float[Tensor, "T*B 3 H W"]
    background: Float[Tensor, "T*B 3 H W"] | None
    foreground: Foreground
    kl_background: Float[Tensor, "T B"]
    memory: BackgroundMemory | None


class Explained(NamedTuple):
    """T frames, drawn and charged for."""

    seen: list[Seen]
    terms: ElboTerms
    activity: Activity
    painting: Painting
    past: Past
    """What the priors remember after them."""


def explain(
    world: World,
    frames: Float[Tensor, "T B C H W"],
    seen: list[Seen],
    past: Past,
    estimator: Estimator,
    presence_prior: float | Tensor,
    cut_gradients: bool = False,
) -> Explained:
    """The frames of `seen`, after a `past`. With `cut_gradients` no gradient goes from a frame to those before."""
    images, still, ruler = frames, None, None
    if world.config.still:
        images, still, ruler = frames[:, :, :3], frames[:, :, 3:6], read_ruler(frames[-1, :, 6:])
    steps, clips = images.shape[:2]
    painting = paint(world, images, still, seen, past.background, estimator, cut_gradients)
    followed = [one.following for one in seen if one.following]
    memories, memory = world.propagation.prior.remember([one.entered for one in followed], past.objects)
    propagated = [free(clips, images)]
    for group in alike(list(zip(followed, memories, strict=True)), lambda pair: pair[0].latent.shape).values():
        following = together([pair[0] for pair in group])
        transition = world.propagation.prior(torch.cat([pair[1] for pair in group]), following.entered.last)
        propagated.append(over_time(following.costs(transition, estimator), clips))
    # The first frame has proposals for all slots, later ones fewer.
    groups = {
        key: together([one.proposals for one in group])
        for key, group in alike(seen, lambda one: (one.following is None, one.proposals.cells.shape)).items()
    }
    discovered = [over_time(group.costs(presence_prior, estimator), clips) for group in groups.values()]
    squared_error = (painting.picture - images.flatten(0, 1)).square().sum((1, 2, 3)).view(steps, clips)
    terms = ElboTerms(
        pixel_log_likelihood(squared_error.sum(0), images[:, 0].numel(), world.config.sigma),
        *total(discovered),
        *total(propagated),
        painting.kl_background.sum(0),
    )
    proposals = {first: [group for (key, _), group in groups.items() if key is first] for first in (True, False)}
    with torch.no_grad():
        busy = activity(world.config, seen, proposals, painting.foreground, squared_error / images[0, 0].numel())
    past = Past(memory, painting.memory, None if still is None else still[-1], ruler)
    return Explained(seen, terms, busy, painting, past)


def pixel_log_likelihood(squared_error: Float[Tensor, " B"], pixels: int, sigma: float) -> Float[Tensor, " B"]:
    """Of independent normal pixels, from the sum of their squared errors."""
    return -0.5 * squared_error / sigma**2 - pixels * (math.log(sigma) + 0.5 * math.log(2 * math.pi))


def paint(
    world: World,
    images: Float[Tensor, "T B 3 H W"],
    still: Float[Tensor, "T B 3 H W"] | None,
    seen: list[Seen],
    memory: BackgroundMemory | None,
    estimator: Estimator,
    cut_gradients: bool = False,
) -> Painting:
    """The objects of all frames over the background, which is given, modelled or black."""
    most = max(one.shown.where.shape[1] for one in seen)
    foreground = draw(together([one.shown.padded(most) for one in seen]), (images.shape[-2], images.shape[-1]))
    if world.background is None or memory is None:
        free = images.new_zeros(images.shape[:2])
        given = None if still is None else still.flatten(0, 1)
        return Painting(compose(foreground, given), given, foreground, free, None)
    mask = foreground.mask.detach().unflatten(0, images.shape[:2])
    noise = torch.stack([one.background_noise for one in seen])
    behind = world.background(images, mask, noise, memory, estimator, cut_gradients)
    picture = compose(foreground, behind.picture)
    return Painting(picture, behind.picture, foreground, behind.kl, behind.memory)


def activity(
    config: ModelConfig,
    seen: list[Seen],
    proposals: dict[bool, list[Proposals]],
    foreground: Foreground,
    squared_error: Float[Tensor, "T B"],
) -> Activity:
    """Means over time. `proposals` are the first frame's (True) and those of later ones."""
    steps, clips = squared_error.shape

    def mean(values: list[Tensor]) -> Tensor:
        return torch.cat([torch.zeros_like(squared_error[0]), *values]).view(-1, clips).sum(0) / steps

    def excess(group: Proposals) -> Tensor:
        """Cells that wanted a birth beyond those that were looked at."""
        wanted = (group.presence > config.birth_presence).sum(-1)
        return (wanted - group.cells.shape[1]).clamp(min=0)

    everyone = [*proposals[True], *proposals[False]]
    return Activity(
        objects=mean([torch.cat([one.state.objects.alive for one in seen]).sum((1, 2))]),
        discovered=mean([torch.cat([one.state.discovered for one in seen]).sum(1)]),
        # In the first frame it is slots that are short.
        turned_away=mean([one.state.turned_away for one in seen]) + mean(list(map(excess, proposals[True]))),
        crowded_out=mean(list(map(excess, proposals[False]))),
        rejected=mean([(group.rejected * (group.proposed > config.birth_presence)).sum(-1) for group in everyone]),
        foreground=mean([foreground.mask.mean((1, 2, 3))]),
        squared_error=squared_error.mean(0),
    )


def free(clips: int, like: Tensor) -> Costs:
    return Costs(*torch.zeros(4, clips, device=like.device))


def total(costs: list[Costs]) -> Costs:
    return Costs(*(torch.stack(kind).sum(0) for kind in zip(*costs, strict=True)))


def over_time(costs: Costs, clips: int) -> Costs:
    """From each frame of each clip to each clip."""
    return Costs(*(cost.view(-1, clips).sum(0) for cost in costs))
