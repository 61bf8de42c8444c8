"""SCALOR, the world model: tracking, generation, training and likelihood.

Each mode is a method with a loop over time. The time step itself is in `scalor.model.time_step`, which also explains
the letters of the shapes.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.config import ModelConfig
from scalor.data.clip import Truth
from scalor.data.observation import Observation, check_image, check_observation
from scalor.errors import InputError, require
from scalor.model.compiled import follow_frames
from scalor.model.elbo import KL_TERMS, Activity, ElboResult, explain
from scalor.model.image_encoder import EncoderMemory
from scalor.model.lesson import teach
from scalor.model.parts import explain_parts
from scalor.model.sighting import Sighting, gather_rollout, gather_tracks, sight, warn_of_full_slots
from scalor.model.state import SceneState
from scalor.model.time_step import PosteriorStep, PriorState, World
from scalor.nn.distributions import Estimator, Exact, Mode, Noise, Relaxed
from scalor.nn.interface import Annealed, Bound, BoundFunction, Rollout, Tracker, TrackerMemory
from scalor.tracks import Tracks

PRESENCE_PRIOR = 1e-4
"""Prior probability of a discovery per cell at the end of its annealing (paper: dSprites and MNIST experiments)."""
INITIAL_COVER = 0.25
"""Share of the frame that the objects of a scene generated from scratch would cover if they did not overlap."""
NEGLIGIBLE = 1e-6
"""Presence up to which a proposal is skipped when training on the CPU.

