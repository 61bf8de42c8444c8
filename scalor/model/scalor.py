"""SCALOR: the world model. The loop over time and nothing else; the maths lives in the rooms beside it.

Letters: B clips, T frames, K slots, D proposals, Gh by Gw cells, H by W pixels, P glimpse side.
A time step is `observe` (the posterior: a frame is seen) or `dream` (the prior: nothing is seen).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.distributions import Estimator, Exact, Mode
from scalor.errors import InputError
from scalor.model.appearance import Appearance
from scalor.model.background import Background
from scalor.model.decoders import Sprite
from scalor.model.discovery import Discovered, Discovery
from scalor.model.elbo import Activity, ElboTerms, elbo_terms, overall, total
from scalor.model.encoders import ImageEncoder, Memory
from scalor.model.frames import check_frames
from scalor.model.propagation import Propagated, Propagation
from scalor.model.rendering import Foreground, compose, coverage, draw
from scalor.model.sighting import Sighting, gather_tracks, sight
from scalor.model.state import Joined, ObjectState, Roster, end_duplicates, join
from scalor.tracks import Tracks

PRESENCE_PRIOR = 1e-4
"""Prior probability of a discovery per cell once training has annealed it (paper: toy scenes)."""


@dataclass(frozen=True)
class SceneState:
    """Everything remembered between frames; its size does not depend on how many have passed."""

    objects: ObjectState
    roster: Roster
    memory: Memory
    background: Float[Tensor, "B hidden"]
    frame: int
    """Frames seen so far."""

    def detach(self) -> "SceneState":
        memory = Memory(self.memory.hidden.detach(), self.memory.cell.detach())
        return SceneState(self.objects.detach(), self.roster, memory, self.background.detach(), self.frame)


class Step(NamedTuple):
    """What a time step made of its frame."""

    picture: Float[Tensor, "B 3 H W"]
    background: Float[Tensor, "B 3 H W"] | None
    foreground: Foreground
    joined: Joined


class Observed(NamedTuple):
    """A frame seen: the state after it, what was made of it, and what it cost."""

    state: SceneState
    step: Step
    terms: ElboTerms
    activity: Activity


class Elbo(NamedTuple):
    """The bound on a batch of clips."""

    terms: ElboTerms
    activity: Activity


class Rollout(NamedTuple):
    """A seen or imagined video: its frames, its background and its objects."""

    frames: Float[Tensor, "B T 3 H W"]
    background: Float[Tensor, "B T 3 H W"]
    tracks: Tracks


class SCALOR(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = ImageEncoder(config.cell, config.feature_dim)
        self.appearance = Appearance(config)
        self.discovery = Discovery(config)
        self.propagation = Propagation(config)
        self.background = Background(config) if config.background else None

    # The three modes and the bound -------------------------------------------------------------------

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
        video = self.receive(frames, minimum=1)
        weights = torch.stack([self.elbo(video, Exact(), presence_prior).terms.elbo for _ in range(samples)])
        return weights.logsumexp(0) - math.log(samples)

    @torch.inference_mode()
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Every object of every frame ([T, 3, H, W] or [B, T, 3, H, W] in [0, 1]), with its identity."""
        video = self.receive(frames, minimum=2)
        return gather_tracks(list(self.watch(video.unbind(1), masks)), (video.shape[-2], video.shape[-1]))

    @torch.inference_mode()
    def stream(self, frames: Iterable[object], masks: bool = False) -> Iterator[Tracks]:
        """Track frame by frame ([3, H, W] each): one `Tracks` a frame, memory that does not grow."""
        size: tuple[int, int] | None = None

        def received() -> Iterator[Tensor]:
            nonlocal size
            for frame in frames:
                image = self.receive_frame(frame, size)
                size = (image.shape[-2], image.shape[-1])
                yield image

        for t, sighting in enumerate(self.watch(received(), masks)):
            assert size is not None
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
        at random; hand in `Mode()` for the most likely one.
        """
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
        like = next(self.parameters())
        state = self.start(clips, self.config.frame, like)
        state, step = self.dream(state, discovery_rate, estimator or Exact())
        steps = [(step, self.sight(state, step))]
        return self.roll(state, steps, horizon - 1, later_rate, estimator or Exact())

    # One step in time ----------------------------------------------------------------------------------

    def start(self, clips: int, frame: tuple[int, int], like: Tensor) -> SceneState:
        """Nothing seen yet."""
        config = self.config
        grid = (frame[0] // config.cell[0], frame[1] // config.cell[1])
        background = self.background.empty(clips, like) if self.background else like.new_zeros(clips, 0)
        return SceneState(
            ObjectState.empty(clips, config.slots, config.what_dim, config.tracker_dim, config.prior_dim, like),
            Roster.empty(clips, config.slots, like),
            self.encoder.empty(clips, grid, like),
            background,
            frame=0,
        )

    def look(self, video: Float[Tensor, "B T 3 H W"]) -> Float[Tensor, "B T F Gh Gw"]:
        """Per-frame features, before the ConvLSTM; all frames at once."""
        seen: Tensor = self.encoder.look(video.flatten(0, 1))
        return seen.view(*video.shape[:2], *seen.shape[1:])

    def observe(
        self,
        state: SceneState,
        image: Float[Tensor, "B 3 H W"],
        seen: Float[Tensor, "B F Gh Gw"],
        estimator: Estimator,
        presence_prior: float | Tensor,
    ) -> Observed:
        """The posterior: propagate, discover, explain the rest as background, render, join."""
        frame = (image.shape[-2], image.shape[-1])
        memory = self.encoder(seen, state.memory)
        features = memory.hidden
        count = self.proposal_count(state, features.shape[-2] * features.shape[-1])
        propagated: Propagated | None = None
        if state.frame > 0:  # nothing can be propagated into the first frame
            propagated = self.propagation(state.objects, features, image, self.appearance, estimator)
            explained = coverage(propagated.objects, propagated.sprite, frame).detach()
        else:
            explained = torch.zeros_like(image[:, :1])
        discovered: Discovered = self.discovery(
            features, explained, image, self.appearance, count, presence_prior, estimator
        )

        kept = propagated.objects if propagated else state.objects
        foreground = self.draw_all(
            (propagated.objects, propagated.sprite) if propagated else None,
            (discovered.objects, discovered.sprite),
            frame,
        )
        backdrop = None
        if self.background:
            prior = self.background.prior(state.background, first=state.frame == 0)
            backdrop = self.background(image, foreground.mask.detach(), prior, estimator)
        next_state, step = self.finish(
            state,
            kept,
            discovered.objects,
            foreground,
            backdrop.picture if backdrop else None,
            backdrop.z_bg if backdrop else None,
            memory,
        )
        terms = elbo_terms(image, step.picture, self.config.sigma, propagated, discovered, backdrop)
        activity = Activity(
            objects=step.joined.objects.alive.sum((1, 2)),
            discovered=step.joined.discovered.sum(-1).float(),
            turned_away=step.joined.turned_away,
            crowded_out=(discovered.wanted - count).clamp(min=0),
            rejected=discovered.rejected,
            foreground=foreground.mask.detach().mean((1, 2, 3)),
            squared_error=(step.picture - image).detach().square().mean((1, 2, 3)),
        )
        return Observed(next_state, step, terms, activity)

    def dream(self, state: SceneState, discovery_rate: float, estimator: Estimator) -> tuple[SceneState, Step]:
        """The prior: the world goes on unseen."""
        rows, columns = state.memory.hidden.shape[-2:]
        frame = (rows * self.config.cell[0], columns * self.config.cell[1])
        propagated = None
        if state.frame > 0:
            propagated = self.propagation.imagine(state.objects, frame, self.appearance, estimator)
        explained = coverage(*propagated, frame) if propagated else self.blank(state, frame)
        count = self.proposal_count(state, rows * columns)
        discovered = self.discovery.imagine(explained, self.appearance, count, discovery_rate)
        foreground = self.draw_all(propagated, discovered, frame)
        picture = z_bg = None
        if self.background:
            z_bg = estimator.normal(self.background.prior(state.background, first=state.frame == 0))
            picture = self.background.draw(z_bg, frame)
        kept = propagated[0] if propagated else state.objects
        return self.finish(state, kept, discovered[0], foreground, picture, z_bg, state.memory)

    def finish(
        self,
        state: SceneState,
        kept: ObjectState,
        newborn: ObjectState,
        foreground: Foreground,
        backdrop: Tensor | None,
        z_bg: Tensor | None,
        memory: Memory,
    ) -> tuple[SceneState, Step]:
        """What seen and imagined frames share: births take their slots, memories move on."""
        joined = join(kept, state.roster, newborn)
        if self.config.end_duplicates:
            joined = end_duplicates(joined)
        objects = joined.objects
        remembered = self.propagation.prior.remember(objects)
        objects = objects.with_prior(remembered)
        background = state.background
        if self.background and z_bg is not None:
            background = self.background.remember(z_bg, background)
        picture = compose(foreground, backdrop)
        return (
            SceneState(objects, joined.roster, memory, background, state.frame + 1),
            Step(picture, backdrop, foreground, joined),
        )

    # Smaller parts ------------------------------------------------------------------------------------

    def proposal_count(self, state: SceneState, cells: int) -> int:
        """All slots may fill in the first frame; later only a few objects appear at once."""
        wanted = self.config.slots if state.frame == 0 else self.config.proposals
        return min(wanted, cells)

    def draw_all(
        self,
        propagated: tuple[ObjectState, Sprite] | None,
        discovered: tuple[ObjectState, Sprite],
        frame: tuple[int, int],
    ) -> Foreground:
        """Draw the followed and the proposed together; a weak proposal is drawn too, so that it can learn."""
        new, sprite = discovered
        new = new.revived()
        if propagated is None:
            return draw(new, sprite, frame)
        old, old_sprite = propagated
        both = old.unpack(torch.cat([old.pack(), new.pack()], 1))
        sprites = Sprite(*(torch.cat(pair, 1) for pair in zip(old_sprite, sprite, strict=True)))
        return draw(both, sprites, frame)

    def blank(self, state: SceneState, frame: tuple[int, int]) -> Float[Tensor, "B 1 H W"]:
        return state.background.new_zeros(state.background.shape[0], 1, *frame)

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
        tracks = gather_tracks([sighting for _, sighting in steps], size)
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
