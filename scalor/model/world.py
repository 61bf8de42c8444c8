"""One step in time: `observe` (the posterior: a frame is seen) or `dream` (the prior: nothing is seen).

Letters: B clips, T frames, K slots, D proposals, Gh by Gw cells, H by W pixels, P glimpse side.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.distributions import Estimator
from scalor.model.appearance import Appearance
from scalor.model.background import Background
from scalor.model.decoders import Sprite
from scalor.model.discovery import Discovered, Discovery
from scalor.model.elbo import Activity, ElboTerms, elbo_terms
from scalor.model.encoders import ImageEncoder, Memory
from scalor.model.propagation import Propagated, Propagation
from scalor.model.rendering import Foreground, compose, coverage, draw
from scalor.model.state import Joined, ObjectState, Roster, end_duplicates, join


@dataclass(frozen=True)
class SceneState:
    """Everything remembered between frames; its size does not depend on how many have passed."""

    objects: ObjectState
    roster: Roster
    memory: Memory
    background: Float[Tensor, "B memory"]
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


class World(nn.Module):
    """The four modules, and how a frame takes the world from one state to the next."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = ImageEncoder(config.cell, config.feature_dim)
        self.appearance = Appearance(config)
        self.discovery = Discovery(config)
        self.propagation = Propagation(config)
        self.background = Background(config) if config.background else None

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
            state.objects.alive,
            frame,
        )
        backdrop, behind = None, state.background
        if self.background:
            past = self.background.recall(state.background, first=state.frame == 0)
            backdrop = self.background(image, foreground.mask.detach(), past.prior, estimator)
            behind = past.memory(backdrop.z_bg)
        picture = backdrop.picture if backdrop else None
        next_state, step = self.finish(state, kept, discovered.objects, foreground, picture, behind, memory)
        terms = elbo_terms(image, step.picture, self.config.sigma, propagated, discovered, backdrop)
        excess = (discovered.wanted - count).clamp(min=0)  # in the first frame it is slots that are short
        activity = Activity(
            objects=step.joined.objects.alive.sum((1, 2)),
            discovered=step.joined.discovered.sum(-1).float(),
            turned_away=step.joined.turned_away + (excess if state.frame == 0 else 0),
            crowded_out=excess if state.frame > 0 else torch.zeros_like(excess),
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
        foreground = self.draw_all(propagated, discovered, state.objects.alive, frame)
        picture, behind = None, state.background
        if self.background:
            past = self.background.recall(state.background, first=state.frame == 0)
            z_bg = estimator.normal(past.prior)
            picture, behind = self.background.draw(z_bg, frame), past.memory(z_bg)
        kept = propagated[0] if propagated else state.objects
        return self.finish(state, kept, discovered[0], foreground, picture, behind, state.memory)

    def finish(
        self,
        state: SceneState,
        kept: ObjectState,
        newborn: ObjectState,
        foreground: Foreground,
        backdrop: Float[Tensor, "B 3 H W"] | None,
        behind: Float[Tensor, "B memory"],
        memory: Memory,
    ) -> tuple[SceneState, Step]:
        """What seen and imagined frames share: births take their slots, memories move on."""
        joined = join(kept, state.roster, newborn)
        if self.config.end_duplicates:
            joined = end_duplicates(joined)
        picture = compose(foreground, backdrop)
        return (
            SceneState(joined.objects, joined.roster, memory, behind, state.frame + 1),
            Step(picture, backdrop, foreground, joined),
        )

    def proposal_count(self, state: SceneState, cells: int) -> int:
        """All slots may fill in the first frame; later only a few objects appear at once."""
        wanted = self.config.slots if state.frame == 0 else self.config.proposals
        return min(wanted, cells)

    def draw_all(
        self,
        propagated: tuple[ObjectState, Sprite] | None,
        discovered: tuple[ObjectState, Sprite],
        entered: Float[Tensor, "B K 1"],
        frame: tuple[int, int],
    ) -> Foreground:
        """Draw the followed and the proposed together, each by its presence alone.

        A proposal too weak to be born and an object that ends in this very frame are drawn too: otherwise the
        picture could never call for more of them. `entered` says which slots held an object before the frame.
        """
        new, sprite = discovered
        new = replace(new, alive=torch.ones_like(new.alive))
        if propagated is None:
            return draw(new, sprite, frame)
        old, old_sprite = propagated
        old = replace(old, alive=entered)
        both = old.unpack(torch.cat([old.pack(), new.pack()], 1))
        sprites = Sprite(*(torch.cat(pair, 1) for pair in zip(old_sprite, sprite, strict=True)))
        return draw(both, sprites, frame)

    def blank(self, state: SceneState, frame: tuple[int, int]) -> Float[Tensor, "B 1 H W"]:
        return state.background.new_zeros(state.background.shape[0], 1, *frame)