A proposal of this presence changes nothing at the precision of float32.
"""


TrackingState = tuple[SceneState, EncoderMemory]
"""State of tracking between frames: the object slots and the memory of the image encoder."""


class SCALOR(World, Tracker):
    """The SCALOR world model (Jiang et al., ICLR 2020).

    `track` and `stream` track objects, `reconstruct` and `object_pictures` show how the model renders a video,
    `generate` and `imagine` sample from the prior, `elbo` and `log_likelihood` are lower bounds on log p(video).
    """

    config: ModelConfig
    reported = ("log_likelihood", *KL_TERMS, *Activity.__dataclass_fields__)

    def bound(
        self,
        video: Observation,
        noise: Noise,
        now: Annealed,
        truth: Truth | None = None,
        step: Callable[..., PosteriorStep] | None = None,
    ) -> Bound:
        """Return the objective of training and the metrics to log.

        With `truth` the supervised losses of `scalor.model.lesson` are computed, too. `step` replaces
        `World.posterior_step`, for example by a compiled version.
        """
        if step is None and not video.image.is_cuda:
            step = partial(self.posterior_step, spare_below=NEGLIGIBLE)
        relaxed = Relaxed(now.temperature, noise)
        if now.parts_alone:
            terms, activity = explain_parts(self, video.time_first(), relaxed)
            return Bound(terms.elbo, {**terms.to_dict(), **activity.to_dict()})
        explained = self.elbo(
            video, relaxed, now.presence_prior, now.cut_gradients, now.clip_object, now.colour_counts, step
        )
        numbers = {**explained.terms.to_dict(), **explained.activity.to_dict()}
        if truth is None:
            return Bound(explained.terms.elbo, numbers)
        lesson = teach(self, explained.steps, video, truth)
        return Bound(explained.terms.elbo, {**numbers, **lesson.to_dict()}, lesson.total)

    def compiled_bound(self) -> BoundFunction:
        """Return `bound` with a compiled `World.posterior_step`."""
        from scalor.model.compiled import CompiledStep  # imported here because only training compiles

        compiled = CompiledStep(self)

        def bound(video: Observation, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
            return self.bound(video, noise, now, truth, partial(compiled, compiled.weights()))

        return bound

    def elbo(
        self,
        video: Observation,
        estimator: Estimator,
        presence_prior: float | Tensor = PRESENCE_PRIOR,
        cut_gradients: bool = False,
        clip_object: float = 0.0,
        colour_counts: float | Tensor = 1.0,
        step: Callable[..., PosteriorStep] | None = None,
    ) -> ElboResult:
        """Compute the terms of the evidence lower bound (equation: `scalor.model.elbo`), and the reconstruction.

        The posterior processes the frames one by one. Rendering and KL terms follow for all frames together.

        Parameters
        ----------
        video
            The frames, [B, T].
        estimator
            How latents are drawn: `Relaxed` for training, `Exact` for an importance weight, `Mode` for the most likely
            values.
        presence_prior
            Prior probability of a discovery in each cell.
        cut_gradients
            Stop gradients between frames. Only those of the priors' RNNs still pass through their hidden states.
        clip_object
            Largest norm of the gradient that an object's box, or its latents, get from later frames, in multiples of
            the geometric mean over the objects of the batch. 0 disables this.
        colour_counts
            How far colour counts in what propagated objects explain, 0 to 1 (`World.explained`).
        step
            Replacement for `World.posterior_step`, for example a compiled one.
        """
        clips, like, by_time = len(video), video.image, video.time_first()
        features, _ = self.encode(by_time, self.start_encoder(clips, video.size, like), cut_gradients)
        step = step or self.posterior_step
        state, steps = self.start(clips, like), []
        for t, seen in enumerate(features):
            steps.append(step(state, seen, estimator.at(t), colour_counts=colour_counts))
            state = steps[-1].state.detach() if cut_gradients else steps[-1].state.evened(clip_object)
        past = self.start_prior(clips, like)
        return explain(self, by_time, steps, past, estimator, presence_prior, cut_gradients)

    @torch.no_grad()
    def log_likelihood(
        self, frames: object, samples: int = 10, presence_prior: float = PRESENCE_PRIOR
    ) -> Float[Tensor, " B"]:
        """Estimate log p(video) by an importance-weighted lower bound, nats per clip.

        Parameters
        ----------
        frames
            Floats in [0, 1], [T, 3, H, W] or [B, T, 3, H, W].
        samples
            Number of samples per clip. The bound gets tighter with more samples.
        presence_prior
            Prior probability of a discovery in each cell.
        """
        require(samples >= 1, "samples", samples, "at least 1 is needed")
        video = self.receive(frames, minimum=1)
        again = video.map(lambda part: part.repeat(samples, *[1] * (part.ndim - 1)))
        weights = self.elbo(again, Exact(), presence_prior).terms.elbo.view(samples, len(video))
        return weights.logsumexp(0) - math.log(samples)

    @torch.inference_mode()
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Track all objects.

        Parameters
        ----------
        frames
            Numpy array or torch tensor of floats in [0, 1], [T, 3, H, W] or [B, T, 3, H, W], at least 2 frames.
        masks
            Also return the visible mask of every object.

        Returns
        -------
        Tracks
            One row for each object and frame.

        Examples
        --------
        >>> model = scalor.load("shapes-md")
        >>> tracks = model.track(frames)  # [T, 3, H, W] in [0, 1]
        """
        video = self.receive(frames, minimum=2)
        sightings = [sighting for _, sighting in self.watch(video.unbind(1), masks)]
        warn_of_full_slots(sightings)
        return gather_tracks(sightings, video.size)

    @torch.inference_mode()
    def stream(
        self, frames: Iterable[object], masks: bool = False, memory: TrackerMemory | None = None
    ) -> Iterator[Tracks]:
        """Track objects frame by frame, in constant memory.

        Parameters
        ----------
        frames
            Numpy arrays or torch tensors [3, H, W] of floats in [0, 1], all of one size.
        masks
            Also return the visible mask of every object.
        memory
            Memory of an earlier stream to go on from. It is kept up to date.

        Yields
        ------
        Tracks
            The objects of one frame.
        """
        size: tuple[int, int] | None = None
        warned = False

        def received() -> Iterator[Observation]:
            nonlocal size
            for frame in frames:
                image = self.receive_frame(frame, size)
                size = image.size
                yield image

        for t, (_, sighting) in enumerate(self.watch(received(), masks, memory)):
            assert size is not None
            warned = warned or warn_of_full_slots([sighting])
            yield gather_tracks([sighting], size, first_frame=t)

    @torch.inference_mode()
    def reconstruct(self, frames: object) -> Rollout:
        """Return the reconstruction of the frames, with background and tracks."""
        video = self.receive(frames, minimum=1)
        return self.generate(video, observe=video.image.shape[1], horizon=0)

    @torch.inference_mode()
    def object_pictures(self, frames: object) -> Float[Tensor, "B T K 3 P P"]:
        """Return the picture of the object in each slot and frame, on black; empty slots are black."""
        video = self.receive(frames, minimum=1)
        pictures = []
        for state, _ in self.watch(video.unbind(1)):
            sprite = self.appearance.draw(state.objects.z_what)
            pictures.append(sprite.colour * sprite.mask * state.objects.alive[..., None, None])
        return torch.stack(pictures, 1)

    @torch.inference_mode()
    def generate(
        self,
        frames: object,
        observe: int = 5,
        horizon: int = 5,
        discovery_rate: float = 0.0,
        estimator: Estimator | None = None,
        masks: bool = False,
    ) -> Rollout:
        """Reconstruct the first frames and generate the following ones from the prior (conditional generation).

        Parameters
        ----------
        frames
            Floats in [0, 1], [T, 3, H, W] or [B, T, 3, H, W]. Frames after the first `observe` are ignored.
        observe
            Number of frames that the model observes.
        horizon
            Number of frames to generate.
        discovery_rate
            Probability of a new object in each cell of each generated frame.
        estimator
            How the future is drawn: at random by default, the most likely one with `Mode()`. New objects are always
            drawn at random.
        masks
            Also return the visible mask of every object.
        """
        require(observe >= 1, "observe", observe, "at least 1 frame must be seen")
        require(horizon >= 0, "horizon", horizon, "it must be 0 or more")
        video = self.receive(frames, minimum=observe)
        explained = self.elbo(video[:, :observe], Mode())
        steps, rendering = explained.steps, explained.rendering
        images = rendering.image.unflatten(0, (observe, len(video)))
        background = rendering.background
        backgrounds = [None] * observe if background is None else background.view(images.shape).unbind()
        sightings = [self.sight(one.state, video.size, masks) for one in steps]
        rates = [discovery_rate] * horizon
        future = self.roll(steps[-1].state, explained.past, video.size, rates, estimator or Exact(), masks)
        return gather_rollout([*zip(images, backgrounds, sightings, strict=True), *future])

    @torch.inference_mode()
    def imagine(
        self,
        horizon: int = 10,
        clips: int = 1,
        discovery_rate: float | None = None,
        later_rate: float = 0.0,
        estimator: Estimator | None = None,
    ) -> Rollout:
        """Generate videos from scratch: the first frame from the discovery prior, the following ones from the prior.

        Parameters
        ----------
        horizon
            Number of frames to generate.
        clips
            Number of videos B.
        discovery_rate
            Probability of an object in each cell of the first frame. By default such that the objects would cover
            about a quarter of the frame.
        later_rate
            Probability of a new object in each cell of later frames.
        estimator
            How latents are drawn, at random by default. New objects are always drawn at random.
        """
        require(horizon >= 1, "horizon", horizon, "at least 1 frame must be imagined")
        if discovery_rate is None:
            discovery_rate = self.usual_rate()
        like = next(self.parameters())
        state, past, frame = self.start(clips, like), self.start_prior(clips, like), self.config.frame
        rates = [discovery_rate] + [later_rate] * (horizon - 1)
        return gather_rollout([*self.roll(state, past, frame, rates, estimator or Exact())])

    def usual_rate(self) -> float:
        """Return the probability of an object in each cell of a scene from scratch, for a quarter of it covered."""
        return min(1.0, INITIAL_COVER * math.prod(self.config.cell) / math.prod(self.config.object_size))

    def roll(
        self,
        state: SceneState,
        past: PriorState,
        frame: tuple[int, int],
        rates: list[float],
        estimator: Estimator,
        masks: bool = False,
    ) -> Iterator[tuple[Float[Tensor, "B 3 H W"], Tensor | None, Sighting]]:
        """Sample frames from the prior, one for each of the discovery rates `rates`.

        Yield the picture, its background (None: black) and its objects.
        """
        for rate in rates:
            state, past, rendering = self.prior_step(state, past, frame, rate, estimator)
            yield rendering.image, rendering.background, self.sight(state, frame, masks)

    def set_proposals(self, count: int) -> None:
        """Set the largest number of proposals in a frame after the first. No weight depends on it."""
        self.config = replace(self.config, proposals=count)

    def watch(
        self, images: Iterable[Observation], masks: bool = False, memory: TrackerMemory | None = None
    ) -> Iterator[tuple[SceneState, Sighting]]:
        """Yield the state and the sighting after each frame [B], with posterior modes.

        A state is valid only until the next frame.
        """
        memory = memory or TrackerMemory()
        begin = (lambda image: memory.state) if memory.state is not None else self.begin
        for memory.state, sighting in follow_frames(begin, partial(self.see, masks=masks), images):
            yield memory.state[0], sighting

    def begin(self, image: Observation) -> TrackingState:
        """Return the state of tracking before the first frame."""
        clips, like = len(image), image.image
        return self.start(clips, like), self.start_encoder(clips, image.size, like)

    def see(self, kept: TrackingState, image: Observation, masks: bool = False) -> tuple[TrackingState, Sighting]:
        """Track one frame: return the new state of tracking and the sighting."""
        state, memory = kept
        (features,), memory = self.encode(image[None], memory)
        spare_below = None if image.image.is_cuda else self.config.birth_presence
        step = self.posterior_step(state, features, Mode(), spare_below)
        sighting = self.sight(step.state, image.size, masks)
        turned_away = sighting.turned_away + self.overlooked(step)
        return (step.state, memory), sighting._replace(turned_away=turned_away)

    def overlooked(self, step: PosteriorStep) -> Float[Tensor, " B"]:
        """Count the cells above the birth threshold that got no proposal, in clips without a free slot."""
        wanted = (step.proposals.presence > self.config.birth_presence).sum(-1)
        full = (step.state.id >= 0).all(-1)
        return (wanted - step.proposals.cells.shape[1]).clamp(min=0) * full.float()

    def sight(self, state: SceneState, frame: tuple[int, int], masks: bool = False) -> Sighting:
        """Return what is reported of a state; `frame` is (height, width)."""
        return sight(state, self.appearance.draw(state.objects.z_what), frame, masks)

    def receive(self, frames: object, minimum: int) -> Observation:
        """Check the caller's frames and move them to the model's device, [B, T]."""
        video = check_observation(frames, self.config.cell, minimum, self.config.still)
        return video.to(next(self.parameters()).device)

    def receive_frame(self, frame: object, size: tuple[int, int] | None) -> Observation:
        """Check one frame of a stream and move it to the model's device.

        `size` is the height and width of the frames before, which this frame must have, too.
        """
        image = check_image(frame, self.config.cell, self.config.still)
        if size is not None and image.size != size:
            raise InputError(
                f"frame has shape {list(image.image.shape[1:])}: this stream began with {size[0]}x{size[1]}; "
                "start a new stream for another size."
            )
        return image.to(next(self.parameters()).device)
