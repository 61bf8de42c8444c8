"""Evidence lower bound (ELBO) of video clips, computed for all frames together (paper: Section 3.2, "Training").

The paper's bound is the expectation under q of Σ_t log p(x_t | z_t) - KL[ q(z_t | z_<t, x_≤t) ‖ p(z_t | z_<t) ]. Here
the KL divergence is split by kind of latent, and the expectation is estimated from one sample. `World.follow` draws
that sample frame by frame; this module renders it and adds up the terms. Per clip, in nats::

    ELBO = Σ_t [ log N(x_t; y_t, σ² I)                                                      (1)
               - Σ_n         KL( q(z_pres_tn | ·) ‖ p(z_pres_tn | z_<t,n) )                 (2)
               - Σ_n z_pres_tn · KL( q(z_tn | ·) ‖ p(z_tn | z_<t,n) )                       (3)
               - Σ_g         KL( q(z_pres_tg | ·) ‖ Bernoulli(π_tg) )                       (4)
               - Σ_d z_pres_td · (1 - r_td) · KL( q(z_td | ·) ‖ N(0, I) )                   (5)
               - KL( q(z_bg_t | ·) ‖ p(z_bg_t | z_bg_<t) ) ]                                (6)

    y_t   = M_t ⊙ foreground_t + (1 - M_t) ⊙ background_t        the rendered frame
    z     = (z_where, z_what, z_depth)                           (3) and (5) are one sum for each of the three
    π_tg  = π, the presence prior; in the cell of a rejected proposal ε = 1e-8 (`REJECTED_PRESENCE`)

    t   frames 1 to T; "·" stands for the frames up to t and the other latents that q depends on
    n   objects that were alive after frame t-1, so (2) and (3) are 0 in the first frame
    g   all grid cells
    d   proposals: the D cells with the highest presence (`World.proposal_count`; fewer with `spare_below`). Only these
        cells get latents other than presence
    r   1 for a rejected proposal, 0 for any other
    σ   `config.sigma`, the standard deviation of the pixel noise

Where each term is computed:

====  ============================================================================================================
term  function
====  ============================================================================================================
(1)   `pixel_log_likelihood`; y_t comes from `paint` (`scalor.model.rendering.draw` and `compose`)
(2)   `Following.costs`, with the prior from `TransitionPrior.remember` and `TransitionPrior.forward`
(3)   `Following.costs`, as (2)
(4)   `Proposals.costs`; `Estimator.rejection_cost` replaces π by ε
(5)   `Proposals.costs`; `Estimator.charged` gives the weight z_pres · (1 - r)
(6)   `Background.forward`, called by `paint`; p is N(0, I) in the first frame. 0 where the background is black or given
sum   `explain` sums each term over time; `ElboTerms.elbo` is (1) minus all KL terms
====  ============================================================================================================

The estimator decides what a KL term is:

- `Relaxed` (training) and `Mode` (most likely values) use closed forms. With `Relaxed` the z_pres in (3), (5) and y_t
  are Gumbel-relaxed samples between 0 and 1, so the value is only a surrogate of the bound. With `Mode` all samples
  are replaced by posterior means and presence probabilities.
- `Exact` replaces each KL by log q(z) - log p(z) at the sample, with z_pres 0 or 1. Rejection is a deterministic part
  of both q and p and cancels: π_tg is π in all cells, and the weight in (5) is z_pres alone. Then ELBO is the log
  importance weight log p(x, z) - log q(z | x) of `SCALOR.log_likelihood`.

Births, deaths, duplicates and the choice of slots are deterministic functions of the samples and add no term. Accepted
proposals that are not born and objects that end in frame t are rendered in y_t and have their KL terms in frame t.

The paper conditions the prior of z_bg_t on the objects, too, and the prior of a proposal on the propagated objects.
Here the prior of z_bg_t does not depend on objects, and a proposal depends on them through rejection only.

Letters: B clips, T frames, H by W pixels.
"""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.config import ModelConfig
from scalor.data.observation import Observation
from scalor.model.background import BackgroundMemory
from scalor.model.costs import Costs
from scalor.model.discovery import Proposals
from scalor.model.rendering import Foreground, compose, draw
from scalor.model.world import PosteriorStep, PriorState, World
from scalor.nn.distributions import Estimator
from scalor.nn.records import alike, together


