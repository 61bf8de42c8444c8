"""SCALOR: what the world model can do. Modes are methods; each is a loop over time and nothing else.

The maths of a time step is in `world`; the letters of shapes are told there.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scalor.config import require
from scalor.distributions import Estimator, Exact, Mode
from scalor.errors import InputError
from scalor.model.elbo import Activity, ElboTerms, overall, total
from scalor.model.frames import check_frames
from scalor.model.sighting import Sighting, gather_tracks, sight, warn_of_full_slots
from scalor.model.world import SceneState, Step, World
from scalor.tracks import Tracks

PRESENCE_PRIOR = 1e-4
"""Prior probability of a discovery per cell once training has annealed it (paper: toy scenes)."""


class Elbo(NamedTuple):
    """The bound on a batch of clips."""

    terms: ElboTerms
    activity: Activity


class Rollout(NamedTuple):
    """A seen or imagined video: its frames, its background and its objects."""

    frames: Float[Tensor, "B T 3 H W"]
    background: Float[Tensor, "B T 3 H W"]
    tracks: Tracks


class SCALOR(World):
    """The world model: `track`, `stream`, `generate`, `imagine`, `elbo`, `log_likelihood`."""

    def elbo(
        self,
        video: Float[Tensor, "B T 3 H W"],
        estimator: Estimator,
        presence_prior: float | Tensor = PRESENCE_PRIOR,
        cut_gradients: bool = False,
    ) -> Elbo:
        """The evidence lower bound; with `cut_gradients` each frame's gradients end at that frame."""
        seen = self.look(video)
        state = self.start(video.shape[0], (video.shape[-2], video.shape[-1]), video)
        terms, activity = [], []
        for t in range(video.shape[1]):
            state, _, step_terms, step_activity = self.observe(
                state, video[:, t], seen[:, t], estimator, presence_prior
            )
            state = state.detach() if cut_gradients else state
            terms.append(step_terms)
            activity.append(step_activity)
        return Elbo(total(terms), overall(activity))

    @torch.no_grad()
    def log_likelihood(
        self, frames: object, samples: int = 10, presence_prior: float = PRESENCE_PRIOR
    ) -> Float[Tensor, " B"]:
        """Importance-weighted lower bound on log p(video), nats per clip; it rises with `samples`."""
        require(samples >= 1, "samples", samples, "at least 1 is needed")
        video = self.receive(frames, minimum=1)
        weights = torch.stack([self.elbo(video, Exact(), presence_prior).terms.elbo for _ in range(samples)])
        return weights.logsumexp(0) - math.log(samples)

    @torch.inference_mode()
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Every object of every frame ([T, 3, H, W] or [B, T, 3, H, W] in [0, 1]), with its identity."""
        video = self.receive(frames, minimum=2)
        sightings = list(self.watch(video.unbind(1), masks))
        warn_of_full_slots(sightings)
        return gather_tracks(sightings, (video.shape[-2], video.shape[-1]))

    @torch.inference_mode()
    def stream(self, frames: Iterable[object], masks: bool = False) -> Iterator[Tracks]:
        """Track frame by frame ([3, H, W] each): one `Tracks` a frame, memory that does not grow."""
        size: tuple[int, int] | None = None
        warned = False

        def received() -> Iterator[Tensor]:
            nonlocal size
            for frame in frames:
                image = self.receive_frame(frame, size)
                size = (image.shape[-2], image.shape[-1])
                yield image

        for t, sighting in enumerate(self.watch(received(), masks)):
            assert size is not None
            warned = warned or warn_of_full_slots([sighting])
            yield gather_tracks([sighting], size, first_frame=t)

    @torch.inference_mode()
    def reconstruct(self, frames: object) -> Rollout:
        """The frames as the model sees them: reconstruction, background and tracks."""
        video = self.receive(frames, minimum=1)
        return self.generate(video, observe=video.shape[1], horizon=0)

    @torch.inference_mode()
    def object_pictures(self, frames: object) -> Float[Tensor, "B T K 3 P P"]:
        """Every slot's own picture in every frame, over black; black where the slot is empty."""
        video = self.receive(frames, minimum=1)
        state = self.start(video.shape[0], (video.shape[-2], video.shape[-1]), video)
        pictures = []
        for image in video.unbind(1):
            seen = self.look(image[:, None])[:, 0]
            state, _, _, _ = self.observe(state, image, seen, Mode(), PRESENCE_PRIOR)
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
    ) -> Rollout:
        """Conditional generation: `observe` frames seen, then `horizon` imagined from the prior.

        New objects appear with probability `discovery_rate` per cell and imagined frame. The future is drawn
        at random; hand in `Mode()` for the most likely one (new objects are always drawn at random).
        """
        require(observe >= 1, "observe", observe, "at least 1 frame must be seen")
        require(horizon >= 0, "horizon", horizon, "it must be 0 or more")
        video = self.receive(frames, minimum=observe)
        state = self.start(video.shape[0], (video.shape[-2], video.shape[-1]), video)
        steps = []
        for t in range(observe):
            state, step, _, _ = self.observe(
                state, video[:, t], self.look(video[:, t : t + 1])[:, 0], Mode(), PRESENCE_PRIOR
            )
            steps.append((step, self.sight(state, step)))
        return self.roll(state, steps, horizon, discovery_rate, estimator or Exact())

    @torch.inference_mode()
    def imagine(
        self,
        horizon: int = 10,
        clips: int = 1,
        discovery_rate: float = 0.2,
        later_rate: float = 0.0,
        estimator: Estimator | None = None,
    ) -> Rollout:
        """Generation from scratch: objects from the discovery prior in the first frame, then the prior."""
        require(horizon >= 1, "horizon", horizon, "at least 1 frame must be imagined")
        like = next(self.parameters())
        state = self.start(clips, self.config.frame, like)
        state, step = self.dream(state, discovery_rate, estimator or Exact())
        steps = [(step, self.sight(state, step))]
        return self.roll(state, steps, horizon - 1, later_rate, estimator or Exact())

    def roll(
        self,
        state: SceneState,
        steps: list[tuple[Step, Sighting]],
        horizon: int,
        discovery_rate: float,
        estimator: Estimator,
    ) -> Rollout:
        """Go on with `dream` and gather everything."""
        for _ in range(horizon):
            state, step = self.dream(state, discovery_rate, estimator)
            steps.append((step, self.sight(state, step)))
        frames = torch.stack([step.picture for step, _ in steps], 1)
        backgrounds = torch.stack(
            [torch.zeros_like(s.picture) if s.background is None else s.background for s, _ in steps], 1
        )
        size = (frames.shape[-2], frames.shape[-1])
        sightings = [sighting for _, sighting in steps]
        warn_of_full_slots(sightings)
        tracks = gather_tracks(sightings, size)
        return Rollout(frames.clamp(0, 1), backgrounds, tracks)

    def watch(self, images: Iterable[Tensor], masks: bool) -> Iterator[Sighting]:
        """Posterior modes, one frame at a time."""
        state = None
        for image in images:
            if state is None:
                state = self.start(image.shape[0], (image.shape[-2], image.shape[-1]), image)
            seen = self.look(image[:, None])[:, 0]
            state, step, _, _ = self.observe(state, image, seen, Mode(), PRESENCE_PRIOR)
            yield self.sight(state, step, masks)

    def sight(self, state: SceneState, step: Step, masks: bool = False) -> Sighting:
        sprite = self.appearance.draw(state.objects.z_what)
        frame = (step.picture.shape[-2], step.picture.shape[-1])
        return sight(state.objects, step.joined, sprite, frame, masks)

    def receive(self, frames: object, minimum: int) -> Float[Tensor, "B T 3 H W"]:
        """Frames from outside, checked, on the model's device."""
        return check_frames(frames, self.config.cell, minimum).to(next(self.parameters()).device)

    def receive_frame(self, frame: object, size: tuple[int, int] | None) -> Float[Tensor, "1 3 H W"]:
        """One frame of a stream, checked; all frames of a stream have one size."""
        if not isinstance(frame, np.ndarray | Tensor):
            raise InputError(f"frame is a {type(frame).__name__}: give a numpy array or a torch tensor [3, H, W].")
        if frame.ndim != 3:
            raise InputError(f"frame has shape {list(frame.shape)}: give one frame, [3, H, W].")
        image = check_frames(frame[None], self.config.cell, 1)[:, 0]
        if size is not None and image.shape[-2:] != size:
            raise InputError(
                f"frame has shape {list(frame.shape)}: this stream began with {size[0]}x{size[1]}; "
                "start a new stream for another size."
            )
        return image.to(next(self.parameters()).device)
