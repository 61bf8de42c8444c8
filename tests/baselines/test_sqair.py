"""SQAIR: the stopping process, identities, its bound, and that it learns."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from scalor import kernels
from scalor.baselines.sqair import SQAIR, SQAIRConfig
from scalor.baselines.sqair.sampling import ModeSampler, NoiseSampler, has_room, samplers_of, stopping_log_prob
from scalor.baselines.sqair.state import Candidates, SQAIRState
from scalor.config import Config, SceneConfig, TrainConfig
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation import evaluate_tracks
from scalor.kernels import paste
from scalor.model.elbo import pixel_log_likelihood
from scalor.nn.distributions import FrameNoise, Mode, Noise, Normal, logit
from scalor.nn.interface import Annealed, Bound
from scalor.training.step import TrainingStep, anneals
from tests.layers import linear

DARKNESS, DISCOVERY_BIAS, PRESENCE_PRIOR = SQAIRConfig().darkness, SQAIRConfig().discovery_bias, 0.75
TINY: dict[str, Any] = {
    "discovery_limit": 1e3,
    "frame": (32, 32),
    "slots": 3,
    "discoveries": 2,
    "particles": 3,
    "glimpse": 8,
    "what_dim": 4,
    "hidden_dim": 16,
}
NOW = Annealed(torch.ones(()), torch.tensor(PRESENCE_PRIOR), cut_gradients=False)


def tiny_model(discovery: float = 0.0, propagation: float = 0.0, **changes: Any) -> SQAIR:
    """Random weights; `discovery` and `propagation` are added to the presence logits."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SQAIR(SQAIRConfig(**{**TINY, **changes})).eval()
    with torch.no_grad():
        linear(model.appearance.decoder).bias.add_(DARKNESS)  # untrained glimpses are too dark to be told of
        linear(model.discovery.presence).bias.add_(discovery)
        linear(model.discovery.newcomer).bias.add_(discovery + DISCOVERY_BIAS - model.discovery.newcomer_bias)
        linear(model.propagation.presence).bias.add_(propagation)
    return model


def fickle_model(**changes: Any) -> SQAIR:
    """Objects come and go by chance."""
    return tiny_model(discovery=-4.0, propagation=-4.0, **changes)


def video(clips: int = 2, frames: int = 4) -> Tensor:
    return Scenes(SceneConfig(frame=(32, 32), objects=(1, 2), size=9.0, length=frames), 0).clips(0, clips).frames


def noise_for(model: SQAIR, frames: Tensor, seed: int = 0) -> Noise:
    random = torch.Generator().manual_seed(seed)
    normals, uniforms = model.noise_per_frame(model.config.frame)
    shape = (frames.shape[1], len(frames))
    return Noise(torch.randn(*shape, normals, generator=random), torch.rand(*shape, uniforms, generator=random))


def bound(model: SQAIR, frames: Tensor, noise: Noise | None = None) -> Bound:
    return model.bound(Observation(frames), noise or noise_for(model, frames), NOW)


def scenes_of(model: SQAIR, frames: Tensor, seed: int = 0) -> list[SQAIRState]:
    draws = samplers_of(noise_for(model, frames, seed), frames.shape[1], model.config.particles)
    with torch.no_grad():
        return model.explain(frames, draws, model.config.particles).scenes


# The stopping process.


@pytest.mark.parametrize("room", [0, 1, 2, 3, 4])
def test_the_probabilities_of_counts_sum_to_one_and_follow_the_geometric_table(room: int) -> None:
    steps, success = 3, 0.75
    taken = torch.tensor([[1.0] * count + [0.0] * (steps - count) for count in range(min(steps, room) + 1)])[..., None]
    free = torch.full((len(taken), 1), float(room))
    probability = stopping_log_prob(logit(success, taken), taken, free).exp()
    most = min(steps, room)
    table = [success**count * (1 - success) for count in range(most)] + [success**most]
    torch.testing.assert_close(probability, torch.tensor(table))
    anything = torch.randn(1, steps, 1).expand_as(taken)
    torch.testing.assert_close(stopping_log_prob(anything, taken, free).exp().sum(), torch.tensor(1.0))


