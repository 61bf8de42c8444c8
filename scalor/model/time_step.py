"""One time step of SCALOR: `posterior_step` infers a frame, `prior_step` samples the next one.

The paper writes one step of the generative process (Section 3.1) as propagation, discovery, background transition and
rendering; the posterior (Section 3.2) has the same order.

Little has to run frame by frame: `posterior_step` only propagates and discovers objects. Rendering, the background, the
priors and the KL terms are computed for all frames together after the loop over time (`scalor.model.elbo`). Tracking
does not compute them at all.

Letters: B clips, T frames, K slots, D proposals, G = Gh by Gw cells, F feature channels, H by W pixels, P glimpse side,
C channels of the image as the networks see it (3; with `config.still` 6).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.data.observation import Observation
from scalor.model.background import Background, BackgroundMemory
from scalor.model.discovery import Discovery, Proposals
from scalor.model.geometry import Ruler
from scalor.model.glimpses import Appearance, Sprite
from scalor.model.image_encoder import EncoderMemory, ImageEncoder
from scalor.model.propagation import PriorInput, Propagation, PropagationPosterior
from scalor.model.rendering import Rendering, RenderInput, compose, coverage, draw, render_input
from scalor.model.state import ObjectState, SceneState, end_duplicates, join
from scalor.nn.distributions import Estimator, Normal


class FrameFeatures(NamedTuple):
    """What the posterior sees of one frame; it does not depend on the objects."""

    image: Float[Tensor, "B C H W"]
    """Colours in [0, 1]. With `config.still`: colours minus the background, then colours minus 0.5."""
    features: Float[Tensor, "B F Gh Gw"]
    """Output of the image encoder."""
    cells: Float[Tensor, "B G F"]
    """Output of `Discovery.prepare`."""
    ruler: Ruler | None = None
    """Size of objects at each row; None without `config.still`."""


class PosteriorStep(NamedTuple):
    """Result of the posterior for one frame: all that rendering and the KL terms need later."""

    propagated: PropagationPosterior | None
    """None in the first frame, which has no objects to propagate."""
    proposals: Proposals
    shown: RenderInput
    """Objects to render: the propagated ones, then the proposals."""
    state: SceneState
    """State after the frame."""
    background_noise: Float[Tensor, "B bg"]
    """Noise for sampling z_bg later; zeros with `Mode`.

    It is drawn here because the estimator's noise is split by frame.
    """


class PriorState(NamedTuple):
    """State of the priors after the previous frames."""

    objects: Float[Tensor, "B K prior"]
    """Hidden state of the transition prior in each slot."""
    background: BackgroundMemory | None
    """State of the background's prior; None where the background is not modelled."""
    still: Float[Tensor, "B 3 H W"] | None = None
    """The given background; None without `config.still` and before the first frame."""
    ruler: Ruler | None = None
    """Size of objects at each row; None without `config.still` and before the first frame."""


