"""The time step made fast on a GPU: compiled for training, captured as a CUDA graph for tracking.

Training compiles `World.posterior_step`. The weights are passed as one vector, so their gradients over T frames are
summed with one kernel per frame, instead of one for each of some sixty tensors. Torch keeps compiled kernels in its
cache folder for the next run.

Tracking runs frame by frame. After some frames the step runs as a CUDA graph, which needs one launch per frame instead
of hundreds. A state is any record of tensors (a dataclass or a named tuple, possibly nested) whose shapes do not change
from frame to frame.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from scalor.data.observation import Observation
from scalor.model.rendering import RenderInput
from scalor.model.sighting import Sighting
from scalor.model.state import SceneState
from scalor.model.time_step import FrameFeatures, PosteriorStep, World
from scalor.nn.distributions import FrameNoise, Relaxed
from scalor.nn.records import copied, tensors


class Compiled:
    """Compiled module; call it with the vector of weights and the inputs of the module.

    `weights` gathers the vector once for all frames of a training step. Noise and annealed values must be inputs, and
    must be tensors or records of tensors, because a Python number is compiled in as a constant.
    """

    def __init__(self, module: nn.Module, used: Iterable[nn.Parameter]) -> None:
        self.module, wanted = module, set(used)
        self.parameters = {name: p for name, p in module.named_parameters() if p in wanted}
        # Each setting needs two graphs (first frame, later frames), and many settings may train side by side.
        torch._dynamo.config.recompile_limit = 64
        self.compiled = torch.compile(self.plain, fullgraph=True, dynamic=False, options={"combo_kernels": True})

    def weights(self) -> Tensor:
        """Return all weights that the module uses, as one vector."""
        return torch.cat([parameter.flatten() for parameter in self.parameters.values()])

    def __call__(self, weights: Tensor, *inputs: Any) -> Any:
        """Run the compiled module with the weights of `weights()`."""
        return self.compiled(weights, *inputs)

    def plain(self, weights: Tensor, *inputs: Any) -> Any:
        """Run the module with these weights; this is the function that is compiled."""
        parts = weights.split([parameter.numel() for parameter in self.parameters.values()])
        named = {
            name: part.view(parameter.shape)
            for part, (name, parameter) in zip(parts, self.parameters.items(), strict=True)
        }
        return functional_call(self.module, named, inputs)


class StepModule(nn.Module):
    """`World.posterior_step` as a module, with the `Relaxed` estimator of training."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def used(self) -> set[nn.Parameter]:
        """Return the weights that `World.posterior_step` depends on."""
        world = self.world
        unused = {*world.propagation.prior.parameters(), *world.discovery.from_features.parameters()}
        parts = (world.appearance, world.propagation, world.discovery)
        return {parameter for part in parts for parameter in part.parameters()} - unused

    def forward(
        self,
        state: SceneState,
        seen: FrameFeatures,
        temperature: float | Tensor,
        normals: Tensor,
        uniforms: Tensor,
        colour_counts: float | Tensor,
    ) -> PosteriorStep:
        """Infer one frame; the random numbers are those of the frame."""
        estimator = Relaxed(temperature, FrameNoise(normals, uniforms))
        return owned(self.world.posterior_step(state, seen, estimator, colour_counts=colour_counts))


class CompiledStep(Compiled):
    """Compiled `World.posterior_step`; its first argument is the vector of weights."""

    def __init__(self, world: World) -> None:
        module = StepModule(world)
        super().__init__(module, module.used())

    def __call__(
        self,
        weights: Tensor,
        state: SceneState,
        seen: FrameFeatures,
        estimator: Relaxed,
        colour_counts: float | Tensor = 1.0,
    ) -> PosteriorStep:
        """Infer one frame; the other arguments are those of `World.posterior_step`."""
        noise = estimator.noise
        assert isinstance(noise, FrameNoise)
        step: PosteriorStep = super().__call__(
            weights, state, seen, estimator.temperature, noise.normals, noise.uniforms, colour_counts
        )
        return step


def owned(step: PosteriorStep) -> PosteriorStep:
    """Clone the tensors that may be views of tensors inside the compiled function.

    Torch 2.11 occasionally gives such a view a wrong shape when a compiled function returns it.
    """
    state, shown = step.state, step.shown
    # Call the constructor: torch 2.11 cannot compile `_replace` of a record that the function returns.
    return PosteriorStep(
        step.propagated,
        step.proposals,
        RenderInput(shown.where, shown.presence, shown.z_depth.clone(), copied(shown.sprite)),
        replace(state, objects=copied(state.objects)),
        step.background_noise,
    )


FRAMES_BEFORE_CAPTURE = 20
"""Number of frames that run without a graph.

Capturing takes as long as about a dozen frames without a graph, so it does not pay off for short clips.
"""

State = TypeVar("State")
Start = Callable[[Observation], State]
Step = Callable[[State, Observation], tuple[State, Sighting]]


def follow_frames(
    start: Start[State], step: Step[State], images: Iterable[Observation]
) -> Iterator[tuple[State, Sighting]]:
    """Yield the state and the sighting after each image.

    Parameters
    ----------
    start
        Returns the state before the first image, given that image.
    step
        Returns the next state and the sighting, given a state and an image.
    images
        Images [B], one per frame.

    Yields
    ------
    tuple[State, Sighting]
        A state is valid only until the next image, because a captured graph overwrites it. A sighting stays valid.
    """
    state: State | None = None
    captured: CapturedStep[State] | None = None
    for t, image in enumerate(images):
        state = start(image) if state is None else state
        if image.image.is_cuda and t == FRAMES_BEFORE_CAPTURE:
            captured = CapturedStep(step, state, image)
        state, sighting = captured(image) if captured else step(state, image)
        yield state, sighting


class CapturedStep(Generic[State]):
    """A tracking step captured as a CUDA graph; call it with an image to get the next state and the sighting.

    The state is updated in place, so a state that was returned changes with the next call. A returned sighting is a
    copy and does not change.
    """

    def __init__(self, step: Step[State], state: State, image: Observation) -> None:
        self.image, self.state = copied(image), copied(state)
        with torch.cuda.device(image.image.device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):  # warm-up: kernels load and libraries initialise here, not in the capture
                    step(self.state, self.image)
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=side):
                after, self.sighting = step(self.state, self.image)
                for old, new in zip(tensors(self.state), tensors(after), strict=True):
                    old.copy_(new)

    def __call__(self, image: Observation) -> tuple[State, Sighting]:
        """Replay the graph on an image. Return the next state and the sighting."""
        for old, new in zip(tensors(self.image), tensors(image), strict=True):
            old.copy_(new)
        self.graph.replay()
        return self.state, copied(self.sighting)
