"""The time step with its weights in one vector, and compiled, against the time step as it is written."""

import subprocess
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from scalor import SCALOR
from scalor.baselines.sqair import SQAIR, SQAIRConfig
from scalor.baselines.sqair.objective import InferenceStep
from scalor.baselines.sqair.sampling import NoiseSampler, samplers_of
from scalor.baselines.sqair.state import DiscoveryPrior, EncodedFrame, SQAIRState
from scalor.data.observation import Observation
from scalor.model.compiled import CompiledStep, follow_frames
from scalor.model.image_encoder import EncoderMemory
from scalor.model.sighting import Sighting
from scalor.model.state import SceneState
from scalor.nn.distributions import Noise, Relaxed
from scalor.nn.interface import Annealed, BoundFunction
from scalor.nn.records import copied, tensors
from tests.model.worlds import VARIANTS, each, squares, tiny_model


def noise_for(model: SCALOR | SQAIR, video: Tensor) -> Noise:
    normals, uniforms = model.noise_per_frame((video.shape[-2], video.shape[-1]))
    shape = (video.shape[1], video.shape[0])
    return Noise(torch.randn(*shape, normals), torch.rand(*shape, uniforms))


def bound_and_gradients(
    model: SCALOR, video: Tensor, noise: Noise, cut: bool = False, follow: Any = None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Every term of the bound, and the gradient of every parameter."""
    model.zero_grad()
    bound = model.elbo(Observation(video), Relaxed(0.8, noise), 0.1, cut, clip_object=1.5, step=follow)
    bound.terms.elbo.mean().backward()
    return bound.terms.to_dict(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def assert_same(one: tuple[dict[str, Tensor], ...], other: tuple[dict[str, Tensor], ...]) -> None:
    """Up to rounding; a gradient is compared by its largest entry, since large ones cancel to small ones."""
    (terms, gradients), (other_terms, other_gradients) = one, other
    torch.testing.assert_close(other_terms, terms, rtol=1e-4, atol=1e-3)
    assert other_gradients.keys() == gradients.keys()
    for name, gradient in gradients.items():
        size = float(gradient.abs().max())
        torch.testing.assert_close(other_gradients[name], gradient, rtol=0, atol=1e-4 * size, msg=name)


def not_compiled(model: SCALOR) -> CompiledStep:
    """What would be compiled, run as it is written."""
    follow = CompiledStep(model)
    follow.compiled = follow.plain
    return follow


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@each(VARIANTS)
def test_weights_in_one_vector_give_the_same_bound_and_the_same_gradients(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(4, clips=2)
    compiled, noise = not_compiled(model), noise_for(model, video)
    for cut in (False, True):
        plain = bound_and_gradients(model, video, noise, cut)
        packed = bound_and_gradients(model, video, noise, cut, partial(compiled, compiled.weights()))
        assert_same(plain, packed)
        assert len(plain[1]) == len(list(model.parameters()))


@each(VARIANTS)
def test_the_vector_holds_the_weights_that_follow_uses_and_no_others(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(3, clips=2)
    compiled, estimator = not_compiled(model), Relaxed(0.8, noise_for(model, video))
    weights = compiled.weights().detach().requires_grad_()
    model.requires_grad_(False)
    terms = model.elbo(Observation(video), estimator, 0.1, step=partial(compiled, weights)).terms
    (gradient,) = torch.autograd.grad(terms.elbo.sum(), weights)
    parts = gradient.split([parameter.numel() for parameter in compiled.parameters.values()])
    for name, part in zip(compiled.parameters, parts, strict=True):
        assert part.abs().max() > 0, name
    model.requires_grad_(True)
    stopped = model.elbo(Observation(video), estimator, 0.1, step=partial(compiled, weights.detach())).terms
    by_the_way = torch.autograd.grad(stopped.elbo.sum(), list(compiled.parameters.values()), allow_unused=True)
    assert all(gradient is None for gradient in by_the_way)


def test_the_weights_are_gathered_as_they_are_now() -> None:
    model, video = tiny_model(), squares(2, clips=2)
    compiled, noise = not_compiled(model), noise_for(model, video)
    before = bound_and_gradients(model, video, noise, follow=partial(compiled, compiled.weights()))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    plain = bound_and_gradients(model, video, noise)
    assert_same(plain, bound_and_gradients(model, video, noise, follow=partial(compiled, compiled.weights())))
    assert not torch.allclose(plain[0]["log_likelihood"], before[0]["log_likelihood"])


def test_no_result_is_a_view_of_something_inside() -> None:
    """Torch 2.11 has given such results of a compiled function garbage shapes."""
    model, video = tiny_model(), squares(3, clips=2)
    compiled, noise = not_compiled(model), noise_for(model, video)
    follow = partial(compiled, compiled.weights())
    seen = model.elbo(Observation(video), Relaxed(0.8, noise), 0.1, step=follow).steps
    for one in seen:
        objects = one.state.objects
        inside = [getattr(objects, field.name) for field in fields(objects)]
        inside += [one.shown.where, one.shown.presence, one.shown.z_depth, *one.shown.sprite]
        assert not any(tensor._is_view() for tensor in inside)


def sqair_and_noise(video: Tensor) -> tuple[SQAIR, Noise]:
    sizes: dict[str, Any] = {"slots": 2, "discoveries": 1, "glimpse": 8, "what_dim": 4, "hidden_dim": 16}
    model = SQAIR(SQAIRConfig(frame=(video.shape[-2], video.shape[-1]), **sizes))
    return model, noise_for(model, video)


def sqair_bound_and_gradients(
    model: SQAIR, video: Tensor, noise: Noise, bound: BoundFunction
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The numbers of the bound, and the gradient of every parameter."""
    model.zero_grad()
    bounded = bound(
        Observation(video), noise, Annealed(torch.ones(()), torch.tensor(0.7), cut_gradients=False, clip_object=1.5)
    )
    bounded.elbo.mean().backward()
    return bounded.numbers, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("frames", [2, 4])
def test_sqairs_weights_in_one_vector_give_the_same_bound_and_gradients(
    frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    video = squares(frames, clips=2)
    model, noise = sqair_and_noise(video)
    plain = sqair_bound_and_gradients(model, video, noise, model.bound)
    assert_same(plain, sqair_bound_and_gradients(model, video, noise, model.compiled_bound()))
    assert len(plain[1]) == len(list(model.parameters()))


def test_no_result_of_sqair_is_a_view_of_something_inside() -> None:
    video = squares(2, clips=2)
    model, noise = sqair_and_noise(video)
    particles = model.config.particles
    (view, _), draw = model.encode(video.transpose(0, 1), particles), samplers_of(noise, 2, particles)[0]
    assert isinstance(draw, NoiseSampler)
    scene = model.start(2 * particles, video)
    seen = InferenceStep(model)(scene, view, draw.noise.normals, draw.noise.uniforms, DiscoveryPrior(0.75))
    assert not any(getattr(seen.scene, field.name)._is_view() for field in fields(seen.scene))


def test_sqairs_vector_holds_the_weights_that_follow_uses_and_no_others() -> None:
    video = squares(3, clips=2)
    model, noise = sqair_and_noise(video)
    used = InferenceStep(model).used()
    scene, costs = model.start(2 * model.config.particles, video), []
    views = model.encode(video.transpose(0, 1), model.config.particles)
    for view, draw in zip(views, samplers_of(noise, 3, model.config.particles), strict=True):
        seen = model.infer(scene, EncodedFrame(view.image, view.code.detach()), draw)
        scene = seen.scene
        costs += [*seen.costs, seen.log_choices, scene.latent.sum((1, 2))]
    gradients = torch.autograd.grad(torch.stack(costs).sum(), list(model.parameters()), allow_unused=True)
    assert used == {p for p, g in zip(model.parameters(), gradients, strict=True) if g is not None}


def compile_and_compare() -> None:
    """One graph for the first frame and one for all later ones, without a break, that compute the same."""
    from torch._dynamo.utils import counters

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, video = tiny_model(seed=5), squares(3, clips=2)
    compiled, noise = CompiledStep(model), noise_for(model, video)
    compiled.compiled = torch.compile(compiled.plain, backend="aot_eager", fullgraph=True, dynamic=False)
    plain = bound_and_gradients(model, video, noise)
    assert_same(plain, bound_and_gradients(model, video, noise, follow=partial(compiled, compiled.weights())))
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] == 2
    sqair, _ = sqair_and_noise(video)
    torch.compile = partial(torch.compile, backend="eager")
    compiled_bound = sqair.compiled_bound()
    for clip in (video, video[:, :2]):
        noise = noise_for(sqair, clip)
        plain = sqair_bound_and_gradients(sqair, clip, noise, sqair.bound)
        assert_same(plain, sqair_bound_and_gradients(sqair, clip, noise, compiled_bound))
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] == 4