class World(nn.Module):
    """The networks of SCALOR, and its time step with the posterior and with the prior."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = ImageEncoder(config.seen_channels, config.cell, config.feature_dim, config.memory)
        self.appearance = Appearance(config)
        self.discovery = Discovery(config)
        self.propagation = Propagation(config)
        self.background = Background(config) if config.background else None

    def start(self, clips: int, like: Tensor) -> SceneState:
        """Return the state before the first frame, on the device of `like`."""
        config = self.config
        return SceneState.empty(clips, config.slots, config.latents, config.tracker_dim, like)

    def start_encoder(self, clips: int, frame: tuple[int, int], like: Tensor) -> EncoderMemory:
        """Return the memory of the image encoder before the first frame."""
        return self.encoder.empty(clips, self.grid(frame), like)

    def start_prior(self, clips: int, like: Tensor) -> PriorState:
        """Return the state of the priors before the first frame."""
        background = self.background.empty(clips, like) if self.background else None
        return PriorState(self.propagation.prior.empty(clips, self.config.slots, like), background)

    def encode(
        self, video: Observation, memory: EncoderMemory, cut_gradients: bool = False
    ) -> tuple[list[FrameFeatures], EncoderMemory]:
        """Compute the image features of T frames together.

        Parameters
        ----------
        video
            The frames, [T, B].
        memory
            Memory of the image encoder before the first of these frames.
        cut_gradients
            Stop gradients of the memory at each frame.

        Returns
        -------
        tuple[list[FrameFeatures], EncoderMemory]
            The features of each frame, and the memory after the last one.
        """
        frames = video.image
        rulers: Sequence[Tensor | None] = [None] * len(video) if video.ruler is None else video.ruler.unbind()
        if video.still is not None:
            # Centre the inputs around zero: with the brightness of the whole scene in them the memory saturates.
            frames = torch.cat([frames - video.still, frames - 0.5], 2)
        features, memory = self.encoder(frames, memory, cut_gradients)
        cells = self.discovery.prepare(features)
        return [FrameFeatures(*frame) for frame in zip(frames, features, cells, rulers, strict=True)], memory

    def posterior_step(
        self,
        state: SceneState,
        seen: FrameFeatures,
        estimator: Estimator,
        spare_below: float | None = None,
        colour_counts: float | Tensor = 1.0,
    ) -> PosteriorStep:
        """Infer one frame with the posterior: propagate objects, discover new ones, put them into free slots.

        Parameters
        ----------
        state
            The state after the previous frame.
        seen
            The frame, from `encode`.
        estimator
            How latents are drawn.
        spare_below
            Where given, skip the empty slots at the end and the proposals whose presence is not above this value. This
            reads values on the host, which costs nothing on the CPU.
        colour_counts
            How far colour counts in what propagated objects explain, 0 to 1 (`explained`).
        """
        if spare_below is not None:
            state = state.occupied()
        image, ruler = seen.image, seen.ruler
        frame = (image.shape[-2], image.shape[-1])
        kept, known, q_propagation = state.objects, None, None
        if state.fresh:
            explained = torch.zeros_like(image[:, :1])
        else:
            kept, sprite, q_propagation = self.propagation(
                state, seen.features, image, self.appearance, estimator, ruler
            )
            known = (kept, sprite)
            with torch.no_grad():
                explained = self.explained(render_input(*known), image, colour_counts)
        count = self.proposal_count(state, frame)
        newborn, sprite, proposals = self.discovery(
            seen.cells, explained, image, self.appearance, count, estimator, spare_below, ruler
        )
        noise = image.new_zeros(len(image), self.config.background_dim if self.background else 0)
        return PosteriorStep(
            q_propagation,
            proposals,
            self.objects_to_render(known, (newborn, sprite), state.objects.alive),
            self.fill_slots(state, kept, newborn),
            estimator.normal(Normal.standard(noise)),
        )

    def prior_step(
        self, state: SceneState, past: PriorState, frame: tuple[int, int], discovery_rate: float, estimator: Estimator
    ) -> tuple[SceneState, PriorState, Rendering]:
        """Sample the next frame from the prior.

        Parameters
        ----------
        state, past
            State of the objects and of the priors after the previous frame.
        frame
            Height and width, pixels.
        discovery_rate
            Probability of a new object in each cell.
        estimator
            How latents are drawn. New objects are always drawn at random.

        Returns
        -------
        tuple[SceneState, PriorState, Rendering]
            The states after the new frame, and the frame.
        """
        propagated, memory = None, past.objects
        if not state.fresh:
            entered = PriorInput.of(state)
            (known,), memory = self.propagation.prior.remember([entered], past.objects)
            p_presence, p_latents = self.propagation.prior(known, entered.last)
            propagated = self.propagation.sample(
                state.objects, p_presence, p_latents, frame, self.appearance, estimator, past.ruler
            )
        explained = (
            coverage(render_input(*propagated), frame)
            if propagated
            else torch.zeros(len(past.objects), 1, *frame, device=past.objects.device)
        )
        count = self.proposal_count(state, frame)
        discovered = self.discovery.sample(explained, self.appearance, count, discovery_rate, past.ruler)
        shown = self.objects_to_render(propagated, discovered, state.objects.alive)
        foreground = draw(shown, frame, self.config.depth_sharpness)
        background, behind = past.still, None
        if self.background and past.background:
            background, behind = self.background.sample(past.background, frame, estimator)
        after = self.fill_slots(state, propagated[0] if propagated else state.objects, discovered[0])
        return after, PriorState(memory, behind, past.still, past.ruler), compose(foreground, background)

    def explained(
        self, shown: RenderInput, image: Float[Tensor, "B C H W"], colour_counts: float | Tensor = 1.0
    ) -> Float[Tensor, "B 1 H W"]:
        """Return how well propagated objects explain each pixel of a frame, 0 to 1.

        A pixel is explained as far as objects cover it and, with `config.explained_error`, as far as their colour there
        is that of the frame. A covered pixel of another colour may show an object that no slot follows yet. Training
        raises `colour_counts` from 0 to 1: before propagation is learned, nothing would count as explained, and
        everything would be found again in each frame (docs/log.md).
        """
        frame = (image.shape[-2], image.shape[-1])
        if not self.config.explained_error:
            return coverage(shown, frame)
        colours = image if self.config.seen_channels == 3 else image[:, 3:] + 0.5
        drawn = draw(shown, frame, self.config.depth_sharpness)
        error = (drawn.colour - colours).square().sum(1, keepdim=True)
        return drawn.mask * torch.exp(-colour_counts * error / (2 * self.config.explained_error**2))

    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        """Return the largest number of normal and of uniform random numbers that a clip needs for one frame."""
        config, (rows, columns) = self.config, self.grid(frame)
        background = config.background_dim if self.background else 0
        return (config.slots + config.proposals) * config.latents + background, config.slots + rows * columns

    def fill_slots(self, state: SceneState, kept: ObjectState, newborn: ObjectState) -> SceneState:
        """Put newborn objects into free slots and, with `config.end_duplicates`, end duplicates."""
        after = join(kept, state, newborn)
        config = self.config
        return end_duplicates(after, config.duplicate_iou, config.duplicate_what) if config.end_duplicates else after

    def proposal_count(self, state: SceneState, frame: tuple[int, int]) -> int:
        """Return the number of proposals D, at most one per cell.

        In the first frame there are enough for all slots. Later only a few objects appear at once.
        """
        rows, columns = self.grid(frame)
        return min(self.config.slots if state.fresh else self.config.proposals, rows * columns)

    def objects_to_render(
        self,
        propagated: tuple[ObjectState, Sprite] | None,
        discovered: tuple[ObjectState, Sprite],
        entered: Float[Tensor, "B K 1"],
    ) -> RenderInput:
        """Return the objects to render: propagated objects and proposals, each weighted by its presence alone.

        Proposals that are too weak to be born and objects that end in this frame are rendered, too. Otherwise the
        reconstruction error could not give their presence a gradient. `entered` is 1 where a slot held an object before
        the frame.
        """
        new, sprite = discovered
        proposed = render_input(new, sprite, torch.ones_like(new.alive))
        return render_input(*propagated, entered).beside(proposed) if propagated else proposed

    def grid(self, frame: tuple[int, int]) -> tuple[int, int]:
        """Return the rows and columns of cells of a frame (height, width)."""
        return frame[0] // self.config.cell[0], frame[1] // self.config.cell[1]