def test_after_a_stop_nothing_is_drawn() -> None:
    model = fickle_model()
    frames = video(clips=16, frames=2)
    for scene in scenes_of(model, frames):
        there = scene.present[..., 0]
        assert (there.diff(dim=1) <= 0).all(), "objects come before empty slots"
    counts = scenes_of(model, frames)[0].present.sum((1, 2))
    assert set(counts.tolist()) == {0.0, 1.0, 2.0, 3.0}


def test_eagerness_wants_objects_only_where_the_prior_leans_to_them() -> None:
    """It is for training alone: as likely as not stays as likely as not."""
    frames = video()
    eager, calm = fickle_model(eagerness=8.0), fickle_model()
    noise = noise_for(calm, frames)
    for chance, same in ((0.5, True), (0.9, False)):
        now = NOW._replace(presence_prior=torch.tensor(chance))
        one, other = (model.bound(Observation(frames), noise, now).elbo for model in (eager, calm))
        assert torch.allclose(one, other) == same


def test_discovery_is_never_quite_certain() -> None:
    """Its logits stay within 5, so that at least one in 150 draws tries the other choice."""
    model = tiny_model(discovery=30.0, discovery_limit=5.0)
    counts = torch.stack([scenes_of(model, video(clips=64), seed)[0].present.sum((1, 2)) for seed in range(3)])
    assert 0.95 * 3 < counts.mean() < 3


def test_what_would_have_come_after_the_stop_changes_nothing() -> None:
    model = tiny_model(discovery=-30.0)
    frames = video()
    one, other = (bound(model, frames, noise_for(model, frames, seed)).elbo for seed in (0, 1))
    torch.testing.assert_close(one, other)


def test_counts_are_drawn_as_often_as_their_probability_says() -> None:
    rows, success = 20_000, 0.6
    draw = NoiseSampler(
        FrameNoise(torch.zeros(rows, 0), torch.rand(rows, 3, generator=torch.Generator().manual_seed(0)))
    )
    going = torch.stack([draw.choose(logit(success, torch.zeros(rows, 1))) for _ in range(3)], 1).cumprod(1)
    drawn = torch.bincount(going.sum((1, 2)).long(), minlength=4) / rows
    table = torch.tensor([0.4, 0.6 * 0.4, 0.36 * 0.4, 0.216])
    torch.testing.assert_close(drawn, table, atol=0.01, rtol=0)


def test_room_counts_free_slots() -> None:
    assert has_room(torch.tensor([[0.0], [2.0], [5.0]]), 3).tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 1]]


# Identities.


def test_an_id_stays_while_its_object_stays_and_is_never_given_again() -> None:
    model = fickle_model()
    scenes = scenes_of(model, video(clips=8, frames=6))
    births = deaths = 0
    for row in range(len(scenes[0].id)):
        before: set[int] = set()
        ever: set[int] = set()
        for scene in scenes:
            now = [i for i in scene.id[row].tolist() if i >= 0]
            new = {i for i, found in zip(scene.id[row].tolist(), scene.discovered[row, :, 0], strict=True) if found}
            assert len(now) == len(set(now)) == scene.present[row].sum()
            assert set(now) - before == new
            assert not new & ever
            births, deaths = births + len(new), deaths + len(before - set(now))
            before, ever = set(now), ever | set(now)
    assert births > 20
    assert deaths > 20


