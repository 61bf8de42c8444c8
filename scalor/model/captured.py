"""A frame of tracking as a CUDA graph: one launch instead of several hundred."""

from collections.abc import Callable
from dataclasses import fields

import torch
from torch import Tensor

from scalor.model.encoders import Memory
from scalor.model.sighting import Sighting
from scalor.model.state import ObjectState, Roster, SceneState

Step = Callable[[SceneState, Memory, Tensor], tuple[SceneState, Memory, Sighting]]


class CapturedStep:
    """Callable: the state and the sighting after an image. State and memory stay on the device, in place, so a
    state that was handed out changes with the next frame; a sighting does not."""

    def __init__(self, step: Step, state: SceneState, memory: Memory, image: Tensor) -> None:
        self.image = image.clone()
        self.state, self.memory = copied(state), Memory(*(part.clone() for part in memory))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):  # kernels load and libraries plan here, not in the capture
                step(self.state, self.memory, self.image)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            after, memory, self.sighting = step(self.state, self.memory, self.image)
            for old, new in zip((*parts(self.state), *self.memory), (*parts(after), *memory), strict=True):
                old.copy_(new)

    def __call__(self, image: Tensor) -> tuple[SceneState, Sighting]:
        self.image.copy_(image)
        self.graph.replay()
        seen = {name: part.clone() for name, part in self.sighting._asdict().items() if part is not None}
        return self.state, self.sighting._replace(**seen)


def parts(state: SceneState) -> list[Tensor]:
    """All tensors of a state, in the order that `copied` takes them."""
    objects = [getattr(state.objects, field.name) for field in fields(state.objects)]
    return [*objects, state.roster.id, state.roster.next_id, state.discovered, state.turned_away]


def copied(state: SceneState) -> SceneState:
    *objects, ids, next_id, discovered, turned_away = (part.clone() for part in parts(state))
    return SceneState(ObjectState(*objects), Roster(ids, next_id), discovered, turned_away, state.fresh)
