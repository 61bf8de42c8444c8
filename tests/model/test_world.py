"""Laws of a time step and its state, for frames, grids and slots of all sizes."""

import math
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scalor.config import ModelConfig
from scalor.data.observation import Observation
from scalor.model import rendering
from scalor.model.glimpses import Sprite
from scalor.model.rendering import RenderInput
from scalor.model.scalor import SCALOR
from scalor.model.state import ObjectState
from scalor.nn.distributions import Estimator, Exact, Mode, Noise, Relaxed

from .worlds import VARIANTS, assert_same_tracks, each, look, numbers, per_frame, see, squares, tiny_model

pytestmark = pytest.mark.filterwarnings("ignore:out of slots")  # tiny worlds are crowded


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
            seen, explained = look(model, state, image, estimator)
            torch.manual_seed(1)
            again, explained_again = look(model, disturbed_state, image, estimator)
            state, disturbed_state = seen.state, again.state
            one, two = explained.rendering, explained_again.rendering
            # Up to rounding, of which some processors make 1e-5 here.
            torch.testing.assert_close(two.image, one.image, rtol=0, atol=1e-4)
            torch.testing.assert_close(two.foreground, one.foreground, rtol=0, atol=1e-4)
            for name in ("terms", "activity"):
                record, other_record = getattr(explained, name), getattr(explained_again, name)
                torch.testing.assert_close(other_record.to_dict(), record.to_dict(), rtol=1e-5, atol=1e-3)
            assert torch.equal(disturbed_state.id, state.id)
            live = state.objects.alive[..., 0] == 1
            torch.testing.assert_close(
                disturbed_state.objects.pack()[live], state.objects.pack()[live], rtol=0, atol=1e-4
            )
        torch.manual_seed(2)
        past = model.start_prior(2, video)
        *_, dreamt = model.prior_step(state, past, (32, 32), 0.3, estimator)
        torch.manual_seed(2)
        *_, dreamt_again = model.prior_step(disturbed_state, past, (32, 32), 0.3, estimator)
    torch.testing.assert_close(dreamt_again.image, dreamt.image, rtol=0, atol=1e-4)


@each(VARIANTS)
@pytest.mark.parametrize("slots", [6, 20])
def test_leaving_out_what_is_empty_changes_no_object(changes: dict[str, Any], slots: int) -> None:
    """`spare_below` saves work: births, deaths, identities and the live objects' fields are those of the whole."""
    model, video = tiny_model(slots=slots, **changes), squares(8, clips=3)
    views, _ = model.encode(Observation(video.transpose(0, 1)), model.start_encoder(3, (32, 32), video))
    state = model.start(3, video)
    left_out = died = born = 0
    with torch.no_grad():
        for view in views:
            seen, again = (
                model.posterior_step(state, view, Mode()),
                model.posterior_step(state, view, Mode(), spare_below=model.config.birth_presence),
            )
            whole, spared = seen.state, again.state
            left_out += seen.shown.where.shape[1] - again.shown.where.shape[1]
            died += int(((state.id >= 0) & (whole.id != state.id)).sum())
            born += int(whole.discovered.sum())
            state = spared
            for name in ("id", "next_id"):
                assert torch.equal(getattr(spared, name), getattr(whole, name))
            assert torch.equal(spared.discovered, whole.discovered)
            assert torch.equal(spared.turned_away, whole.turned_away)
            assert torch.equal(spared.objects.alive, whole.objects.alive)
            live = whole.objects.alive[..., 0] == 1
            torch.testing.assert_close(spared.objects.pack()[live], whole.objects.pack()[live], rtol=0, atol=1e-3)
    assert left_out > 0
    assert born > 10
    assert died > 3


OTHER_FRAMES = ((32, 32), (16, 64), (48, 40), (8, 8))


@each({**VARIANTS, "few proposals": {"proposals": 1}, "many proposals": {"slots": 3, "proposals": 30}})
def test_the_noise_of_a_frame_suffices(changes: dict[str, Any]) -> None:
    for background in (False, True):
        model = tiny_model(lively=False, **{**changes, "background": background})
        for frame in OTHER_FRAMES:
            normals, uniforms = model.noise_per_frame(frame)
            noise = Noise(torch.randn(3, 2, normals), torch.rand(3, 2, uniforms))
            bound = model.elbo(Observation(squares(3, frame, clips=2)), Relaxed(1.0, noise), 0.1).terms.elbo
            assert torch.isfinite(bound).all()


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize(("fewer_normals", "fewer_uniforms"), [(1, 0), (0, 1)])
def test_no_more_noise_is_drawn_than_a_frame_needs(background: bool, fewer_normals: int, fewer_uniforms: int) -> None:
    model, video = tiny_model(lively=False, background=background), squares(2, clips=2)
    normals, uniforms = model.noise_per_frame((32, 32))
    short = Noise(torch.randn(2, 2, normals - fewer_normals), torch.rand(2, 2, uniforms - fewer_uniforms))
    with pytest.raises(AssertionError, match="more noise is asked for than was drawn"):
        model.elbo(Observation(video), Relaxed(1.0, short), 0.1)


