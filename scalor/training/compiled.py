"""The time step, compiled for the GPU.

Its weights travel as one vector: over T frames their gradients are then added up with one kernel a frame, where
some sixty tensors would take one each. Compiled kernels are kept in torch's cache folder for the next run.
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call

from scalor.distributions import Estimator
from scalor.model.state import SceneState
from scalor.model.world import Seen, View, World


class FollowModule(nn.Module):
    """`World.follow` in the form that `functional_call` wants."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def forward(self, state: SceneState, view: View, estimator: Estimator) -> Seen:
        return self.world.follow(state, view, estimator)


class CompiledFollow:
    """`follow` of a world. `weights()` gathers the weights as they are now, once for all frames of a step."""

    def __init__(self, world: World) -> None:
        self.module = FollowModule(world)
        used = (world.appearance, world.propagation, world.discovery)
        unused = {*world.propagation.prior.parameters(), *world.discovery.from_features.parameters()}
        wanted = {parameter for part in used for parameter in part.parameters()} - unused
        self.parameters = {name: p for name, p in self.module.named_parameters() if p in wanted}
        # Two graphs a setting, the first frame's and the later ones'; many settings may train side by side.
        torch._dynamo.config.recompile_limit = 64
        self.run = torch.compile(self.unpacked, fullgraph=True, dynamic=False, options={"combo_kernels": True})

    def weights(self) -> Tensor:
        return torch.cat([parameter.flatten() for parameter in self.parameters.values()])

    def unpacked(self, weights: Tensor, state: SceneState, view: View, estimator: Estimator) -> Seen:
        parts = weights.split([parameter.numel() for parameter in self.parameters.values()])
        named = {
            name: part.view(parameter.shape)
            for part, (name, parameter) in zip(parts, self.parameters.items(), strict=True)
        }
        seen: Seen = functional_call(self.module, named, (state, view, estimator))
        return seen
