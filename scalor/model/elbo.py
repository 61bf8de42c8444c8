"""Evidence lower bound (ELBO) of video clips (paper: Section 3.2, "Training"; the equation is that of `explain`).

`World.posterior_step` samples the latents of the frames one by one. Here all frames together are rendered, compared
with the images, and charged for their latents.

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
from scalor.model.discovery import Proposals
from scalor.model.latents import LATENTS
from scalor.model.rendering import Rendering, compose, draw
from scalor.model.time_step import PosteriorStep, PriorState, World
from scalor.nn.distributions import Estimator
from scalor.nn.records import concatenate, group_by

KL_TERMS = tuple(
    [f"kl_{trail}_{name}" for trail in ("discovered", "propagated") for name in ("presence", *LATENTS)]
    + ["kl_background"]
)
"""Names of the KL terms of the bound."""


@dataclass(frozen=True)
class ElboTerms:
    """Terms of the bound, nats per clip."""

    log_likelihood: Float[Tensor, " B"]
    """Term (1) of the equation of `explain`."""
    kl: dict[str, Float[Tensor, " B"]]
    """Terms (2) to (6), named as in `KL_TERMS`."""

    @property
    def elbo(self) -> Float[Tensor, " B"]:
        """Return the evidence lower bound, nats per clip: the log-likelihood minus all other terms."""
        return self.log_likelihood - torch.stack(list(self.kl.values())).sum(0)

    def to_dict(self) -> dict[str, Tensor]:
        """Return all terms by name."""
        return {"log_likelihood": self.log_likelihood, **self.kl}


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
        """Return the statistics by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class ElboResult(NamedTuple):
    """The evidence lower bound of T frames, and what it was computed from."""

    steps: list[PosteriorStep]
    terms: ElboTerms
    activity: Activity
    rendering: Rendering
    """The reconstruction of all frames, frame after frame."""
    past: PriorState
    """State of the priors after the last frame."""


