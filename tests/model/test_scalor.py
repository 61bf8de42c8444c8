"""Laws of the world model as a whole. Weights are random; `worlds.tiny_model` tunes them until objects come and go."""

import math
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scalor.config import ModelConfig
from scalor.distributions import Estimator, Exact, Mode, Relaxed
from scalor.model.elbo import Activity, ElboTerms
from scalor.model.scalor import PRESENCE_PRIOR, SCALOR, Rollout
from scalor.model.state import ObjectState
from scalor.model.world import SceneState
from scalor.tracks import Tracks, join_tracks

from .worlds import assert_same_tracks, numbers, see, squares, tiny_model, tune

pytestmark = pytest.mark.filterwarnings("ignore:slots run out")  # tiny worlds are crowded

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "background": {"background": True},
    "no attention": {"attention": False},
    "no search": {"search": False},
    "no rejection": {"rejection": False},
    "as the paper": {"search": False, "end_duplicates": False},
    "bare": {"attention": False, "search": False, "rejection": False, "end_duplicates": False},
    "odd attention window": {"attention_cells": 3, "background": True},
}
SHAPES: dict[str, dict[str, Any]] = {
    "48x80 in 6x10 cells": {"frame": (48, 80), "grid": (6, 10)},
    "cells of 6x5": {"frame": (24, 20), "grid": (4, 4)},
    "cells of 12x12": {"frame": (36, 48), "grid": (3, 4)},
    "cells of 7x7": {"frame": (28, 21), "grid": (4, 3)},
    "cells of 1x8": {"frame": (4, 32), "grid": (4, 4)},
    "one cell": {"frame": (16, 16), "grid": (1, 1)},
    "one slot": {"slots": 1},
    "more slots than cells": {"slots": 40, "proposals": 40},
    "one proposal": {"proposals": 1},
    "glimpses of 4": {"glimpse": 4},
    "glimpses of 12": {"glimpse": 12, "background": True},
    "flat objects": {"object_size": (3.0, 20.0), "size_range": 0.9},
}


def each(table: dict[str, dict[str, Any]]) -> Callable[[Any], Any]:
    return pytest.mark.parametrize("changes", table.values(), ids=table)


def per_frame(tracks: Tracks, frames: int) -> list[int]:
    return [int((tracks.frame == t).sum()) for t in range(frames)]


def observe(
    model: SCALOR, state: SceneState, image: Tensor, estimator: Estimator | None = None
) -> tuple[SceneState, Any, ElboTerms, Activity]:
    seen = model.look(image[:, None])[:, 0]
    return model.observe(state, image, seen, estimator or Mode(), PRESENCE_PRIOR)


# Tracking ---------------------------------------------------------------------------------------------


def test_the_tiny_world_is_eventful() -> None:
    """The laws below say little where nothing happens: objects are born at once and later, and they die."""
    tracks = tiny_model().track(squares(8, clips=2))
    first, last = tracks.select(tracks.frame == 0), tracks.select(tracks.frame == 7)
    assert 0 < len(first) < 12
    assert set(last.id) - set(first.id)
    assert set(first.id) - set(last.id)
    assert not tracks.discovered.all()
    assert tracks.box[:, 0].std() > 4