@dataclass(frozen=True)
class ElboTerms:
    """Terms of the bound, nats per clip. `elbo` is the log-likelihood minus all other terms."""

    log_likelihood: Float[Tensor, " B"]
    """Term (1)."""
    kl_discovered_presence: Float[Tensor, " B"]
    """Term (4)."""
    kl_discovered_where: Float[Tensor, " B"]
    """Term (5), z_where."""
    kl_discovered_what: Float[Tensor, " B"]
    """Term (5), z_what."""
    kl_discovered_depth: Float[Tensor, " B"]
    """Term (5), z_depth."""
    kl_propagated_presence: Float[Tensor, " B"]
    """Term (2)."""
    kl_propagated_where: Float[Tensor, " B"]
    """Term (3), z_where."""
    kl_propagated_what: Float[Tensor, " B"]
    """Term (3), z_what."""
    kl_propagated_depth: Float[Tensor, " B"]
    """Term (3), z_depth."""
    kl_background: Float[Tensor, " B"]
    """Term (6)."""

    @property
    def elbo(self) -> Float[Tensor, " B"]:
        """Return the evidence lower bound, nats per clip."""
        kls = [getattr(self, field.name) for field in fields(self)[1:]]
        return self.log_likelihood - torch.stack(kls).sum(0)

    def to_dict(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Activity:
    """Statistics of each clip, as means over its frames. `scalor.training.guards` checks them during training."""

    objects: Float[Tensor, " B"]
    """Number of objects alive."""
    discovered: Float[Tensor, " B"]
    """Number of objects born."""
    turned_away: Float[Tensor, " B"]
    """Number of births without a free slot; in the first frame also cells above the birth threshold beyond D."""
    crowded_out: Float[Tensor, " B"]
    """Number of cells above the birth threshold beyond the D proposals, in frames after the first."""
    rejected: Float[Tensor, " B"]
    """Number of proposals above the birth threshold that were rejected."""
    foreground: Float[Tensor, " B"]
    """Mean of the foreground mask: share of the frame that objects cover."""
    squared_error: Float[Tensor, " B"]
    """Mean squared error of the reconstruction per pixel and channel."""

    def to_dict(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Painting(NamedTuple):
    """Reconstruction of T frames."""

    picture: Float[Tensor, "T*B 3 H W"]
    """The rendered frames y_t."""
    background: Float[Tensor, "T*B 3 H W"] | None
    """None where the background is black."""
    foreground: Foreground
    kl_background: Float[Tensor, "T B"]
    memory: BackgroundMemory | None
    """State of the background's prior after the last frame; None where the background is not modelled."""


class ElboResult(NamedTuple):
    """The evidence lower bound of T frames, and the reconstruction it belongs to."""

    seen: list[PosteriorStep]
    terms: ElboTerms
    activity: Activity
    painting: Painting
    past: PriorState
    """State of the priors after the last frame."""


def explain(
    world: World,
    video: Observation,
    seen: list[PosteriorStep],
    past: PriorState,
    estimator: Estimator,
    presence_prior: float | Tensor,
    cut_gradients: bool = False,
) -> ElboResult:
    """Render all frames and compute the terms of the evidence lower bound.

    Parameters
    ----------
    world
        The networks.
    video
        The frames, [T, B].
    seen
        The result of `World.follow` for each frame.
    past
        State of the priors before the first frame.
    estimator
        Decides whether KL terms are in closed form or estimated from the sample.
    presence_prior
        Prior probability π of a discovery in each cell.
    cut_gradients
        Stop gradients from the background prior of a frame to the latents of earlier frames.
    """
    images = video.image
    steps, clips = images.shape[:2]
    painting = paint(world, images, video.still, seen, past.background, estimator, cut_gradients)
    followed = [one.following for one in seen if one.following]
    memories, memory = world.propagation.prior.remember([one.entered for one in followed], past.objects)
    propagated = [free(clips, images)]
    for group in alike(list(zip(followed, memories, strict=True)), lambda pair: pair[0].latent.shape).values():
        following = together([pair[0] for pair in group])
        transition = world.propagation.prior(torch.cat([pair[1] for pair in group]), following.entered.last)
        propagated.append(over_time(following.costs(transition, estimator), clips))
    # The first frame has proposals for all slots, later frames have fewer.
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
    last = video[-1]
    past = PriorState(memory, painting.memory, last.still, last.ruler)
    return ElboResult(seen, terms, busy, painting, past)


def pixel_log_likelihood(squared_error: Float[Tensor, " B"], pixels: int, sigma: float) -> Float[Tensor, " B"]:
    """Return the log-likelihood of independent normal pixels from the sum of their squared errors, nats per clip."""
    return -0.5 * squared_error / sigma**2 - pixels * (math.log(sigma) + 0.5 * math.log(2 * math.pi))


def paint(
    world: World,
    images: Float[Tensor, "T B 3 H W"],
    still: Float[Tensor, "T B 3 H W"] | None,
    seen: list[PosteriorStep],
    memory: BackgroundMemory | None,
    estimator: Estimator,
    cut_gradients: bool = False,
) -> Painting:
    """Render the objects of all frames over the background, which is given, modelled or black."""
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
    seen: list[PosteriorStep],
    proposals: dict[bool, list[Proposals]],
    foreground: Foreground,
    squared_error: Float[Tensor, "T B"],
) -> Activity:
    """Compute the statistics per clip; `proposals` are those of the first frame (True) and of later ones (False)."""
    steps, clips = squared_error.shape

    def mean(values: list[Tensor]) -> Tensor:
        return torch.cat([torch.zeros_like(squared_error[0]), *values]).view(-1, clips).sum(0) / steps

    def excess(group: Proposals) -> Tensor:
        """Count the cells above the birth threshold beyond the D proposals."""
        wanted = (group.presence > config.birth_presence).sum(-1)
        return (wanted - group.cells.shape[1]).clamp(min=0)

    everyone = [*proposals[True], *proposals[False]]
    return Activity(
        objects=mean([torch.cat([one.state.objects.alive for one in seen]).sum((1, 2))]),
        discovered=mean([torch.cat([one.state.discovered for one in seen]).sum(1)]),
        # In the first frame there are as many proposals as slots, so cells beyond them lack a slot.
        turned_away=mean([one.state.turned_away for one in seen]) + mean(list(map(excess, proposals[True]))),
        crowded_out=mean(list(map(excess, proposals[False]))),
        rejected=mean([(group.rejected * (group.proposed > config.birth_presence)).sum(-1) for group in everyone]),
        foreground=mean([foreground.mask.mean((1, 2, 3))]),
        squared_error=squared_error.mean(0),
    )


def free(clips: int, like: Tensor) -> Costs:
    """Return costs of zero."""
    return Costs(*torch.zeros(4, clips, device=like.device))


def total(costs: list[Costs]) -> Costs:
    """Add up costs, kind by kind."""
    return Costs(*(torch.stack(kind).sum(0) for kind in zip(*costs, strict=True)))


def over_time(costs: Costs, clips: int) -> Costs:
    """Sum costs of T * B frames over time, to B clips."""
    return Costs(*(cost.view(-1, clips).sum(0) for cost in costs))