def explain(
    world: World,
    video: Observation,
    steps: list[PosteriorStep],
    past: PriorState,
    estimator: Estimator,
    presence_prior: float | Tensor,
    cut_gradients: bool = False,
) -> ElboResult:
    """Render all frames and compute the terms of the evidence lower bound.

    The paper's bound is the expectation, under the posterior q, of Σ_t log p(x_t | z_t) - KL[ q(z_t | z_<t, x_≤t) ‖
    p(z_t | z_<t) ]. The expectation is estimated from the one sample of `steps`. Per clip, in nats::

        ELBO = Σ_t [ log N(x_t ; y_t, σ² I)                                                                 (1)
                   - Σ_n              KL( q(z_pres_tn | z_<t,n , x_≤t)  ‖  p(z_pres_tn | z_<t,n) )          (2)
                   - Σ_n  z_pres_tn · KL( q(z_tn | z_<t,n , x_≤t)  ‖  p(z_tn | z_<t,n) )                    (3)
                   - Σ_g              KL( q(z_pres_tg | x_≤t , z_t^P)  ‖  Bernoulli(π_tg) )                 (4)
                   - Σ_d  a_td      · KL( q(z_td | x_≤t , z_t^P)  ‖  N(0, I) )                              (5)
                   - KL( q(z_bg_t | x_t , 1 - M_t)  ‖  p(z_bg_t | z_bg_<t) ) ]                              (6)

        z     = (z_where, z_what, z_depth); (3) and (5) are one term for each of the three
        y_t   = M_t ⊙ foreground_t + (1 - M_t) ⊙ background_t, the rendered frame
        M_t   the mask of all objects
        z_t^P the propagated objects
        π_tg  = π, the presence prior; in the cell of a rejected proposal 1e-8 (`REJECTED_PRESENCE`)
        a_td  = z_pres_td · (1 - r_td), where r_td is 1 for a rejected proposal and 0 for any other
        σ     `config.sigma`, the standard deviation of the pixel noise

        t     frames 1 to T
        n     propagation trail: the objects alive after frame t - 1. There are none in the first frame
        g     discovery trail: all grid cells
        d     discovery trail: the D proposals of the frame, which are the cells of the highest presence. Only these
              have latents other than presence (`World.proposal_count`; fewer with `spare_below`)

    The log-likelihood (1) compares the images with the rendered frames of `render`. The propagation trail (2, 3) is
    `PropagationPosterior.kl`; its prior is a GRU over the latents of each object (`TransitionPrior`). The discovery
    trail (4, 5) is `Proposals.kl`. The background (6) is `Background.forward`; its prior is N(0, I) in the first
    frame, and the term is 0 where the background is black or given.

    The estimator decides what a KL term is. `Relaxed` (training) and `Mode` (most likely values) use closed forms.
    With `Relaxed`, z_pres in (3), (5) and y_t is a Gumbel-relaxed sample between 0 and 1, so the value is a surrogate
    of the bound. `Exact` replaces each KL by log q(z) - log p(z) at the sample, with z_pres 0 or 1. Rejection is a
    deterministic part of both q and p and cancels there: π_tg is π in all cells and a_td is z_pres_td. Then ELBO is the
    log importance weight log p(x, z) - log q(z | x) of `SCALOR.log_likelihood`.

    Births, deaths, duplicates and the choice of slots are deterministic functions of the samples and add no term.
    Accepted proposals that are not born and objects that end in frame t are rendered in y_t and have KL terms in frame
    t. In the paper the prior of z_bg_t also depends on the objects, and the prior of a proposal on the propagated
    objects. Here the first does not, and the second does through rejection only.

    Parameters
    ----------
    world
        The networks.
    video
        The frames, [T, B].
    steps
        The result of `World.posterior_step` for each frame.
    past
        State of the priors before the first frame.
    estimator
        Decides whether KL terms are in closed form or estimated from the sample.
    presence_prior
        Prior probability π of a discovery in each cell.
    cut_gradients
        Stop gradients from the background prior of a frame to the latents of earlier frames.
    """
    length, clips = video.image.shape[:2]
    rendering, kl_background, behind = render(world, video, steps, past.background, estimator, cut_gradients)

    # (1) log-likelihood
    squared_error = (rendering.image - video.image.flatten(0, 1)).square().sum((1, 2, 3)).view(length, clips)
    pixels = video.image[:, 0].numel()
    log_likelihood = pixel_log_likelihood(squared_error.sum(0), pixels, world.config.sigma)

    # (2, 3) propagation trail; only the RNN of the prior runs frame by frame
    posteriors = [one.propagated for one in steps if one.propagated is not None]
    memories, memory = world.propagation.prior.remember([one.entered for one in posteriors], past.objects)
    propagated = [dict.fromkeys(("presence", *LATENTS), torch.zeros(clips, device=video.image.device))]
    pairs = list(zip(posteriors, memories, strict=True))
    for group in group_by(pairs, lambda pair: pair[0].latent.shape).values():
        posterior, hidden = concatenate(group)
        p_presence, p_latents = world.propagation.prior(hidden, posterior.entered.last)
        propagated.append(over_time(posterior.kl(p_presence, p_latents, estimator), clips))

    # (4, 5) discovery trail; the first frame has proposals for all slots, later frames have fewer
    proposals = {
        first: [concatenate(alike) for alike in group_by(part, lambda one: one.cells.shape).values()]
        for first, part in (
            (True, [one.proposals for one in steps if one.propagated is None]),
            (False, [one.proposals for one in steps if one.propagated is not None]),
        )
    }
    discovered = [
        over_time(group.kl(presence_prior, estimator), clips) for group in (*proposals[True], *proposals[False])
    ]

    # (6) background
    kls = [*total(discovered).values(), *total(propagated).values(), kl_background.sum(0)]
    terms = ElboTerms(log_likelihood, dict(zip(KL_TERMS, kls, strict=True)))

    with torch.no_grad():
        busy = activity(world.config, steps, proposals, rendering, squared_error / video.image[0, 0].numel())
    last = video[-1]
    return ElboResult(steps, terms, busy, rendering, PriorState(memory, behind, last.still, last.ruler))


