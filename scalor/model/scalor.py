"""SCALOR: what the world model can do. Modes are methods; each is a loop over time and nothing else.

The maths of a time step is in `world`; the letters of shapes are told there.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.config import ModelConfig, require
from scalor.data.clip import Truth
from scalor.errors import InputError
from scalor.model.captured import follow_frames
from scalor.model.elbo import Activity, ElboTerms, Explained, explain
from scalor.model.encoders import Memory
from scalor.model.frames import check_frame, check_frames
from scalor.model.lesson import teach
from scalor.model.sighting import Sighting, gather_tracks, sight, warn_of_full_slots
from scalor.model.state import SceneState
from scalor.model.world import Past, Seen, World
from scalor.nn.distributions import Estimator, Exact, Mode, Noise, Relaxed
from scalor.nn.interface import Annealed, Bound, BoundFunction, Tracker
from scalor.tracks import Tracks

PRESENCE_PRIOR = 1e-4
"""Prior probability of a discovery per cell once training has annealed it (paper: toy scenes)."""
FILLED = 0.25
"""The share of the frame that the objects of a scene from nothing would cover side by side."""
NEGLIGIBLE = 1e-6
"""A proposal of so little presence changes nothing that float32 can tell: the CPU does not look at it closely."""


class Rollout(NamedTuple):
    """A seen or imagined video: its frames, its background and its objects."""

    frames: Float[Tensor, "B T 3 H W"]
    background: Float[Tensor, "B T 3 H W"]
    tracks: Tracks


class Kept(NamedTuple):
    """What tracking remembers from frame to frame."""

    state: SceneState
    memory: Memory


class Dreams(NamedTuple):
    """Imagined frames, one by one."""

    frames: list[Float[Tensor, "B 3 H W"]]
    backgrounds: list[Float[Tensor, "B 3 H W"]]
    sightings: list[Sighting]


def gather_rollout(frames: list[Tensor], backgrounds: list[Tensor], sightings: list[Sighting]) -> Rollout:
    warn_of_full_slots(sightings)
    tracks = gather_tracks(sightings, (frames[0].shape[-2], frames[0].shape[-1]))
    return Rollout(torch.stack(frames, 1).clamp(0, 1), torch.stack(backgrounds, 1), tracks)


class SCALOR(World, Tracker):
    """The world model: `track`, `stream`, `generate`, `imagine`, `elbo`, `log_likelihood`."""

    config: ModelConfig
    reported = (*ElboTerms.__dataclass_fields__, *Activity.__dataclass_fields__)

    def bound(
        self,
        video: Float[Tensor, "B T 3 H W"],
        noise: Noise,
        now: Annealed,
        truth: Truth | None = None,
        follow: Callable[..., Seen] | None = None,
    ) -> Bound:
        """The evidence lower bound as it is trained on, and the lesson's losses where the truth is handed in.

        A compiled `follow` may stand in for the model's own.
        """
        if follow is None and not video.is_cuda:
            follow = partial(self.follow, spare_below=NEGLIGIBLE)
        relaxed = Relaxed(now.temperature, noise)
        explained = self.elbo(video, relaxed, now.presence_prior, now.cut_gradients, now.clip_object, follow)
        numbers = {**explained.terms.to_dict(), **explained.activity.to_dict()}
        if truth is None:
            return Bound(explained.terms.elbo, numbers)
        lesson = teach(self, explained.seen, video, truth)
        return Bound(explained.terms.elbo, {**numbers, **lesson.to_dict()}, lesson.total)

    def compiled_bound(self) -> BoundFunction:
        from scalor.model.compiled import CompiledFollow  # only a training compiles

        compiled = CompiledFollow(self)

        def bound(video: Tensor, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
            return self.bound(video, noise, now, truth, partial(compiled, compiled.weights()))

        return bound

    def elbo(
        self,
        video: Float[Tensor, "B T 3 H W"],
        estimator: Estimator,
        presence_prior: float | Tensor = PRESENCE_PRIOR,
        cut_gradients: bool = False,
        clip_object: float = 0.0,
        follow: Callable[..., Seen] | None = None,
    ) -> Explained:
        """The evidence lower bound; with `cut_gradients` each frame's gradients end at that frame, with `clip_object`
        no object's place and latents get more than so many times the usual one from the frames after (0: any).

        The frames of a clip are followed one by one and then explained together. A compiled `follow` may stand in
        for the model's own.
        """
        clips, frame = video.shape[0], (video.shape[-2], video.shape[-1])
        # Time first: a frame then lies in memory in the same way whatever the number of frames.
        images = video.transpose(0, 1).contiguous()
        views, _ = self.look(images, self.no_memory(clips, frame, video), cut_gradients)
        follow = follow or self.follow
        state, seen = self.start(clips, video), []
        for t, view in enumerate(views):
            seen.append(follow(state, view, estimator.at(t)))
            state = seen[-1].state.detach() if cut_gradients else seen[-1].state.evened(clip_object)
        past = self.no_past(clips, video)
        return explain(self, images, seen, past, estimator, presence_prior, cut_gradients)

    @torch.no_grad()
    def log_likelihood(
        self, frames: object, samples: int = 10, presence_prior: float = PRESENCE_PRIOR
    ) -> Float[Tensor, " B"]:
        """Importance-weighted lower bound on log p(video), nats per clip; it rises with `samples`."""
        require(samples >= 1, "samples", samples, "at least 1 is needed")
        video = self.receive(frames, minimum=1)
        again = video.repeat(samples, 1, 1, 1, 1)
        weights = self.elbo(again, Exact(), presence_prior).terms.elbo.view(samples, len(video))
        return weights.logsumexp(0) - math.log(samples)

    @torch.inference_mode()
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Every object of every frame ([T, 3, H, W] or [B, T, 3, H, W] in [0, 1]), with its identity."""
        video = self.receive(frames, minimum=2)
        frame = (video.shape[-2], video.shape[-1])
        sightings = [sighting for _, sighting in self.watch(video.unbind(1), masks)]
        warn_of_full_slots(sightings)
        return gather_tracks(sightings, frame)

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

        for t, (_, sighting) in enumerate(self.watch(received(), masks)):
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
        """Conditional generation: `observe` frames seen, then `horizon` imagined from the prior.

        New objects appear with probability `discovery_rate` per cell and imagined frame. The future is drawn
        at random; hand in `Mode()` for the most likely one (new objects are always drawn at random).
        """
        require(observe >= 1, "observe", observe, "at least 1 frame must be seen")
        require(horizon >= 0, "horizon", horizon, "it must be 0 or more")
        video = self.receive(frames, minimum=observe)
        explained = self.elbo(video[:, :observe], Mode())
        seen = explained.seen
        frame = (video.shape[-2], video.shape[-1])
        painting = explained.painting
        shape = (observe, len(video), 3, *frame)
        background = torch.zeros_like(painting.picture) if painting.background is None else painting.background
        rates = [discovery_rate] * horizon
        dreams = self.roll(seen[-1].state, explained.past, frame, rates, estimator or Exact(), masks)
        return gather_rollout(
            [*painting.picture.view(shape), *dreams.frames],
            [*background.view(shape), *dreams.backgrounds],
            [*(self.sight(one.state, frame, masks) for one in seen), *dreams.sightings],
        )

    @torch.inference_mode()
    def imagine(
        self,
        horizon: int = 10,
        clips: int = 1,
        discovery_rate: float | None = None,
        later_rate: float = 0.0,
        estimator: Estimator | None = None,
    ) -> Rollout:
        """Generation from scratch: objects from the discovery prior in the first frame, then the prior.

        A cell holds an object with probability `discovery_rate` in the first frame, `later_rate` in later ones;
        None: so that objects would cover about a quarter of the frame.
        """
        require(horizon >= 1, "horizon", horizon, "at least 1 frame must be imagined")
        if discovery_rate is None:
            discovery_rate = min(1.0, FILLED * math.prod(self.config.cell) / math.prod(self.config.object_size))
        like = next(self.parameters())
        state, past, frame = self.start(clips, like), self.no_past(clips, like), self.config.frame
        rates = [discovery_rate] + [later_rate] * (horizon - 1)
        return gather_rollout(*self.roll(state, past, frame, rates, estimator or Exact()))

    def roll(
        self,
        state: SceneState,
        past: Past,
        frame: tuple[int, int],
        rates: list[float],
        estimator: Estimator,
        masks: bool = False,
    ) -> Dreams:
        """Dream on, one frame for each discovery rate."""
        dreams = Dreams([], [], [])
        for rate in rates:
            state, past, dreamt = self.dream(state, past, frame, rate, estimator)
            dreams.frames.append(dreamt.picture)
            dreams.backgrounds.append(
                torch.zeros_like(dreamt.picture) if dreamt.background is None else dreamt.background
            )
            dreams.sightings.append(self.sight(state, frame, masks))
        return dreams

    def set_proposals(self, count: int) -> None:
        """Let so many objects appear in one frame after the first. No weight depends on it."""
        self.config = replace(self.config, proposals=count)

    def watch(self, images: Iterable[Tensor], masks: bool = False) -> Iterator[tuple[SceneState, Sighting]]:
        """Posterior modes, one frame [B, 3, H, W] at a time. A state is good until the next frame."""
        for kept, sighting in follow_frames(self.begin, partial(self.see, masks=masks), images):
            yield kept.state, sighting

    def begin(self, image: Float[Tensor, "B 3 H W"]) -> Kept:
        clips, frame = image.shape[0], (image.shape[-2], image.shape[-1])
        return Kept(self.start(clips, image), self.no_memory(clips, frame, image))

    def see(self, kept: Kept, image: Float[Tensor, "B 3 H W"], masks: bool = False) -> tuple[Kept, Sighting]:
        """One frame of tracking."""
        (view,), memory = self.look(image[None], kept.memory)
        spare_below = None if image.is_cuda else self.config.birth_presence
        seen = self.follow(kept.state, view, Mode(), spare_below)
        sighting = self.sight(seen.state, (image.shape[-2], image.shape[-1]), masks)
        return Kept(seen.state, memory), sighting._replace(turned_away=sighting.turned_away + self.overlooked(seen))

    def overlooked(self, seen: Seen) -> Float[Tensor, " B"]:
        """Cells that wanted a birth beyond those that were looked at closely, where no slot is left for them."""
        wanted = (seen.proposals.presence > self.config.birth_presence).sum(-1)
        full = (seen.state.roster.id >= 0).all(-1)
        return (wanted - seen.proposals.cells.shape[1]).clamp(min=0) * full.float()

    def sight(self, state: SceneState, frame: tuple[int, int], masks: bool = False) -> Sighting:
        return sight(state, self.appearance.draw(state.objects.z_what), frame, masks)

    def receive(self, frames: object, minimum: int) -> Float[Tensor, "B T 3 H W"]:
        """Frames from outside, checked, on the model's device."""
        return check_frames(frames, self.config.cell, minimum, self.config.channels).to(next(self.parameters()).device)

    def receive_frame(self, frame: object, size: tuple[int, int] | None) -> Float[Tensor, "1 3 H W"]:
        """One frame of a stream, checked; all frames of a stream have one size."""
        image = check_frame(frame, self.config.cell, self.config.channels)
        if size is not None and image.shape[-2:] != size:
            raise InputError(
                f"frame has shape {list(image.shape[1:])}: this stream began with {size[0]}x{size[1]}; "
                "start a new stream for another size."
            )
        return image.to(next(self.parameters()).device)
