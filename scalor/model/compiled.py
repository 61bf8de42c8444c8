"""SCALOR's time step, compiled for the GPU."""

from dataclasses import fields

from torch import Tensor, nn

from scalor.model.decoders import Sprite
from scalor.model.rendering import Figures
from scalor.model.state import ObjectState, SceneState
from scalor.model.world import Seen, View, World
from scalor.nn.compiling import Compiled
from scalor.nn.distributions import FrameNoise, Relaxed


class FollowModule(nn.Module):
    """`World.follow` for training, as a module."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def used(self) -> set[nn.Parameter]:
        """The weights it depends on."""
        world = self.world
        unused = {*world.propagation.prior.parameters(), *world.discovery.from_features.parameters()}
        parts = (world.appearance, world.propagation, world.discovery)
        return {parameter for part in parts for parameter in part.parameters()} - unused

    def forward(
        self, state: SceneState, view: View, temperature: float | Tensor, normals: Tensor, uniforms: Tensor
    ) -> Seen:
        return owned(self.world.follow(state, view, Relaxed(temperature, FrameNoise(normals, uniforms))))


class CompiledFollow(Compiled):
    """Called like `World.follow`, with the weights before its arguments."""

    def __init__(self, world: World) -> None:
        module = FollowModule(world)
        super().__init__(module, module.used())

    def __call__(self, weights: Tensor, state: SceneState, view: View, estimator: Relaxed) -> Seen:
        noise = estimator.noise
        assert isinstance(noise, FrameNoise)
        seen: Seen = super().__call__(weights, state, view, estimator.temperature, noise.normals, noise.uniforms)
        return seen


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