def test_objects_that_stay_move_up_with_all_that_is_theirs() -> None:
    model = tiny_model()
    latents, hidden = model.config.latents, model.config.hidden_dim
    mark = torch.arange(3.0)[None, :, None]
    scene = SQAIRState(
        latent=mark.expand(1, 3, latents),
        present=torch.ones(1, 3, 1),
        presence=torch.ones(1, 3, 1),
        tracker=mark.expand(1, 3, hidden),
        memory=mark.expand(1, 3, hidden),
        discovered=torch.zeros(1, 3, 1),
        id=torch.tensor([[4, 6, 7]]),
        next_id=torch.tensor([9]),
    )
    stays = torch.tensor([0.0, 1.0, 1.0])[None, :, None]
    kept = Candidates(torch.zeros(1, 3, 1), stays, Normal.standard(scene.latent), scene.latent + 10)
    found = torch.tensor([1.0, 0.0])[None, :, None]
    blank = torch.full((1, 2, latents), 50.0)
    after = model.pack(
        scene, kept, scene.tracker + 20, scene.memory + 30, Candidates(found, found, Normal.standard(blank), blank)
    )
    assert after.id.tolist() == [[6, 7, 9]]
    assert after.next_id.tolist() == [10]
    assert after.latent[0, :, 0].tolist() == [11, 12, 50]
    assert after.tracker[0, :, 0].tolist() == [21, 22, 0]
    assert after.memory[0, :, 0].tolist() == [31, 32, 0]
    assert after.discovered[0, :, 0].tolist() == [0, 0, 1]


def test_later_objects_know_of_those_before_them_and_not_the_other_way_round() -> None:
    model = tiny_model(discovery=30.0, propagation=30.0)
    frames = video(clips=1, frames=2)
    (view, second) = model.encode(frames.transpose(0, 1), 1)
    scene = model.infer(model.start(1, frames), view, ModeSampler()).scene

    def moved(slot: int) -> Tensor:
        latent = scene.latent.clone()
        latent[:, slot] += 0.1
        return model.infer(replace(scene, latent=latent), second, ModeSampler()).scene.latent

    same = model.infer(scene, second, ModeSampler()).scene.latent
    changed = [(moved(slot) - same).abs().amax((0, 2)) > 1e-7 for slot in range(3)]
    assert [row.tolist() for row in changed] == [[True, True, True], [False, True, True], [False, False, True]]


def test_no_gradient_goes_from_an_object_to_the_latents_of_those_before_it() -> None:
    """Through hidden states it does; with what others hear left out of these, nothing is left."""
    model = tiny_model(discovery=30.0, propagation=30.0)
    with torch.no_grad():
        for layer in (model.discovery.recur, model.propagation.relate):
            layer.weight[:, : model.config.hidden_dim] = 0
    frames = video(clips=1, frames=2)
    (view, second) = model.encode(frames.transpose(0, 1), 1)
    scene = model.infer(model.start(1, frames), view, ModeSampler()).scene
    last = [scene.latent[:, slot].detach().requires_grad_() for slot in range(3)]
    after = model.infer(replace(scene.detach(), latent=torch.stack(last, 1)), second, ModeSampler()).scene.latent
    reached = [
        [gradient is not None and bool(gradient.any()) for gradient in gradients]
        for slot in range(3)
        for gradients in [torch.autograd.grad(after[:, slot].sum(), last, retain_graph=True, allow_unused=True)]
    ]
    assert reached == [[True, False, False], [False, True, False], [False, False, True]]


# Few and many objects.


@pytest.mark.parametrize(("length", "later"), [(2, 0), (3, 2)])  # in the second of two frames nothing can come
def test_without_objects_the_bound_is_that_of_a_black_frame_and_of_stopping_at_once(length: int, later: int) -> None:
    model = tiny_model(discovery=-40.0)
    frames = video(clips=2, frames=length)
    found = bound(model, frames)
    black = pixel_log_likelihood(frames.square().sum((1, 2, 3, 4)), frames[0].numel(), model.config.sigma)
    stopping = math.log(1 - PRESENCE_PRIOR) + later * math.log(1 - model.config.later_discovery)
    torch.testing.assert_close(found.elbo, black + stopping)
    assert len(model.track(frames)) == 0
    assert not model.reconstruct(frames).frames.any()
    assert model.generate(frames, 2, 3).frames.shape == (2, 5, 3, 32, 32)
    found.elbo.sum().backward()


