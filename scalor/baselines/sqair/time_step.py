"""One time step: inference (propagate, then discover) and generation from the prior."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.baselines.sqair.config import SQAIRConfig
from scalor.baselines.sqair.networks import (
    GlimpseNetworks,
    SequentialDiscovery,
    SequentialPropagation,
    Transition,
    each_slot,
)
from scalor.baselines.sqair.sampling import Sampler, has_room, stopping_log_prob
from scalor.baselines.sqair.state import Candidates, Costs, DiscoveryPrior, EncodedFrame, SQAIRState, StepResult
from scalor.model.image_encoder import shrinking_stack
from scalor.nn.distributions import Normal, log_prob_bernoulli, logit
from scalor.nn.interface import Tracker


class TimeStep(Tracker):
    """The networks of SQAIR, and one time step of inference and of generation."""

    config: SQAIRConfig

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        self.config = config
        patch, channels = config.patch, config.image_channels
        cells = (config.frame[0] // patch) * (config.frame[1] // patch)
        self.features = shrinking_stack(3, channels, (patch, patch))
        self.encoder = nn.Sequential(nn.Linear(channels[-1] * cells, config.hidden_dim), nn.ELU())
        self.appearance = GlimpseNetworks(config)
        self.propagation = SequentialPropagation(config)
        self.discovery = SequentialDiscovery(config)
        self.transition = Transition(config)

    def start(self, rows: int, like: Tensor) -> SQAIRState:
        """Return the state before the first frame, which has no slots."""

        def none(width: int) -> Tensor:
            return torch.zeros(rows, 0, width, device=like.device)

        hidden = self.config.hidden_dim
        ids = torch.zeros(rows, 0, dtype=torch.int64, device=like.device)
        next_id = torch.zeros(rows, dtype=torch.int64, device=like.device)
        return SQAIRState(
            none(self.config.latents), none(1), none(1), none(hidden), none(hidden), none(1), ids, next_id
        )

    def encode(self, images: Float[Tensor, "T B 3 H W"], particles: int) -> list[EncodedFrame]:
        """Encode all frames at once; the particles of a clip share one encoding."""
        codes = self.encoder(self.features(images.flatten(0, 1)).flatten(1)).float()
        codes = codes.view(*images.shape[:2], -1).repeat_interleave(particles, 1)
        return [EncodedFrame(*view) for view in zip(images, codes, strict=True)]

    def infer(
        self, scene: SQAIRState, view: EncodedFrame, sampler: Sampler, discovery_prior: DiscoveryPrior | None = None
    ) -> StepResult:
        """Run one step of inference: propagate, then discover. A scene without slots is that before the first frame."""
        discovery_prior = discovery_prior or DiscoveryPrior(self.config.first_discovery)
        first = scene.latent.shape[1] == 0
        kept, tracker = self.nothing(scene), scene.tracker
        if not first:
            kept, tracker = self.propagation(scene, view, self.appearance, sampler)
        room = (self.config.slots - kept.taken.sum(1)) * (1.0 if first else discovery_prior.newcomers)
        new = self.discovery(kept, room, first, self.steps(first), view, self.appearance, sampler)
        memory = scene.memory if first else each_slot(self.transition.remember, scene.latent, scene.memory)
        there = scene.present[..., 0]
        log_q = (there * log_prob_bernoulli(kept.logits, kept.taken)[..., 0]).sum(1)
        prior_logits, prior = self.transition(memory, scene.latent)
        log_p = (there * log_prob_bernoulli(prior_logits, kept.taken)[..., 0]).sum(1)
        stop_q = stopping_log_prob(new.logits, new.taken, room)
        later = logit(self.config.later_discovery, new.logits)
        chance = discovery_prior.eagerness * logit(discovery_prior.presence_prior, new.logits) if first else later
        stop_p = stopping_log_prob(chance, new.taken, room)
        costs = Costs(
            stop_q - stop_p, *latent_costs(new, Normal.standard(new.latent)), log_q - log_p, *latent_costs(kept, prior)
        )
        return StepResult(self.pack(scene, kept, tracker, memory, new), log_q + stop_q, costs)

    def imagine(self, scene: SQAIRState, sampler: Sampler, discovery_rate: float) -> SQAIRState:
        """Run one step of generation from the prior.

        `discovery_rate` is the probability of one more object, at each of the steps of discovery.
        """
        memory = each_slot(self.transition.remember, scene.latent, scene.memory)
        logits, prior = self.transition(memory, scene.latent)
        kept = Candidates(logits, scene.present * sampler.choose(logits), prior, sampler.normal(prior))
        blank = scene.latent.new_zeros(len(scene.latent), self.steps(first=False), self.config.latents)
        room = has_room(self.config.slots - kept.taken.sum(1), blank.shape[1])
        chance = logit(discovery_rate, blank[..., :1]) if discovery_rate else torch.full_like(blank[..., :1], -1e9)
        going = sampler.choose(chance).cumprod(1) * room[..., None]
        born = Normal.standard(blank)
        new = Candidates(chance, going, born, sampler.normal(born))
        return self.pack(scene, kept, scene.tracker, memory, new)

    def pack(self, scene: SQAIRState, kept: Candidates, tracker: Tensor, memory: Tensor, new: Candidates) -> SQAIRState:
        """Pack propagated and then discovered objects into the first slots, in order; empty slots come last."""
        blank = tracker.new_zeros(*new.taken.shape[:2], tracker.shape[-1])
        taken = torch.cat([kept.taken, new.taken], 1)
        columns = [
            torch.cat([kept.latent, new.latent], 1),
            taken,
            torch.cat([kept.logits, new.logits], 1).sigmoid(),
            torch.cat([tracker, blank], 1),
            torch.cat([memory, blank], 1),
            torch.cat([torch.zeros_like(kept.taken), new.taken], 1),
        ]
        born = scene.next_id[:, None] + torch.arange(new.taken.shape[1], device=taken.device)
        ids = torch.where(taken[..., 0] > 0, torch.cat([scene.id, born], 1), -1)
        order = taken[..., 0].argsort(dim=1, descending=True, stable=True)[:, : self.config.slots]
        widths = [column.shape[-1] for column in columns]
        packed = torch.cat(columns, -1).gather(1, order[..., None].expand(-1, -1, sum(widths)))
        next_id = scene.next_id + new.taken.sum((1, 2)).long()
        after: list[Tensor] = [*packed.split(widths, -1), ids.gather(1, order), next_id]
        return SQAIRState(*after)

    def nothing(self, scene: SQAIRState) -> Candidates:
        """Return the result of propagation in the first frame, which has no objects to propagate."""
        return Candidates(scene.present, scene.present, Normal(scene.latent, scene.latent), scene.latent)

    def steps(self, first: bool) -> int:
        """Return D, the largest number of discoveries in the first frame or in a later one."""
        return self.config.slots if first else min(self.config.slots, self.config.discoveries)


def latent_costs(part: Candidates, prior: Normal) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """Return log q - log p of z_where and of z_what, summed over the objects that are present."""
    ratio = (part.taken * (part.q.log_prob(part.latent) - prior.log_prob(part.latent))).sum(1)
    return ratio[:, :4].sum(1), ratio[:, 4:].sum(1)