@pytest.mark.slow
def test_the_compiler_sees_the_whole_time_step() -> None:
    """In a process of its own: the compiler cannot see through the checker of shapes that watches the tests."""
    program = [sys.executable, "-m", "model.test_compiled"]
    done = subprocess.run(program, cwd=Path(__file__).parent.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    compile_and_compare()


Records = tuple[SceneState, EncoderMemory] | SQAIRState | Sighting


def records() -> dict[str, Records]:
    """What trackers keep between frames and say of one."""
    image = Observation(squares(1)[:, 0])
    model = tiny_model()
    kept, sighting = model.see(model.begin(image), image)
    return {"scalor": kept, "sqair": SQAIR(SQAIRConfig(frame=(32, 32))).start(2, image.image), "sighting": sighting}


@pytest.mark.parametrize("name", ["scalor", "sqair", "sighting"])
def test_a_copy_is_the_same_record_and_shares_no_memory(name: str) -> None:
    with torch.inference_mode():
        record = records()[name]
        own = copied(record)
        assert type(own) is type(record)
        before = [tensor.clone() for tensor in tensors(record)]
        for tensor in tensors(own):
            tensor.fill_(1) if tensor.dtype == torch.bool else tensor.add_(7)
        assert len(before) == len(tensors(own)) >= 5
        for tensor, was in zip(tensors(record), before, strict=True):
            assert torch.equal(tensor, was)


def test_what_is_no_tensor_is_kept_as_it_is() -> None:
    with torch.inference_mode():
        kept = records()["scalor"]
        assert type(kept) is tuple
        copy, state = copied(kept)[0], kept[0]
        assert isinstance(copy, SceneState)
        assert isinstance(state, SceneState)
        assert copy.fresh == state.fresh
        sighting = records()["sighting"]
        assert isinstance(sighting, Sighting)
        assert copied(sighting).masks is None


def test_frames_are_followed_from_the_first_on_each_from_the_state_after_the_last() -> None:
    nothing = torch.zeros(1)
    nobody = Sighting(nothing, nothing, nothing, nothing, nothing, None)

    def step(state: tuple[Tensor], seen: Observation) -> tuple[tuple[Tensor], Sighting]:
        return (10 * state[0] + seen.image.amax(),), nobody

    images = [Observation(torch.full((1, 3, 1, 1), float(number))) for number in (1, 2, 3)]
    states = [state for (state,), _ in follow_frames(lambda seen: (seen.image.amax() + 1,), step, images)]
    assert [int(state) for state in states] == [21, 212, 2123]