def test_there_are_never_more_objects_than_slots() -> None:
    model = tiny_model(discovery=40.0, propagation=40.0)
    frames = video(clips=2, frames=3)
    tracks = model.track(frames)
    assert [int((tracks.frame == t).sum()) for t in range(3)] == [6, 6, 6]
    assert set(tracks.id.tolist()) == {1, 2, 3}
    assert tracks.discovered.tolist() == (tracks.frame == 0).tolist()
    numbers = bound(model, frames).numbers
    # All slots taken: of the later frames' discovery nothing is asked, so it costs nothing.
    torch.testing.assert_close(numbers["kl_discovered_presence"], torch.full((2,), -3 * math.log(PRESENCE_PRIOR)))
    assert (numbers["objects"] == 3).all()


def test_in_training_nothing_new_comes_in_the_second_of_two_frames() -> None:
    model = tiny_model(discovery=40.0, propagation=-40.0)
    two, three = (bound(model, video(clips=2, frames=frames)).numbers["discovered"] for frames in (2, 3))
    torch.testing.assert_close(two, torch.full((2,), 3 / 2))  # three slots are filled in the first frame
    torch.testing.assert_close(three, torch.full((2,), (3 + 2 + 2) / 3))
    assert len(model.track(video(clips=1, frames=2))) == 3 + 2, "in use, two frames are as any"


def reached(part: nn.Module) -> set[bool]:
    """Return whether a gradient has come to the weights."""
    return {p.grad is not None and bool(p.grad.norm() > 0) for p in part.parameters()}


@pytest.mark.parametrize(("frames", "taught"), [(2, False), (3, True)])
def test_whether_something_has_come_is_learned_where_it_can(frames: int, taught: bool) -> None:
    model = fickle_model()
    bound(model, video(clips=8, frames=frames)).elbo.mean().backward()
    assert reached(model.discovery.newcomer) == {taught}
    assert reached(model.discovery.presence) == {True}


def test_before_learning_something_new_is_about_as_likely_as_its_prior_says() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SQAIR(SQAIRConfig(**{**TINY, "later_discovery": 0.2}))
        linear(model.propagation.presence).bias.data -= 40  # all slots are free again
    later = scenes_of(model, video(clips=512, frames=3))[1]
    some = (later.present.sum((1, 2)) > 0).float().mean()
    assert 0.15 < some < 0.25


def test_objects_that_draw_nothing_are_not_told_of() -> None:
    model, frames = tiny_model(discovery=40.0, propagation=40.0), video()
    assert len(model.track(frames)) == 2 * 4 * 3
    with torch.no_grad():
        linear(model.appearance.decoder).bias.sub_(2 * DARKNESS)
    assert len(model.track(frames)) == 0


def test_sizes_keep_to_their_range_and_gradients_stay_numbers_however_far_z_where_drifts() -> None:
    eye = fickle_model(object_size=(8.0, 6.0), size_range=0.25).appearance
    z_where = torch.tensor([[[0.1, -0.2, -300.0, 300.0]]], requires_grad=True)
    box = eye.box(z_where)
    torch.testing.assert_close(box[0, 0, 2:], torch.tensor([4.5, 10.0]))
    canvas = paste(torch.rand(1, 1, 3, 8, 8), box, (32, 32))
    (canvas - torch.rand(1, 3, 32, 32)).square().sum().backward()
    assert z_where.grad is not None
    assert z_where.grad.isfinite().all()


def test_an_object_expected_nothing_of_has_the_usual_box() -> None:
    model = fickle_model(object_size=(8.0, 6.0))
    expected = Normal.standard(torch.zeros(1, 1, model.config.latents)).mean[0, 0, :4]
    torch.testing.assert_close(model.appearance.box(expected), torch.tensor([16.0, 16.0, 6.0, 8.0]))


# The bound.


def test_gradients_reach_every_parameter() -> None:
    model = fickle_model()
    bound(model, video(clips=8)).elbo.sum().backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert not idle