@each(VARIANTS)
def test_a_video_streamed_frame_by_frame_gives_the_tracks_of_the_whole(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(6)
    whole = model.track(video[0], masks=True)
    parts = list(model.stream(list(video[0]), masks=True))
    assert [set(part.frame.tolist()) <= {t} for t, part in enumerate(parts)] == [True] * 6
    streamed = join_tracks(parts)
    assert_same_tracks(streamed, whole)
    assert whole.masks is not None
    assert streamed.masks is not None
    assert (streamed.masks != whole.masks).mean() < 1e-4
    assert len(whole) > 6


def test_a_stream_is_read_one_frame_at_a_time() -> None:
    taken = []

    def camera() -> Any:
        for t, frame in enumerate(squares(4)[0]):
            taken.append(t)
            yield frame

    for t, _ in enumerate(tiny_model().stream(camera())):
        assert taken == list(range(t + 1))


@each(VARIANTS)
def test_the_clips_of_a_batch_are_tracked_as_if_alone(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(4, clips=3)  # rounding grows with every frame
    batch = model.track(video)
    for clip in range(3):
        together, alone = batch.of_clip(clip), model.track(video[clip])
        assert_same_tracks(replace(together, clip=together.clip - clip), alone)
        assert len(alone) > 4


def test_tracking_leaves_nothing_behind() -> None:
    """Neither another video nor a stream in between changes what a model says, nor its weights."""
    model, video, other = tiny_model(background=True), squares(4), squares(4, seed=5)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    first = model.track(video)
    here, there = model.stream(list(video[0])), model.stream(list(other[0]))
    parts = []
    for _ in range(4):
        parts.append(next(here))
        next(there)
    assert_same_tracks(join_tracks(parts), first)
    model.generate(other, observe=2, horizon=2)
    again = model.track(video)
    assert np.array_equal(first.box, again.box)
    assert np.array_equal(first.id, again.id)
    for name, value in model.state_dict().items():
        assert torch.equal(value, weights[name]), name


def test_arrays_and_tensors_give_the_same_tracks() -> None:
    model, video = tiny_model(), squares(3)[0]
    for other in (video.numpy(), video.double(), video.numpy().astype(np.float64)):
        assert_same_tracks(model.track(other), model.track(video))


def test_tracks_are_sorted_and_identities_belong_to_one_life() -> None:
    tracks = tiny_model().track(squares(12, clips=2))
    rows = list(zip(tracks.clip, tracks.frame, tracks.id, strict=True))
    assert rows == sorted(set(rows))
    for clip in (0, 1):
        part = tracks.of_clip(clip)
        for identity in np.unique(part.id):
            mine = part.select(part.id == identity)
            assert np.array_equal(mine.frame, mine.frame[0] + np.arange(len(mine)))
            assert mine.discovered.tolist() == [True] + [False] * (len(mine) - 1)
    assert ((tracks.presence >= 0) & (tracks.presence <= 1)).all()
    assert (tracks.box[:, 2:] > tracks.box[:, :2]).all()
    assert (np.unique(tracks.frame * 2 + tracks.clip, return_counts=True)[1] <= 6).all()


def test_masks_are_disjoint_and_lie_in_the_frame() -> None:
    tracks = tiny_model(frame=(32, 40), grid=(4, 5)).track(squares(6, (32, 40), clips=2), masks=True)
    assert tracks.masks is not None
    assert tracks.masks.dtype == np.bool_
    assert tracks.masks.shape == (len(tracks), 32, 40)
    assert tracks.masks.any((1, 2)).mean() > 0.3
    for clip in range(2):
        for frame in range(6):
            owners = tracks.masks[(tracks.clip == clip) & (tracks.frame == frame)].sum(0)
            assert owners.max(initial=0) <= 1
    rows, columns = np.arange(32) + 0.5, np.arange(40) + 0.5
    for mask, (x0, y0, x1, y1) in zip(tracks.masks, tracks.box, strict=True):
        assert not mask[(rows < y0 - 2) | (rows > y1 + 2)].any()  # up to the blur of stretching 8 px to the box
        assert not mask[:, (columns < x0 - 2) | (columns > x1 + 2)].any()


def test_masks_are_given_only_when_asked_for() -> None:
    assert tiny_model().track(squares(2)).masks is None


def test_running_out_of_slots_is_said_aloud() -> None:
    video = squares(4)
    with pytest.warns(UserWarning, match=r"^slots run out: .* among 1\. Remedy: .*slots="):
        tiny_model(slots=1).track(video)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_model(slots=60).track(video)


def test_an_object_that_shows_nothing_is_neither_born_nor_kept() -> None:
    model, video = tiny_model(), squares(3)
    state = see(model, video[:, :2])
    assert state.objects.alive.any()
    with torch.no_grad():
        model.appearance.decoder.draw[-2].bias[12:] -= 100  # the mask's four sub-pixels
    assert not see(model, video).objects.alive.any()
    assert not observe(model, state, video[:, 2])[0].objects.alive.any()
    assert not model.dream(state, 1.0, Exact())[0].objects.alive.any()


@pytest.mark.parametrize("size", [(32, 48), (16, 64), (64, 64), (8, 8)])
@pytest.mark.parametrize("changes", [{}, {"background": True}], ids=["black", "background"])
def test_frames_of_another_size_are_tracked_too(size: tuple[int, int], changes: dict[str, Any]) -> None:
    model = tiny_model(slots=30, **changes)
    tracks = model.track(squares(3, (max(8, size[0]), max(8, size[1])), count=8), masks=True)
    assert tracks.size == size
    assert tracks.masks is not None
    assert tracks.masks.shape[1:] == size
    rollout = model.generate(squares(3, size), observe=2, horizon=1)
    assert rollout.frames.shape == (1, 3, 3, *size)


def test_a_scene_moved_by_whole_cells_gives_moved_tracks() -> None:
    """Nothing in the model sees an absolute position, so what it says moves with what it sees.

    Only the zero padding of convolutions tells where the border is. Each 3x3 convolution lets it creep one cell
    further in: two in the encoder, one per frame in the ConvLSTM and one in discovery, and a tracker sees two
    cells around its object. Frames of 24x24 cells keep the middle out of its reach for two frames: content and
    compared objects stay 7 cells from every border. There are slots for all cells, so that whatever
    happens near the border turns nobody away.
    """
    cell, cells, shift = 8, 24, (2, -1)
    side = cell * cells
    model = tiny_model(slots=cells**2, proposals=cells**2)
    squares_here = torch.zeros(1, 2, 3, side, side)
    small = squares(2, (32, 32), count=5)
    squares_here[..., 80:112, 80:112] = small
    # Random heads may call black a thing or not; halfway between what they say of content is a good threshold.
    tune(model, model.discovery.heads, squares_here[..., 72:120, 72:120], {0: (0.0, 0.4)})
    moved = torch.roll(squares_here, (shift[1] * cell, shift[0] * cell), (-2, -1))
    offset = np.array([shift[0] * cell, shift[1] * cell] * 2)

    def middle(tracks: Tracks, by: np.ndarray) -> dict[tuple[int, ...], Tracks]:
        """Lives in the middle of the scene, named by frame and rounded first place."""
        box = tracks.box - by
        x, y = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
        inside = (abs(x - 96) < 20) & (abs(y - 96) < 20)
        lives = {}
        for identity in np.unique(tracks.id[inside]):
            life = replace(tracks, box=box).select(tracks.id == identity)
            lives[(int(life.frame[0]), *np.round(life.box[0] * 10).astype(int).tolist())] = life
        return lives

    here, there = middle(model.track(squares_here), np.zeros(4)), middle(model.track(moved), offset)
    assert len(here) >= 5
    assert any(len(life) == 2 for life in here.values())
    assert len(np.unique([life.presence[0].round(3) for life in here.values()])) > 3  # content, not sameness
    assert here.keys() == there.keys()
    for name, life in here.items():
        assert life.frame.tolist() == there[name].frame.tolist()
        np.testing.assert_allclose(life.box, there[name].box, atol=1e-2)
        np.testing.assert_allclose(life.presence, there[name].presence, atol=1e-3)


# State ------------------------------------------------------------------------------------------------


@each(VARIANTS)
@pytest.mark.parametrize("estimator", [Mode(), Relaxed(0.7), Exact()], ids=["mode", "relaxed", "exact"])
def test_a_dead_slot_influences_nothing(changes: dict[str, Any], estimator: Estimator) -> None:
    model, video = tiny_model(slots=20, **changes), squares(5, clips=2)
    state = see(model, video[:, :3])
    dead = state.objects.alive == 0
    assert dead.any()
    assert not dead.all()
    torch.manual_seed(7)

    def disturbed(name: str, values: Tensor) -> Tensor:
        noise = torch.randn_like(values) * 5
        noise = noise.abs() + 1 if name == "where" else noise.sigmoid() if name == "presence" else noise
        return values if name == "alive" else torch.where(dead, noise, values)

    other = ObjectState(**{f.name: disturbed(f.name, getattr(state.objects, f.name)) for f in fields(state.objects)})
    disturbed_state = replace(state, objects=other)
    with torch.no_grad():
        for image in video[:, 3:].unbind(1):
            torch.manual_seed(1)
            state, step, terms, activity = observe(model, state, image, estimator)
            torch.manual_seed(1)
            disturbed_state, disturbed_step, *records = observe(model, disturbed_state, image, estimator)
            torch.testing.assert_close(disturbed_step.picture, step.picture, rtol=0, atol=1e-6)
            torch.testing.assert_close(disturbed_step.foreground, step.foreground, rtol=0, atol=1e-6)
            for one, two in zip((terms, activity), records, strict=True):
                torch.testing.assert_close(two.to_dict(), one.to_dict(), rtol=1e-5, atol=1e-3)
            assert torch.equal(disturbed_state.roster.id, state.roster.id)
            live = state.objects.alive[..., 0] == 1
            torch.testing.assert_close(
                disturbed_state.objects.pack()[live], state.objects.pack()[live], rtol=0, atol=1e-5
            )
        torch.manual_seed(2)
        _, dreamt = model.dream(state, 0.3, estimator)
        torch.manual_seed(2)
        _, again = model.dream(disturbed_state, 0.3, estimator)
    torch.testing.assert_close(again.picture, dreamt.picture, rtol=0, atol=1e-6)


def test_memory_does_not_grow_with_time() -> None:
    model = tiny_model(background=True)
    assert numbers(see(model, squares(2))) == numbers(see(model, squares(20)))


@each({name: VARIANTS[name] for name in ("plain", "background", "bare")})
def test_detaching_a_state_changes_no_value(changes: dict[str, Any]) -> None:
    state = see(tiny_model(**changes), squares(3))
    again = state.detach()
    assert again.frame == state.frame
    assert torch.equal(again.objects.pack(), state.objects.pack())
    assert torch.equal(again.roster.id, state.roster.id)
    torch.testing.assert_close(again.memory, state.memory, rtol=0, atol=0)
    assert torch.equal(again.background, state.background)


# The bound --------------------------------------------------------------------------------------------


def test_the_terms_sum_to_the_elbo() -> None:
    terms = tiny_model(background=True).elbo(squares(3, clips=2), Relaxed(1.0)).terms
    values = {f.name: getattr(terms, f.name) for f in fields(ElboTerms)}
    assert sum(name.startswith("kl_") for name in values) == len(values) - 1
    expected = values.pop("log_likelihood") - sum(values.values())
    torch.testing.assert_close(terms.elbo, expected)
    assert terms.to_dict().keys() == {"log_likelihood", *values}
    for name, value in values.items():
        assert (value > 0).all(), name


@each(VARIANTS)
@pytest.mark.parametrize("estimator", [Mode(), Relaxed(0.5)], ids=["mode", "relaxed"])
def test_a_divergence_is_never_negative(changes: dict[str, Any], estimator: Estimator) -> None:
    terms = tiny_model(**changes).elbo(squares(4, clips=2), estimator, presence_prior=0.1).terms
    for name, value in terms.to_dict().items():
        assert name == "log_likelihood" or (value >= 0).all(), name


def test_the_log_likelihood_is_that_of_independent_normal_pixels() -> None:
    model, image = tiny_model(sigma=0.3), squares(1)[:, 0]
    _, step, terms, activity = observe(model, model.start(1, (32, 32), image), image)
    expected = torch.distributions.Normal(step.picture, 0.3).log_prob(image).sum((1, 2, 3))
    torch.testing.assert_close(terms.log_likelihood, expected, rtol=1e-4, atol=0.01)
    torch.testing.assert_close(activity.squared_error, (step.picture - image).square().mean((1, 2, 3)))


def test_the_bound_of_a_batch_is_that_of_its_clips() -> None:
    model, video = tiny_model(background=True), squares(3, clips=3)
    batch = model.elbo(video, Mode()).terms.elbo
    alone = torch.cat([model.elbo(video[i : i + 1], Mode()).terms.elbo for i in range(3)])
    torch.testing.assert_close(batch, alone, rtol=1e-4, atol=1e-2)


def test_a_presence_prior_may_be_a_number_or_a_tensor() -> None:
    model, video = tiny_model(), squares(2)
    number = model.elbo(video, Mode(), 0.03).terms.elbo
    torch.testing.assert_close(model.elbo(video, Mode(), torch.tensor(0.03)).terms.elbo, number)
    assert not torch.allclose(model.elbo(video, Mode(), 0.3).terms.elbo, number)


@pytest.mark.parametrize("cut", [False, True])
@each(VARIANTS)
def test_gradients_reach_every_parameter(changes: dict[str, Any], cut: bool) -> None:
    model, video = tiny_model(**changes), squares(3, clips=2)
    torch.manual_seed(0)
    bound = model.elbo(video, Relaxed(1.0), presence_prior=0.1, cut_gradients=cut)
    assert torch.isfinite(bound.terms.elbo).all()
    (-bound.terms.elbo.mean()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


@each({name: VARIANTS[name] for name in ("plain", "background", "bare")})
def test_cut_gradients_end_at_each_frame(changes: dict[str, Any]) -> None:
    """With gradients cut, a frame's pixels matter to its own terms alone, as if the video ended with it."""
    model, video = tiny_model(**changes), squares(3)

    def first_frame_gradient(frames: int, cut: bool) -> Tensor:
        torch.manual_seed(0)
        leaf = video[:, :frames].clone().requires_grad_()
        bound = model.elbo(leaf, Relaxed(1.0), cut_gradients=cut)
        (gradient,) = torch.autograd.grad(bound.terms.elbo.sum(), leaf)
        return gradient[:, 0]

    alone = first_frame_gradient(1, cut=False)
    assert alone.abs().max() > 0
    torch.testing.assert_close(first_frame_gradient(3, cut=True), alone, rtol=1e-4, atol=1e-4)
    assert (first_frame_gradient(3, cut=False) - alone).abs().max() > 1e-2


def test_cutting_gradients_does_not_change_the_bound() -> None:
    model, video = tiny_model(), squares(3)
    bounds = []
    for cut in (True, False):
        torch.manual_seed(0)
        bounds.append(model.elbo(video, Relaxed(1.0), cut_gradients=cut).terms.elbo)
    assert torch.equal(*bounds)


def test_the_importance_weighted_bound_is_above_the_mean_elbo() -> None:
    """By Jensen's inequality, draw for draw."""
    model, video = tiny_model(sigma=2.0), squares(2, clips=3)
    torch.manual_seed(3)
    weighted = model.log_likelihood(video, samples=8)
    torch.manual_seed(3)
    with torch.no_grad():
        singles = torch.stack([model.elbo(video, Exact()).terms.elbo for _ in range(8)])
    assert singles.std(0).min() > 0
    assert (weighted >= singles.mean(0)).all()
    torch.testing.assert_close(weighted, singles.logsumexp(0) - math.log(8))
    assert (weighted <= singles.amax(0)).all()


def test_the_importance_weighted_bound_rises_with_samples() -> None:
    model, video = tiny_model(sigma=2.0), squares(1).expand(48, -1, -1, -1, -1)
    torch.manual_seed(4)
    few, many = (model.log_likelihood(video, samples=samples) for samples in (1, 12))
    error = math.sqrt(float(few.var() + many.var()) / 48)
    assert many.mean() - few.mean() > 3 * error


def test_importance_weights_agree_with_plain_sampling_from_the_prior() -> None:
    """Both estimate p(frame): the weights of the posterior, and the pixels' likelihood under dreamed frames.

    The pixels are noisy and the posterior is wide, though not the prior, so that both estimates settle.
    """
    model = tiny_model(
        lively=False, frame=(16, 16), grid=(2, 2), slots=4, what_dim=2, sigma=2.0, object_size=(6.0, 6.0)
    )
    wide, rate, draws = 1.2015, 0.3, 10_000  # a raw std of 1.2015 is a std of 0.8
    with torch.no_grad():
        for layer in (model.discovery.heads, model.appearance.what):
            layer.weight.zero_()
            layer.bias.zero_()
        model.discovery.heads.bias[:6] = torch.tensor([0.05, 0.4, -0.4, 0.0, 0.0, 0.0])
        model.discovery.heads.bias[6:] = wide
        model.appearance.what.bias[:] = torch.tensor([0.4, 0.0, wide, wide])
        frame = squares(1, (16, 16))[:, 0].expand(draws, -1, -1, -1)
        torch.manual_seed(0)
        weighted = model.elbo(frame[:, None], Exact(), rate).terms.elbo
        _, step = model.dream(model.start(draws, (16, 16), frame), rate, Exact())
        plain = torch.distributions.Normal(step.picture, 2.0).log_prob(frame).sum((1, 2, 3))

    def estimate(logs: Tensor) -> tuple[float, float]:
        """Log of the mean weight, and its standard error."""
        weights = (logs - plain.max()).exp().double()
        return float(weights.mean().log()), float(weights.std() / weights.mean() / math.sqrt(draws))

    (ours, our_error), (reference, reference_error) = estimate(weighted), estimate(plain)
    error = math.hypot(our_error, reference_error)
    assert error < 0.15
    assert abs(ours - reference) < 4 * error


def test_activity_counts_what_happens() -> None:
    model, video = tiny_model(slots=3), squares(4, clips=2)
    with torch.no_grad():
        activity = model.elbo(video, Mode()).activity
    tracks = model.track(video)
    for clip in range(2):
        part = tracks.of_clip(clip)
        assert float(activity.objects[clip]) == pytest.approx(len(part) / 4)
        assert float(activity.discovered[clip]) == pytest.approx(part.discovered.sum() / 4)
    assert activity.turned_away.max() > 0
    assert ((activity.foreground > 0) & (activity.foreground <= 1)).all()


# Sizes ------------------------------------------------------------------------------------------------


@each(SHAPES)
def test_any_grid_and_number_of_slots_trains_and_tracks(changes: dict[str, Any]) -> None:
    model = tiny_model(lively=False, end_duplicates=False, **changes)
    with torch.no_grad():
        model.discovery.heads.bias[0] = 0.3  # every cell proposes
    height, width = model.config.frame
    video = torch.rand(2, 3, 3, height, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    (-model.elbo(video, Relaxed(1.0), 0.1).terms.elbo.mean() / video[0].numel()).backward()
    before = [parameter.clone() for parameter in model.parameters()]
    optimizer.step()
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    tracks = model.track(video, masks=True)
    cells = model.config.grid[0] * model.config.grid[1]
    assert per_frame(tracks.of_clip(0), 1) == [min(model.config.slots, cells)]
    assert tracks.size == (height, width)
    rollout = model.generate(video, observe=1, horizon=2, discovery_rate=0.5)
    assert rollout.frames.shape == (2, 3, 3, height, width)


@pytest.mark.parametrize("switch", ["attention", "search", "rejection", "end_duplicates"])
def test_every_switch_matters(switch: str) -> None:
    """The same weights (where there are any to share) see the same video differently."""
    video = squares(5, clips=4)
    on = tiny_model(slots=20)
    off = SCALOR(replace(on.config, **{switch: False})).eval()
    weights = off.state_dict() | {
        name: value
        for name, value in on.state_dict().items()
        if off.state_dict().get(name, value[:0]).shape == value.shape
    }
    off.load_state_dict({name: weights[name] for name in off.state_dict()})
    one, two = (model.track(video) for model in (on, off))
    if switch != "end_duplicates":  # the others begin with the second frame
        assert_same_tracks(one.select(one.frame == 0), two.select(two.frame == 0))
    assert len(one) != len(two) or not np.allclose(one.box, two.box, atol=1e-3)


def test_weights_do_not_depend_on_the_size_of_the_frame() -> None:
    small, large = (
        {name: value.shape for name, value in SCALOR(ModelConfig(frame=f, grid=g)).state_dict().items()}
        for f, g in (((64, 64), (8, 8)), ((128, 96), (16, 12)))
    )
    assert small == large


# Generation -------------------------------------------------------------------------------------------


def assert_same_start(one: Rollout, other: Rollout, frames: int) -> None:
    torch.testing.assert_close(one.frames[:, :frames], other.frames[:, :frames], rtol=0, atol=1e-5)
    torch.testing.assert_close(one.background[:, :frames], other.background[:, :frames], rtol=0, atol=1e-5)
    first, second = (tracks.select(tracks.frame < frames) for tracks in (one.tracks, other.tracks))
    assert_same_tracks(first, second)


@each({name: VARIANTS[name] for name in ("plain", "background")})
def test_what_is_observed_is_reconstructed(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(6, clips=2)
    seen, gone_on = model.reconstruct(video), model.generate(video, observe=3, horizon=4, discovery_rate=0.5)
    assert seen.frames.shape == (2, 6, 3, 32, 32)
    assert gone_on.frames.shape == (2, 7, 3, 32, 32)
    assert_same_start(gone_on, seen, 3)
    assert_same_tracks(seen.tracks, model.track(video))
    assert ((gone_on.frames >= 0) & (gone_on.frames <= 1)).all()
    assert bool(seen.background.any()) is model.config.background


def test_the_future_does_not_peek_at_the_frames_after_the_observed() -> None:
    model, video = tiny_model(background=True), squares(6)
    other = video.clone()
    other[:, 3:] = 1 - other[:, 3:]
    one, two = (model.generate(v, observe=3, horizon=3, estimator=Mode()) for v in (video, other))
    assert torch.equal(one.frames, two.frames)
    assert np.array_equal(one.tracks.box, two.tracks.box)


def test_without_discovery_no_identity_is_new_in_the_future() -> None:
    torch.manual_seed(0)
    tracks = tiny_model().generate(squares(4, clips=4), observe=3, horizon=5).tracks
    for clip in range(4):
        part = tracks.of_clip(clip)
        seen, future = part.select(part.frame < 3), part.select(part.frame >= 3)
        assert len(future) > 0
        assert set(future.id) <= set(seen.id)
        assert not future.discovered.any()


def test_with_discovery_new_identities_appear_in_the_future() -> None:
    torch.manual_seed(0)
    tracks = tiny_model(slots=20).generate(squares(4), observe=3, horizon=3, discovery_rate=1.0).tracks
    seen, future = tracks.select(tracks.frame < 3), tracks.select(tracks.frame >= 3)
    assert set(future.id) - set(seen.id)
    assert future.id.max() > seen.id.max()


def test_objects_go_on_from_where_they_were_last_seen() -> None:
    """A jump between the last seen and the first imagined frame is at most a typical size, as between all frames."""
    tracks = tiny_model().generate(squares(3), observe=3, horizon=3).tracks
    for identity in np.unique(tracks.id):
        life = tracks.select(tracks.id == identity)
        assert (abs(np.diff(life.centre, axis=0)) <= 8 + 8 * 0.75 * 2).all()


@pytest.mark.parametrize("changes", [{}, {"background": True}], ids=["black", "background"])
def test_a_world_is_imagined_from_nothing(changes: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = tiny_model(**changes)
    rollout = model.imagine(horizon=4, clips=3, discovery_rate=0.4)
    assert rollout.frames.shape == rollout.background.shape == (3, 4, 3, 32, 32)
    assert ((rollout.frames >= 0) & (rollout.frames <= 1)).all()
    tracks = rollout.tracks
    assert set(tracks.clip) == {0, 1, 2}
    assert tracks.frame.max() < 4
    assert len(tracks.select(tracks.frame == 0)) > 3
    assert tracks.select(tracks.frame == 0).discovered.all()
    for clip in range(3):
        part = tracks.of_clip(clip)
        first = part.id[part.frame == 0]
        assert len(set(first)) == len(first)
        assert set(part.id) == set(first)  # later_rate is 0


def test_nothing_is_imagined_at_rate_0_and_newcomers_at_a_later_rate() -> None:
    model = tiny_model(slots=20)
    empty = model.imagine(horizon=3, discovery_rate=0.0)
    assert len(empty.tracks) == 0
    assert not empty.frames.any()
    later = model.imagine(horizon=3, discovery_rate=0.0, later_rate=1.0).tracks
    assert len(later.select(later.frame == 0)) == 0
    assert len(later.select(later.frame == 1)) > 0


def test_every_slot_has_its_own_picture() -> None:
    model, video = tiny_model(slots=9), squares(3, clips=2)
    pictures = model.object_pictures(video)
    assert pictures.shape == (2, 3, 9, 3, 8, 8)
    shown = pictures.flatten(3).amax(-1) > 0
    tracks = model.track(video)
    for clip in range(2):
        assert shown[clip].sum(-1).tolist() == per_frame(tracks.of_clip(clip), 3)