def pixel_log_likelihood(squared_error: Float[Tensor, " B"], pixels: int, sigma: float) -> Float[Tensor, " B"]:
    """Return the log-likelihood of independent normal pixels from the sum of their squared errors, nats per clip."""
    return -0.5 * squared_error / sigma**2 - pixels * (math.log(sigma) + 0.5 * math.log(2 * math.pi))


def render(
    world: World,
    video: Observation,
    steps: list[PosteriorStep],
    memory: BackgroundMemory | None,
    estimator: Estimator,
    cut_gradients: bool = False,
) -> tuple[Rendering, Float[Tensor, "T B"], BackgroundMemory | None]:
    """Render the objects of all frames over the background, which is given, modelled or black.

    Returns
    -------
    tuple[Rendering, Tensor, BackgroundMemory | None]
        The rendered frames; the KL divergence of z_bg in each frame, nats; the state of the background's prior after
        the last frame, None where the background is not modelled.
    """
    most = max(one.shown.where.shape[1] for one in steps)
    shown = concatenate([one.shown.padded(most) for one in steps])
    foreground = draw(shown, video.size, world.config.depth_sharpness)
    first_two = video.image.shape[:2]
    if world.background is None or memory is None:
        given = None if video.still is None else video.still.flatten(0, 1)
        return compose(foreground, given), video.image.new_zeros(first_two), None
    mask = foreground.mask.detach().unflatten(0, first_two)
    noise = torch.stack([one.background_noise for one in steps])
    background, kl, memory = world.background(video.image, mask, noise, memory, estimator, cut_gradients)
    return compose(foreground, background), kl, memory


def activity(
    config: ModelConfig,
    steps: list[PosteriorStep],
    proposals: dict[bool, list[Proposals]],
    rendering: Rendering,
    squared_error: Float[Tensor, "T B"],
) -> Activity:
    """Compute the statistics per clip; `proposals` are those of the first frame (True) and of later ones (False)."""
    length, clips = squared_error.shape

    def mean(values: list[Tensor]) -> Tensor:
        return torch.cat([torch.zeros_like(squared_error[0]), *values]).view(-1, clips).sum(0) / length

    def excess(group: Proposals) -> Tensor:
        """Count the cells above the birth threshold beyond the D proposals."""
        wanted = (group.presence > config.birth_presence).sum(-1)
        return (wanted - group.cells.shape[1]).clamp(min=0)

    everyone = [*proposals[True], *proposals[False]]
    return Activity(
        objects=mean([torch.cat([one.state.objects.alive for one in steps]).sum((1, 2))]),
        discovered=mean([torch.cat([one.state.discovered for one in steps]).sum(1)]),
        # In the first frame there are as many proposals as slots, so cells beyond them lack a slot.
        turned_away=mean([one.state.turned_away for one in steps]) + mean(list(map(excess, proposals[True]))),
        crowded_out=mean(list(map(excess, proposals[False]))),
        rejected=mean([(group.rejected * (group.proposed > config.birth_presence)).sum(-1) for group in everyone]),
        foreground=mean([rendering.foreground.mask.mean((1, 2, 3))]),
        squared_error=squared_error.mean(0),
    )


def total(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Add up KL terms, name by name."""
    return {name: torch.stack([part[name] for part in parts]).sum(0) for name in parts[0]}


def over_time(terms: dict[str, Tensor], clips: int) -> dict[str, Tensor]:
    """Sum KL terms of T * B frames over time, to B clips."""
    return {name: term.view(-1, clips).sum(0) for name, term in terms.items()}