def test_cut_gradients_leave_the_bound_as_it_is() -> None:
    model, frames = fickle_model(), video()
    noise = noise_for(model, frames)
    whole, cut = (model.bound(Observation(frames), noise, NOW._replace(cut_gradients=c)).elbo for c in (False, True))
    torch.testing.assert_close(whole, cut)


def test_evened_gradients_leave_the_bound_as_it_is_and_change_what_is_learned() -> None:
    model, frames = tiny_model(discovery=-2.0, propagation=-2.0), video(clips=8, frames=6)
    noise = noise_for(model, frames)
    bounds = [
        model.bound(Observation(frames), noise, NOW._replace(clip_object=times)).elbo for times in (0.0, 1e9, 1.01)
    ]
    plain, far, near = (
        torch.autograd.grad(one.sum(), model.propagation.expect.weight, retain_graph=True)[0] for one in bounds
    )
    torch.testing.assert_close(bounds[0], bounds[2])
    torch.testing.assert_close(far, plain, rtol=1e-4, atol=1e-4)
    assert (near - plain).norm() > 0.001 * plain.norm()


def test_clips_do_not_disturb_each_other() -> None:
    model, frames = fickle_model(), video(clips=5)
    noise, order = noise_for(model, frames), torch.tensor([3, 0, 4, 2, 1])
    mixed = Noise(noise.normals[:, order], noise.uniforms[:, order])
    there = bound(model, frames, noise)
    again = bound(model, frames[order], mixed)
    torch.testing.assert_close(there.elbo[order], again.elbo)
    for name in model.reported:
        torch.testing.assert_close(there.numbers[name][order], again.numbers[name])


def test_the_bound_is_the_likelihood_less_the_costs_where_all_particles_are_alike() -> None:
    model, frames = fickle_model(), video()
    normals, uniforms = (part.clone() for part in vars(noise_for(model, frames)).values())
    for part in (normals, uniforms):
        shared = part.unflatten(-1, (model.config.particles, -1))
        shared[:] = shared[:, :, :1].clone()
    found = bound(model, frames, Noise(normals, uniforms))
    costs = sum(found.numbers[name] for name in model.reported if name.startswith("kl_"))
    torch.testing.assert_close(found.elbo, found.numbers["log_likelihood"] - costs)


def test_more_samples_give_a_better_bound() -> None:
    model, frames = fickle_model(), video(clips=16, frames=2)
    torch.manual_seed(0)
    bounds = [float(model.log_likelihood(frames, samples).mean()) for samples in (1, 5, 50)]
    assert bounds == sorted(bounds)


def test_the_noise_is_all_there_is_of_chance() -> None:
    model, frames = fickle_model(), video()
    torch.manual_seed(1)
    one = bound(model, frames).elbo
    torch.manual_seed(2)
    torch.testing.assert_close(one, bound(model, frames).elbo, rtol=0, atol=0)


class Blindfold(TorchDispatchMode):
    """Whoever looks at a value on the host, or lets a shape depend on one, fails."""

    LOOKS = ("aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero", "aten::equal", "aten::unique")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert not func.name().startswith(self.LOOKS), func.name()
        return func(*args, **(kwargs or {}))


def test_no_value_is_looked_at_on_the_host() -> None:
    """So that a training step can be captured as a CUDA graph."""
    model, frames = fickle_model(), video()
    noise = noise_for(model, frames)
    with kernels.forced("matmul"), Blindfold():  # type: ignore[no-untyped-call]
        model.bound(Observation(frames), noise, NOW).elbo.sum().backward()
        with pytest.raises(AssertionError, match="_local_scalar_dense"):
            bool(noise.normals[0, 0, 0] > 0)


def test_low_precision_networks_give_a_bound_of_full_precision() -> None:
    model, frames = fickle_model(), video()
    with torch.autocast("cpu", torch.bfloat16):
        low = bound(model, frames)
    assert low.elbo.dtype == torch.float32
    low.elbo.sum().backward()
    assert torch.isfinite(low.elbo).all()
    assert all(number.dtype == torch.float32 for number in low.numbers.values())


# Use.


