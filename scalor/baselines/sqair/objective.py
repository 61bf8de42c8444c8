"""Inference on whole videos and the objective of training: the importance-weighted bound with VIMCO's gradient.

k particles are drawn from the posterior q; w = p(x, z) / q(z | x) is the weight of a particle. The bound is
log((w_1 + ... + w_k) / k) (Burda et al. 2016). Continuous latents are reparameterised. A discrete choice has no such
gradient: its log probability is multiplied by a reward, the bound minus an estimate of the bound without this particle.
The estimate comes from the other particles (Mnih and Rezende 2016).

Letters: B clips, k particles.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.baselines.sqair.sampling import NoiseSampler, Sampler, samplers_of
from scalor.baselines.sqair.state import Costs, DiscoveryPrior, EncodedFrame, SQAIRState, StepResult
from scalor.baselines.sqair.time_step import TimeStep
from scalor.data.clip import Truth
from scalor.data.observation import Observation
from scalor.kernels import paste
from scalor.model.elbo import pixel_log_likelihood
from scalor.nn.distributions import FrameNoise, Noise
from scalor.nn.interface import Annealed, Bound, BoundFunction


def importance_weighted_bound(log_weights: Float[Tensor, "B k"]) -> Float[Tensor, " B"]:
    """Return the log of the mean weight.

    Its expectation is at most log p(x), and approaches it as the number of particles grows.
    """
    return log_weights.logsumexp(1) - math.log(log_weights.shape[1])


def vimco_surrogate(log_weights: Float[Tensor, "B k"], log_choices: Float[Tensor, "B k"]) -> Float[Tensor, " B"]:
    """Return an objective whose value is the bound and whose gradient is VIMCO's.

    The gradient is an unbiased estimate of that of the expected bound. `log_choices` is the log probability of all
    discrete choices of a particle under q.
    """
    bound = importance_weighted_bound(log_weights)
    with torch.no_grad():
        reward = bound[:, None] - bound_without(log_weights)
    return bound + (reward * (log_choices - log_choices.detach())).sum(1)


def bound_without(log_weights: Float[Tensor, "B k"]) -> Float[Tensor, "B k"]:
    """Return, for each particle, the bound with its weight replaced by the geometric mean of the other weights."""
    particles = log_weights.shape[1]
    assert particles > 1, "one particle has no others to compare it with"
    itself = torch.eye(particles, dtype=torch.bool, device=log_weights.device)
    everyone = log_weights[:, None].expand(-1, particles, -1)  # [B, k, k]: one row for each particle left out
    stand_in = everyone.masked_fill(itself, 0).sum(2) / (particles - 1)
    replaced = torch.where(itself, stand_in[..., None], everyone)
    return replaced.logsumexp(2) - math.log(particles)


class ParticleInference(NamedTuple):
    """Result of inference on whole videos."""

    log_weights: Float[Tensor, "B k"]
    """Log importance weight of each particle: log p(x, z) - log q(z | x), nats."""
    log_choices: Float[Tensor, "B k"]
    """Log probability of each particle's choices of presence under the posterior."""
    scenes: list[SQAIRState]
    """State after each frame."""
    numbers: dict[str, Float[Tensor, " B"]]
    """Metrics per clip, as means over particles: terms of the bound (nats), objects per frame, squared error."""


