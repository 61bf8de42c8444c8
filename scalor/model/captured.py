"""Tracking frame by frame; on a GPU, after some frames, as a CUDA graph: one launch a frame instead of hundreds.

A state is any record of tensors (a dataclass or a named tuple, also of such records) whose shapes stay as they are.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import torch
from torch import Tensor

from scalor.model.sighting import Sighting
from scalor.nn.records import copied, tensors

FRAMES_BEFORE_CAPTURE = 20
"""Capturing takes as long as some dozen frames do without it: short clips are better off as they are."""

State = TypeVar("State")
Start = Callable[[Tensor], State]
Step = Callable[[State, Tensor], tuple[State, Sighting]]


def follow_frames(start: Start[State], step: Step[State], images: Iterable[Tensor]) -> Iterator[tuple[State, Sighting]]:
    """The state and the sighting after each image; `start` makes the state before the first. A state is good until the
    next image."""
    state: State | None = None
    captured: CapturedStep[State] | None = None
    for t, image in enumerate(images):
        state = start(image) if state is None else state
        if image.is_cuda and t == FRAMES_BEFORE_CAPTURE:
            captured = CapturedStep(step, state, image)
        state, sighting = captured(image) if captured else step(state, image)
        yield state, sighting


class CapturedStep(Generic[State]):
    """Callable: the state and the sighting after an image. The state stays on the device, in place, so one that was
    handed out changes with the next frame; a sighting does not."""

    def __init__(self, step: Step[State], state: State, image: Tensor) -> None:
        self.image, self.state = image.clone(), copied(state)
        with torch.cuda.device(image.device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):  # kernels load and libraries plan here, not in the capture
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
