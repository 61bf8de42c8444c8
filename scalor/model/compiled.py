"""SCALOR's posterior time step (`World.follow`), compiled for training on a GPU."""

from dataclasses import fields

from torch import Tensor, nn

from scalor.model.decoders import Sprite
from scalor.model.rendering import RenderInput
from scalor.model.state import ObjectState, SceneState
from scalor.model.world import PosteriorStep, View, World
from scalor.nn.compiling import Compiled
from scalor.nn.distributions import FrameNoise, Relaxed


class FollowModule(nn.Module):
    """`World.follow` as a module, with the `Relaxed` estimator of training."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def used(self) -> set[nn.Parameter]:
        """Return the weights that `World.follow` depends on."""
        world = self.world
        unused = {*world.propagation.prior.parameters(), *world.discovery.from_features.parameters()}
        parts = (world.appearance, world.propagation, world.discovery)
        return {parameter for part in parts for parameter in part.parameters()} - unused

    def forward(
        self, state: SceneState, view: View, temperature: float | Tensor, normals: Tensor, uniforms: Tensor
    ) -> PosteriorStep:
        return owned(self.world.follow(state, view, Relaxed(temperature, FrameNoise(normals, uniforms))))


class CompiledFollow(Compiled):
    """Compiled `World.follow`. Its first argument is the vector of weights; the others are those of `World.follow`."""

    def __init__(self, world: World) -> None:
        module = FollowModule(world)
        super().__init__(module, module.used())

    def __call__(self, weights: Tensor, state: SceneState, view: View, estimator: Relaxed) -> PosteriorStep:
        noise = estimator.noise
        assert isinstance(noise, FrameNoise)
        seen: PosteriorStep = super().__call__(
            weights, state, view, estimator.temperature, noise.normals, noise.uniforms
        )
        return seen


def owned(seen: PosteriorStep) -> PosteriorStep:
    """Clone the tensors that may be views of tensors inside the compiled function.

    Torch 2.11 occasionally gives such a view a wrong shape when a compiled function returns it.
    """
    state, shown = seen.state, seen.shown
    objects = ObjectState(*(getattr(state.objects, field.name).clone() for field in fields(state.objects)))
    sprite = Sprite(*(part.clone() for part in shown.sprite))
    # Call the constructor: torch 2.11 cannot compile `_replace` of a record that the function returns.
    return PosteriorStep(
        seen.following,
        seen.proposals,
        RenderInput(shown.where, shown.presence, shown.z_depth.clone(), sprite),
        SceneState(objects, state.roster, state.discovered, state.turned_away, state.fresh),
        seen.background_noise,
    )