class Objective(TimeStep):
    """SQAIR's inference on whole videos, and its bound for training."""

    reported = (
        "log_likelihood",
        *(f"kl_{name}" for name in Costs._fields),
        *("objects", "discovered", "squared_error"),
    )

    def explain(
        self,
        video: Float[Tensor, "B T 3 H W"],
        draws: Sequence[Sampler],
        particles: int,
        discovery_prior: DiscoveryPrior | None = None,
        cut_gradients: bool = False,
        clip_object: float = 0.0,
        infer: Callable[..., StepResult] | None = None,
    ) -> ParticleInference:
        """Infer the latents frame by frame, then render all frames and compute their likelihood at once.

        Parameters
        ----------
        draws
            How latents are drawn, for each frame.
        cut_gradients
            Whether gradients stop between frames.
        clip_object
            Limit of an object's gradient from later frames, in multiples of the geometric mean; 0: no limit.
        infer
            Compiled version of `SQAIR.infer` to use instead of it.
        """
        infer = infer or self.infer
        clips, images = len(video), video.transpose(0, 1).contiguous()
        scene, seen = self.start(clips * particles, video), []
        for view, draw in zip(self.encode(images, particles), draws, strict=True):
            seen.append(infer(scene, view, draw, discovery_prior))
            scene = seen[-1].scene.detach() if cut_gradients else seen[-1].scene.evened(clip_object)
        picture = self.paint([one.scene for one in seen])
        error = (picture.unflatten(1, (clips, particles)) - images[:, :, None]).square().sum((0, 3, 4, 5)).flatten()
        log_likelihood = pixel_log_likelihood(error, video[0].numel(), self.config.sigma)
        costs = Costs(*(torch.stack(column).sum(0) for column in zip(*(one.costs for one in seen), strict=True)))
        numbers = {
            "log_likelihood": log_likelihood,
            **{f"kl_{name}": cost for name, cost in costs._asdict().items()},
            "objects": torch.stack([one.scene.present.sum((1, 2)) for one in seen]).mean(0),
            "discovered": torch.stack([one.scene.discovered.sum((1, 2)) for one in seen]).mean(0),
            "squared_error": error / video[0].numel(),
        }
        shape = (clips, particles)
        return ParticleInference(
            (log_likelihood - torch.stack(costs).sum(0)).view(shape),
            torch.stack([one.log_choices for one in seen]).sum(0).view(shape),
            [one.scene for one in seen],
            {name: number.detach().view(shape).mean(1) for name, number in numbers.items()},
        )

    def paint(self, scenes: list[SQAIRState]) -> Float[Tensor, "T R 3 H W"]:
        """Render the scenes: the sum of all glimpses, each pasted into its box."""
        latent, present = (torch.cat([getattr(scene, name) for scene in scenes]) for name in ("latent", "present"))
        glimpses = self.appearance.draw(latent[..., 4:]) * present[..., None, None]
        canvas = paste(glimpses, self.appearance.box(latent[..., :4]), self.config.frame)
        return canvas.view(len(scenes), -1, *canvas.shape[1:])

    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        """Return how many normal and uniform random numbers a clip needs per frame, at most."""
        return self.numbers_per_frame(self.config.particles)

    def numbers_per_frame(self, particles: int) -> tuple[int, int]:
        """Return how many normal and uniform random numbers a clip of `particles` particles needs per frame."""
        objects = particles * (self.config.slots + self.steps(first=False))
        return objects * self.config.latents, objects

    def bound(
        self,
        video: Observation,
        noise: Noise,
        now: Annealed,
        truth: Truth | None = None,
        infer: Callable[..., StepResult] | None = None,
    ) -> Bound:
        """Return the importance-weighted bound, with VIMCO's gradient.

        In sequences of fewer than `newcomers_from` frames nothing can be discovered after the first frame: it is the
        bound of a model without later discoveries. `infer` is a compiled version of `SQAIR.infer` to use instead.
        """
        particles = self.config.particles
        length = video.image.shape[1]
        newcomers = torch.full_like(now.presence_prior, float(length >= self.config.newcomers_from))
        discovery_prior = DiscoveryPrior(now.presence_prior, self.config.eagerness, newcomers)
        samplers = samplers_of(noise, length, particles)
        found = self.explain(
            video.image, samplers, particles, discovery_prior, now.cut_gradients, now.clip_object, infer
        )
        return Bound(vimco_surrogate(found.log_weights, found.log_choices), found.numbers)

    def compiled_bound(self) -> BoundFunction:
        """Return `bound` with a compiled time step."""
        from scalor.model.compiled import Compiled  # only training compiles

        module = InferenceStep(self)
        compiled = Compiled(module, module.used())

        def bound(video: Observation, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
            weights = compiled.weights()

            def infer(
                scene: SQAIRState, view: EncodedFrame, sampler: Sampler, discovery_prior: DiscoveryPrior
            ) -> StepResult:
                assert isinstance(sampler, NoiseSampler)
                normals, uniforms = sampler.noise.normals, sampler.noise.uniforms
                seen: StepResult = compiled(weights, scene, view, normals, uniforms, discovery_prior)
                return seen

            return self.bound(video, noise, now, truth, infer)

        return bound


class InferenceStep(nn.Module):
    """`SQAIR.infer` as a module to be compiled for training: a pure function of tensors.

    `FrameNoise` changes when numbers are taken from it, so it is made inside of `forward`.
    """

    def __init__(self, model: TimeStep) -> None:
        super().__init__()
        self.model = model

    def used(self) -> set[nn.Parameter]:
        """Return the weights that it depends on: all but those of the image encoder and the decoder."""
        model = self.model
        parts = (model.appearance, model.propagation, model.discovery, model.transition)
        return {p for part in parts for p in part.parameters()} - {*model.appearance.decoder.parameters()}

    def forward(
        self, scene: SQAIRState, view: EncodedFrame, normals: Tensor, uniforms: Tensor, discovery_prior: DiscoveryPrior
    ) -> StepResult:
        """Infer one frame, and copy its objects into memory of their own (see `owned`)."""
        return owned(self.model.infer(scene, view, NoiseSampler(FrameNoise(normals, uniforms)), discovery_prior))


def owned(seen: StepResult) -> StepResult:
    """Copy every tensor of the scene into memory of its own.

    Torch 2.11 sometimes returns a garbage shape where the result of a compiled function is a view of an inner tensor.
    """
    scene = SQAIRState(*(getattr(seen.scene, field.name).clone() for field in fields(seen.scene)))
    return StepResult(scene, seen.log_choices, seen.costs)
