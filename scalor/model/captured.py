"""Tracking frame by frame. On a GPU, after some frames, the step runs as a CUDA graph.

A graph needs one launch per frame instead of hundreds. A state is any record of tensors (a dataclass or a named tuple,
possibly nested) whose shapes do not change from frame to frame.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import torch
from torch import Tensor

from scalor.model.sighting import Sighting
from scalor.nn.records import copied, tensors

FRAMES_BEFORE_CAPTURE = 20
"""Number of frames that run without a graph.

Capturing takes as long as about a dozen frames without a graph, so it does not pay off for short clips.
"""

State = TypeVar("State")
Start = Callable[[Tensor], State]
Step = Callable[[State, Tensor], tuple[State, Sighting]]


def follow_frames(start: Start[State], step: Step[State], images: Iterable[Tensor]) -> Iterator[tuple[State, Sighting]]:
    """Yield the state and the sighting after each image.

    Parameters
    ----------
    start
        Returns the state before the first image, given that image.
    step
        Returns the next state and the sighting, given a state and an image.
    images
        Images [B, C, H, W], one per frame.

    Yields
    ------
    tuple[State, Sighting]
        A state is valid only until the next image, because a captured graph overwrites it. A sighting stays valid.
    """
    state: State | None = None
    captured: CapturedStep[State] | None = None
    for t, image in enumerate(images):
        state = start(image) if state is None else state
        if image.is_cuda and t == FRAMES_BEFORE_CAPTURE:
            captured = CapturedStep(step, state, image)
        state, sighting = captured(image) if captured else step(state, image)
        yield state, sighting


class CapturedStep(Generic[State]):
    """A tracking step captured as a CUDA graph; call it with an image to get the next state and the sighting.

    The state is updated in place, so a state that was returned changes with the next call. A returned sighting is a
    copy and does not change.
    """

    def __init__(self, step: Step[State], state: State, image: Tensor) -> None:
        self.image, self.state = image.clone(), copied(state)
        with torch.cuda.device(image.device):
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

    def __call__(self, image: Tensor) -> tuple[State, Sighting]:
        self.image.copy_(image)
        self.graph.replay()
        return self.state, copied(self.sighting)
