"""One step in time: `follow` a frame (the posterior: it is seen) or `dream` on (the prior: nothing is seen).

What must go from frame to frame is kept short: `follow` finds and follows objects and no more. Drawing, the
background, the priors and the costs are asked for all frames at once when the loop over time is over (`elbo`),
and tracking does not ask for them at all.

Letters: B clips, T frames, K slots, D proposals, Gh by Gw cells, H by W pixels, P glimpse side.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.boxes import FULL
from scalor.config import ModelConfig
from scalor.model.appearance import Appearance
from scalor.model.background import Background, BackgroundMemory
from scalor.model.decoders import Sprite
from scalor.model.discovery import Discovered, Discovery, Proposals
from scalor.model.encoders import ImageEncoder, Memory
from scalor.model.geometry import Ruler
from scalor.model.prior import Entering
from scalor.model.propagation import Following, Propagated, Propagation
from scalor.model.rendering import Figures, compose, coverage, draw, figures
from scalor.model.state import ObjectState, Roster, SceneState, end_duplicates, join
from scalor.nn.distributions import Estimator, Normal


class View(NamedTuple):
    """A frame as the networks see it."""

    image: Float[Tensor, "B C H W"]
    """Its colours, or where there is a still scene how they differ from it and from grey."""
    features: Float[Tensor, "B F Gh Gw"]
    cells: Float[Tensor, "B G F"]
    """The features as discovery wants them."""
    ruler: Ruler | None = None
    """Where the camera stands still."""


class Seen(NamedTuple):
    """What the posterior made of a frame: all that is needed to draw it, and to charge for it, later."""

    following: Following | None
    """None in the first frame: there was nothing to follow."""
    proposals: Proposals
    shown: Figures
    state: SceneState
    """After the frame."""
    background_noise: Float[Tensor, "B bg"]
    """Set aside because noise is dealt out by frame; zero where the estimator takes modes."""


class Past(NamedTuple):
    """What the priors remember of the frames before."""

    objects: Float[Tensor, "B K prior"]
    background: BackgroundMemory | None
    still: Float[Tensor, "B 3 H W"] | None = None
    """The scene behind the objects, where the camera stands still,"""
    ruler: Ruler | None = None
    """and how large they are at each row."""


class Dreamt(NamedTuple):
    """An imagined frame."""

    picture: Float[Tensor, "B 3 H W"]
    background: Float[Tensor, "B 3 H W"] | None


class World(nn.Module):
    """The four modules, and how a frame takes the world from one state to the next."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = ImageEncoder(config.seen_channels, config.cell, config.feature_dim, config.memory)
        self.appearance = Appearance(config)
        self.discovery = Discovery(config)
        self.propagation = Propagation(config)
        self.background = Background(config) if config.background else None

    def start(self, clips: int, like: Tensor) -> SceneState:
        """Nothing seen yet."""
        config = self.config
        return SceneState(
            ObjectState.empty(clips, config.slots, config.latents, config.tracker_dim, like),
            Roster.empty(clips, config.slots, like),
            torch.zeros(clips, config.slots, device=like.device, dtype=torch.bool),
            torch.zeros(clips, device=like.device),
            fresh=True,
        )

    def no_memory(self, clips: int, frame: tuple[int, int], like: Tensor) -> Memory:
        """What the image encoder remembers before the first frame."""
        return self.encoder.empty(clips, self.grid(frame), like)

    def no_past(self, clips: int, like: Tensor) -> Past:
        """What the priors remember before the first frame."""
        background = self.background.empty(clips, like) if self.background else None
        return Past(self.propagation.prior.empty(clips, self.config.slots, like), background)

    def look(
        self, frames: Float[Tensor, "T B C H W"], memory: Memory, cut_gradients: bool = False
    ) -> tuple[list[View], Memory]:
        """All that can be seen without knowing of any object, and what is remembered after it."""
        rulers: Sequence[Tensor | None] = [None] * len(frames)
        if self.config.still:
            colours, still, rows = frames.split([3, 3, 1], 2)
            # Around zero: with the brightness of a whole scene in every weight's way, the memory saturates.
            frames = torch.cat([colours - still, colours - 0.5], 2)
            rulers = read_ruler(rows).unbind()
        features, memory = self.encoder(frames, memory, cut_gradients)
        cells = self.discovery.prepare(features)
        return [View(*view) for view in zip(frames, features, cells, rulers, strict=True)], memory

    def follow(self, state: SceneState, view: View, estimator: Estimator, spare_below: float | None = None) -> Seen:
        """The posterior: propagate, discover what is not explained, join.

        `spare_below` leaves out empty slots, and proposals of a presence below it. The price is a look at values
        on the host, which the CPU has for nothing.
        """
        if spare_below is not None:
            state = state.occupied()
        image = view.image
        frame = (image.shape[-2], image.shape[-1])
        propagated: Propagated | None = None
        if state.fresh:
            explained = torch.zeros_like(image[:, :1])
        else:
            propagated = self.propagation(state, view.features, image, self.appearance, estimator, view.ruler)
            with torch.no_grad():
                explained = coverage(figures(propagated.objects, propagated.sprite), frame)
        count = self.proposal_count(state, frame)
        discovered: Discovered = self.discovery(
            view.cells, explained, image, self.appearance, count, estimator, spare_below, view.ruler
        )
        noise = image.new_zeros(len(image), self.config.background_dim if self.background else 0)
        return Seen(
            propagated.following if propagated else None,
            discovered.proposals,
            self.show(
                (propagated.objects, propagated.sprite) if propagated else None,
                (discovered.objects, discovered.sprite),
                state.objects.alive,
            ),
            self.seat(state, propagated.objects if propagated else state.objects, discovered.objects),
            estimator.normal(Normal.standard(noise)),
        )

    def dream(
        self, state: SceneState, past: Past, frame: tuple[int, int], discovery_rate: float, estimator: Estimator
    ) -> tuple[SceneState, Past, Dreamt]:
        """The prior: the world goes on unseen."""
        propagated, memory = None, past.objects
        if not state.fresh:
            entered = Entering.of(state)
            (known,), memory = self.propagation.prior.remember([entered], past.objects)
            transition = self.propagation.prior(known, entered.last)
            propagated = self.propagation.imagine(
                state.objects, transition, frame, self.appearance, estimator, past.ruler
            )
        explained = (
            coverage(figures(*propagated), frame)
            if propagated
            else torch.zeros(len(past.objects), 1, *frame, device=past.objects.device)
        )
        count = self.proposal_count(state, frame)
        discovered = self.discovery.imagine(explained, self.appearance, count, discovery_rate, past.ruler)
        foreground = draw(self.show(propagated, discovered, state.objects.alive), frame)
        background, behind = past.still, None
        if self.background and past.background:
            background, behind = self.background.dream(past.background, frame, estimator)
        after = self.seat(state, propagated[0] if propagated else state.objects, discovered[0])
        return after, Past(memory, behind, past.still, past.ruler), Dreamt(compose(foreground, background), background)

    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        """How many normal and uniform numbers a clip needs for a frame, at most."""
        config, (rows, columns) = self.config, self.grid(frame)
        background = config.background_dim if self.background else 0
        return (config.slots + config.proposals) * config.latents + background, config.slots + rows * columns

    def seat(self, state: SceneState, kept: ObjectState, newborn: ObjectState) -> SceneState:
        """Births take their slots."""
        after = join(kept, state.roster, newborn)
        return end_duplicates(after) if self.config.end_duplicates else after

    def proposal_count(self, state: SceneState, frame: tuple[int, int]) -> int:
        """All slots may fill in the first frame; later only a few objects appear at once."""
        rows, columns = self.grid(frame)
        return min(self.config.slots if state.fresh else self.config.proposals, rows * columns)

    def show(
        self,
        propagated: tuple[ObjectState, Sprite] | None,
        discovered: tuple[ObjectState, Sprite],
        entered: Float[Tensor, "B K 1"],
    ) -> Figures:
        """The followed and the proposed together, each drawn by its presence alone.

        A proposal too weak to be born and an object that ends in this very frame are drawn too: otherwise the
        picture could never call for more of them. `entered` says which slots held an object before the frame.
        """
        new, sprite = discovered
        proposed = figures(new, sprite, torch.ones_like(new.alive))
        return figures(*propagated, entered).beside(proposed) if propagated else proposed

    def grid(self, frame: tuple[int, int]) -> tuple[int, int]:
        return frame[0] // self.config.cell[0], frame[1] // self.config.cell[1]


def read_ruler(channel: Float[Tensor, "*T B 1 H W"]) -> Float[Tensor, "*T B H"]:
    """The sizes that a frame's last channel tells, row by row."""
    return FULL * channel[..., 0, :, 0]