def test_track_stream_and_reconstruct_agree() -> None:
    model, frames = tiny_model(), video(clips=1)
    whole = model.track(frames, masks=True)
    parts = list(model.stream(frames[0], masks=True))
    assert len(whole) > 0
    for name in ("frame", "id", "box", "presence", "discovered", "masks"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_allclose(joined, getattr(whole, name), atol=1e-4, err_msg=name)
    seen = model.reconstruct(frames)
    np.testing.assert_allclose(seen.tracks.box, whole.box, atol=1e-4)
    assert seen.frames.shape == frames.shape
    assert whole.masks is not None
    assert not (whole.masks[whole.frame == 0].sum(0) > 1).any(), "a pixel shows one object"


def test_the_future_is_likely_or_drawn() -> None:
    model, frames = tiny_model(discovery=30.0), video()
    one, two = (model.generate(frames, 2, 3, estimator=Mode()).frames for _ in range(2))
    torch.testing.assert_close(one, two)
    drawn = model.generate(frames, 2, 3)
    torch.testing.assert_close(drawn.frames[:, :2], one[:, :2])
    assert not torch.allclose(drawn.frames[:, 2:], one[:, 2:])
    kept = [set(drawn.tracks.id[drawn.tracks.frame == t].tolist()) for t in range(5)]
    assert all(later <= sooner for sooner, later in itertools.pairwise(kept)), "nothing appears unless asked for"
    lively = tiny_model(discovery=-30.0).generate(frames, 1, 4, discovery_rate=0.9)
    assert len(lively.tracks) > 0


def test_every_slot_has_its_picture() -> None:
    model, frames = tiny_model(discovery=30.0), video()
    assert model.object_pictures(frames).shape == (2, 4, 3, 3, 8, 8)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"frame": (30, 32)}, r"model\.frame"),
        ({"slots": 0}, r"model\.slots"),
        ({"particles": 1}, "at least 2"),
        ({"patch": 5}, r"model\.frame .* multiples of model\.patch, 5"),
        ({"object_size": (40.0, 9.0)}, "smaller than the frame"),
        ({"size_range": 1.0}, "between 0 and 1"),
        ({"later_discovery": 1.0}, r"model\.later_discovery"),
        ({"sigma": 0.0}, r"model\.sigma"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        SQAIRConfig(**{**TINY, **changes})


def test_frames_of_another_size_are_refused() -> None:
    with pytest.raises(InputError, match="32x32"):
        tiny_model().track(torch.zeros(2, 3, 64, 64))
    with pytest.raises(InputError, match=r"one frame, \[3, H, W\]"):
        next(tiny_model().stream([torch.zeros(2, 3, 32, 32)]))


@pytest.mark.slow
def test_some_hundred_steps_find_one_or_two_objects() -> None:
    """By the trainer's own step. Presence is expected at first, as in AIR: glimpses must learn before they count."""
    scene = SceneConfig(frame=(32, 32), objects=(1, 2), size=9.0, length=2)
    config = Config(
        model=SQAIRConfig(
            frame=(32, 32), slots=2, discoveries=2, glimpse=10, what_dim=10, hidden_dim=64, sigma=0.2, particles=2
        ),
        scene=scene,
        test=scene,
        train=TrainConfig(learning_rate=1e-3, lengths=((0, 1), (310, 2)), presence_prior=(0.999999, 0.75, 2_000)),
    )
    torch.manual_seed(0)
    step = TrainingStep(config, SQAIR(config.model), Scenes(scene, 0), torch.device("cpu"))
    reports = torch.stack([step(number, anneals(config.train, number)).clone() for number in range(350)])
    errors = reports[:, step.names.index("squared_error")]
    assert errors[260:310].mean() < 0.75 * errors[:50].mean()
    clip = Scenes(scene, 0, "test").clips(0, 64)
    assert isinstance(step.model, SQAIR)
    report = evaluate_tracks(step.model.track(clip.frames), clip.truth, scene.size)
    assert report.paper.recall > 0.6
    assert report.propagation_rate > 0.5