@dataclass(frozen=True)
class Sharp(Mode):
    """Presence is all or next to nothing, as late in training; no noise, so that two programs can be compared."""

    def presence(self, logits: Tensor) -> Tensor:
        return (logits / 0.05).sigmoid()


@each(VARIANTS)
def test_what_has_next_to_no_presence_may_be_left_out_of_the_bound(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and gradients stay as they are up to rounding, and there is less to compute."""
    # Twenty objects on top of each other: which six hide most of one is decided by rounding.
    monkeypatch.setattr(rendering, "NEIGHBOURS", 24)
    model, video = tiny_model(slots=20, **changes), squares(5, clips=2)
    results = []
    for follow in (model.posterior_step, partial(model.posterior_step, spare_below=1e-6)):
        model.zero_grad()
        explained = model.elbo(Observation(video), Sharp(), step=follow)
        explained.terms.elbo.mean().backward()
        gradients = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        widths = sum(one.shown.where.shape[1] for one in explained.steps)
        results.append((explained.terms.to_dict(), explained.activity.to_dict(), gradients, widths))
    (terms, activity, gradients, whole), (*records, spared_gradients, spared) = results
    assert spared < whole
    for one, two in zip((terms, activity), records, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-2)
    assert (spared_gradients - gradients).norm() < 1e-3 * gradients.norm()


def test_memory_does_not_grow_with_time() -> None:
    model = tiny_model(background=True)
    assert numbers(see(model, squares(2))) == numbers(see(model, squares(20)))


@each({name: VARIANTS[name] for name in ("plain", "background", "bare")})
def test_detaching_a_state_changes_no_value(changes: dict[str, Any]) -> None:
    state = see(tiny_model(**changes), squares(3))
    again = state.detach()
    assert again.fresh == state.fresh
    assert torch.equal(again.objects.pack(), state.objects.pack())
    assert torch.equal(again.id, state.id)


@pytest.mark.usefixtures("untrained_masks")  # objects must be born without a training
@each(SHAPES)
def test_any_grid_and_number_of_slots_trains_and_tracks(changes: dict[str, Any]) -> None:
    model = tiny_model(lively=False, end_duplicates=False, **changes)
    with torch.no_grad():
        model.discovery.heads.bias[0] = 0.3  # every cell proposes
    height, width = model.config.frame
    video = torch.rand(2, 3, 3, height, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    (-model.elbo(Observation(video), Relaxed(1.0), 0.1).terms.elbo.mean() / video[0].numel()).backward()
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
    video = squares(8, clips=4)
    on = tiny_model(slots=20)
    changes: dict[str, Any] = {switch: False}
    off = SCALOR(replace(on.config, **changes)).eval()
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


def explained_by(colour: tuple[float, float, float], tolerance: float, counts: float = 1.0, **changes: Any) -> float:
    """How far an opaque red object that fills the frame explains a frame of this colour."""
    model = tiny_model(lively=False, explained_error=tolerance, **changes)
    sprite = Sprite(
        torch.tensor([1.0, 0, 0])[None, None, :, None, None].expand(1, 1, 3, 8, 8), torch.ones(1, 1, 1, 8, 8)
    )
    shown = RenderInput(torch.tensor([[[16.0, 16.0, 80.0, 80.0]]]), torch.ones(1, 1, 1), torch.zeros(1, 1, 1), sprite)
    image = torch.tensor(colour)[None, :, None, None].expand(1, 3, 32, 32)
    if model.config.still:
        image = torch.cat([torch.zeros_like(image), image - 0.5], 1)
    explained = model.explained(shown, image, counts)
    assert explained.shape == (1, 1, 32, 32)
    assert float(explained.max() - explained.min()) < 1e-4
    return float(explained.mean())


@pytest.mark.parametrize("changes", [{}, {"still": True}, {"depth_sharpness": 4.0}])
def test_a_covered_pixel_is_explained_as_far_as_its_colour_is_right(changes: dict[str, Any]) -> None:
    assert explained_by((1.0, 0.0, 0.0), 0.2, **changes) == pytest.approx(1, abs=1e-3)
    assert explained_by((0.8, 0.0, 0.0), 0.2, **changes) == pytest.approx(math.exp(-0.5), abs=1e-3)
    assert explained_by((0.0, 0.0, 1.0), 0.2, **changes) < 1e-6


def test_as_in_the_paper_any_covered_pixel_is_explained() -> None:
    assert explained_by((0.0, 0.0, 1.0), 0.0) == 1


def test_before_colour_counts_any_covered_pixel_is_explained() -> None:
    assert explained_by((0.0, 0.0, 1.0), 0.2, counts=0.0) == pytest.approx(1, abs=1e-4)
    assert explained_by((0.8, 0.0, 0.0), 0.2, counts=0.5) == pytest.approx(math.exp(-0.25), abs=1e-3)
