"""The time step, compiled for the GPU.

Its weights travel as one vector: over T frames their gradients are then added up with one kernel a frame, where
some sixty tensors would take one each. Compiled kernels are kept in torch's cache folder for the next run.
"""

from dataclasses import fields

import torch
from torch import Tensor, nn
from torch.func import functional_call

from scalor.distributions import Estimator, FrameNoise, Relaxed
from scalor.model.decoders import Sprite
from scalor.model.rendering import Figures
from scalor.model.state import ObjectState, SceneState
from scalor.model.world import Seen, View, World


class FollowModule(nn.Module):
    """`World.follow` in the form that `functional_call` wants."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def forward(self, state: SceneState, view: View, estimator: Estimator) -> Seen:
        return self.world.follow(state, view, estimator)


class CompiledFollow:
    """Callable: `follow` for training, with the weights that `weights()` gathers once for all frames of a step."""

    def __init__(self, world: World) -> None:
        self.module = FollowModule(world)
        used = (world.appearance, world.propagation, world.discovery)
        unused = {*world.propagation.prior.parameters(), *world.discovery.from_features.parameters()}
        wanted = {parameter for part in used for parameter in part.parameters()} - unused
        self.parameters = {name: p for name, p in self.module.named_parameters() if p in wanted}
        # Two graphs a setting, the first frame's and the later ones'; many settings may train side by side.
        torch._dynamo.config.recompile_limit = 64
        self.compiled = torch.compile(self.follow, fullgraph=True, dynamic=False, options={"combo_kernels": True})

    def weights(self) -> Tensor:
        return torch.cat([parameter.flatten() for parameter in self.parameters.values()])

    def __call__(self, weights: Tensor, state: SceneState, view: View, estimator: Relaxed) -> Seen:
        assert isinstance(estimator.noise, FrameNoise)
        noise = estimator.noise
        seen: Seen = self.compiled(weights, state, view, estimator.temperature, noise.normals, noise.uniforms)
        return seen

    def follow(
        self,
        weights: Tensor,
        state: SceneState,
        view: View,
        temperature: float | Tensor,
        normals: Tensor,
        uniforms: Tensor,
    ) -> Seen:
        """What is compiled: a function of tensors, with noise that nobody outside sees being dealt."""
        parts = weights.split([parameter.numel() for parameter in self.parameters.values()])
        named = {
            name: part.view(parameter.shape)
            for part, (name, parameter) in zip(parts, self.parameters.items(), strict=True)
        }
        estimator = Relaxed(temperature, FrameNoise(normals, uniforms))
        return owned(functional_call(self.module, named, (state, view, estimator)))


def owned(seen: Seen) -> Seen:
    """Every tensor with memory of its own. Torch 2.11 now and then gives a compiled function's result a garbage
    shape where it is a view of something inside."""
    state, shown = seen.state, seen.shown
    objects = ObjectState(*(getattr(state.objects, field.name).clone() for field in fields(state.objects)))
    sprite = Sprite(*(part.clone() for part in shown.sprite))
    # Built by name: torch 2.11 cannot compile `_replace` of a record that leaves the function.
    return Seen(
        seen.following,
        seen.proposals,
        Figures(shown.where, shown.presence, shown.z_depth.clone(), sprite),
        SceneState(objects, state.roster, state.discovered, state.turned_away, state.fresh),
        seen.background_noise,
    )
