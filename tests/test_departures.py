"""Every departure from the paper that docs/model.md lists is as the page says; names have the page's numbers."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from scalor import systems
from scalor.config import ModelConfig
from scalor.data.observation import Observation
from scalor.model import glimpses, image_encoder
from scalor.model.background import Background, BackgroundMemory
from scalor.model.elbo import ElboResult
from scalor.model.latents import Latents
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import PRESENCE_LIMIT, Mode
from scalor.presets import PRESETS, get_preset
from tests.layers import linear
from tests.model.worlds import squares, tiny_model

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "model.md").read_text()
OURS = [name for name in PRESETS if get_preset(name).system == "scalor"]
PAPERS = [name for name in OURS if name.startswith("paper-")]
DENSITIES = [name for name in OURS if name.startswith(("shapes-", "mnist-")) and name != "shapes-tiny"]

ELSEWHERE = {
    1: "model/test_scalor.py::test_a_scene_moved_by_whole_cells_gives_moved_tracks",
    2: "model/test_discovery.py::test_a_proposal_stays_within_a_cell_of_its_own_and_its_size_in_range",
    5: "model/test_propagation.py::test_an_object_ends_when_it_is_gone",
    6: "model/test_state.py::test_of_two_alike_at_one_place_the_younger_ends",
    7: "model/test_geometry.py::test_a_tight_box_spans_the_pixels_that_are_on",
    10: "model/test_propagation.py::test_with_inertia_a_tracker_looks_where_its_object_should_be",
    14: "model/test_elbo.py::test_importance_weights_agree_with_plain_sampling_from_the_prior",
    16: "model/test_discovery.py::test_the_explained_share_of_a_proposal_decides",
    17: "nn/test_distributions.py::test_a_rejected_proposal_pays_as_if_it_should_have_stayed_silent",
    18: "model/test_discovery.py::test_a_sibling_is_not_followed_but_as_present_as_before",
    19: "model/test_rendering.py::test_the_renderer_agrees_with_a_canvas_per_object",
    20: "model/test_rendering.py::test_the_renderer_agrees_with_a_canvas_per_object",
    22: "model/test_rendering.py::test_a_pixel_covered_twice_asks_for_no_more_and_no_less_cover",
    23: "model/test_elbo.py::test_the_background_sees_where_no_object_is_and_teaches_objects_nothing",
    25: "model/test_still.py::test_the_encoder_sees_what_differs_from_the_scene_and_colours_around_zero",
    26: "model/test_still.py::test_objects_are_found_as_large_as_the_ruler_says",
    32: "training/test_step.py::test_a_step_that_is_not_finite_leaves_weights_and_optimiser_untouched",
    33: "test_presets.py::test_gradients_are_cut_in_presets_of_ours_and_of_sqair_alone",
    36: "model/test_lesson.py::test_all_terms_are_finite_and_not_negative",
    37: "tracking/test_video_view.py::test_differences_from_the_background_are_amplified_by_the_contrast",
    38: "model/test_world.py::test_a_covered_pixel_is_explained_as_far_as_its_colour_is_right",
    39: "model/test_rendering.py::test_from_front_to_back_each_object_covers_its_share_of_what_is_left",
    40: "model/test_parts.py::test_learning_makes_sprites_and_background_look_like_the_frames",
    41: "model/test_parts.py::test_only_the_appearance_and_the_background_learn",
    42: "model/test_background_thumbnail.py::test_colours_are_learned_by_the_thumbnail_and_hardly_without_it",
}
"""Tests of departures that stand with the tests of their part of the model."""


def test_every_departure_of_the_page_has_a_test() -> None:
    told = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.M)]
    assert told == list(range(1, len(told) + 1))
    here = {int(number) for name in globals() for number in re.findall(r"(?<=test_)\d+(?=_)|(?<=and_)\d+(?=_)", name)}
    assert set(told) == here | set(ELSEWHERE)
    for place in ELSEWHERE.values():
        file, name = place.split("::")
        assert f"def {name}(" in (TESTS / file).read_text(), place


def crowd(model: SCALOR, clips: int = 1, count: int = 1) -> tuple[Tensor, Tensor]:
    """Return boxes in the middle of a frame of 64x64 pixels, and features of it."""
    where = torch.tensor([32.0, 32.0, 8.0, 8.0]).expand(clips, count, 4)
    return where, torch.zeros(clips, model.config.feature_dim, 8, 8)


def explained(model: SCALOR, video: Tensor) -> ElboResult:
    """Return the bound of a video, by posterior modes."""
    return model.elbo(Observation(video), Mode())


def test_8_a_tracker_attends_to_four_by_four_cells() -> None:
    assert ModelConfig().attention_cells == 4
    model = tiny_model(lively=False, search=False)
    where, features = crowd(model)
    features = torch.rand_like(features).requires_grad_()
    model.propagation.look(where, features, torch.zeros(1, 3, 64, 64)).square().sum().backward()
    assert features.grad is not None
    felt = features.grad.abs().sum((0, 1)) > 0
    assert felt[2:6, 2:6].all()
    assert felt.sum() == 16


@pytest.mark.parametrize("search", [True, False])
def test_9_a_tracker_looks_at_the_pixels_of_twice_its_box(search: bool) -> None:
    model = tiny_model(lively=False, search=search)
    where, features = crowd(model)
    image = torch.rand(1, 3, 64, 64).requires_grad_()
    model.propagation.look(where, features.requires_grad_(), image).square().sum().backward()
    if not search:
        assert image.grad is None
        return
    assert image.grad is not None
    rows, columns = torch.nonzero(image.grad.abs().sum((0, 1)), as_tuple=True)
    box = [int(end) for end in (rows.min(), rows.max(), columns.min(), columns.max())]
    assert box == pytest.approx([24, 39, 24, 39], abs=1)  # a box of 28 to 36


def test_3_there_are_proposals_for_all_slots_at_first_and_then_as_many_as_the_setting_says() -> None:
    model = tiny_model(slots=6, proposals=4)
    with torch.no_grad():
        seen = explained(model, squares(3)).steps
    assert [one.proposals.cells.shape[1] for one in seen] == [6, 4, 4]


def test_21_proposals_too_weak_to_be_born_are_drawn_by_their_presence() -> None:
    model = tiny_model()
    with torch.no_grad():
        (first,) = explained(model, squares(1, clips=8)).steps
    accepted = first.proposals.proposed * (1 - first.proposals.rejected)
    assert ((accepted > 0.01) & (accepted < model.config.birth_presence)).any()
    torch.testing.assert_close(first.shown.presence[..., 0], accepted)


def test_21_objects_that_end_in_a_frame_are_drawn_in_it_by_their_presence() -> None:
    model = tiny_model()
    with torch.no_grad():
        seen = explained(model, squares(6, clips=16)).steps
    ended = 0
    for before, now in pairwise(seen):
        assert now.propagated is not None
        slots = now.propagated.presence.shape[1]
        entered = before.state.objects.alive[:, :slots] > 0
        shown = now.shown.presence[:, :slots]
        torch.testing.assert_close(shown[entered], now.propagated.presence[entered])
        same = before.state.id[:, :slots] == now.state.id[:, :slots]
        ended += int((entered[..., 0] & ~same).sum())
    assert ended > 3


def test_4_presence_decides_births_and_deaths_by_two_thresholds() -> None:
    assert (ModelConfig().birth_presence, ModelConfig().death_presence) == (0.7, 0.4)
    for name in DENSITIES:
        model = get_preset(name).model
        assert (model.birth_presence, model.death_presence) == (0.7, 0.4)


@pytest.mark.parametrize("gate", [0.0, 1.0])
def test_11_z_what_is_what_is_seen_or_what_was_remembered_as_the_gate_says(gate: float) -> None:
    model = tiny_model()
    what = model.config.what_dim
    with torch.no_grad():
        model.propagation.blend.weight[:what] = 0
        model.propagation.blend.bias[:what] = 40 * gate - 20
        before, after = explained(model, squares(2, clips=4)).steps
        assert after.propagated is not None
        alive = before.state.objects.alive[..., 0] > 0
        remembered = before.state.objects.z_what[alive]
        got = Latents.unpack(after.propagated.posterior.mean).what[alive]
    apart = (got - remembered).abs().max()
    assert (apart < 1e-5) == (gate == 0)


def test_11_depth_is_a_change_to_the_last_depth() -> None:
    model = tiny_model()
    with torch.no_grad():
        last = linear(model.propagation.judge)
        last.weight[0], last.bias[0] = 0, 0.25
        before, after = explained(model, squares(2, clips=4)).steps
        assert after.propagated is not None
        alive = before.state.objects.alive[..., 0] > 0
    changed = after.propagated.posterior.mean[..., -1:][alive] - before.state.objects.z_depth[alive]
    assert alive.any()
    torch.testing.assert_close(changed, torch.full_like(changed, 0.25))


def test_12_and_13_an_untrained_prior_says_that_an_object_goes_on_as_before() -> None:
    torch.manual_seed(0)
    model = SCALOR(ModelConfig())
    prior, config = model.propagation.prior, model.config
    last = torch.randn(2, 5, config.latents + 1)
    with torch.no_grad():
        p_presence, p_latents = prior(torch.randn(2, 5, config.prior_dim).tanh(), last)
    assert (p_latents.mean - last[..., :-1]).abs().mean() < 0.2
    assert p_presence.sigmoid().min() > 0.97


@pytest.mark.parametrize("name", ["shapes-md", "grand-central", "sqair-shapes-tiny", "vrnn-shapes-tiny"])
def test_28_no_network_has_normalisation_layers(name: str) -> None:
    kinds = {type(layer).__name__ for layer in systems.build(get_preset(name).model).modules()}
    assert not [kind for kind in kinds if "Norm" in kind]


def test_31_every_training_of_ours_begins_with_single_frames() -> None:
    first = {name: get_preset(name).train.lengths[0] for name in OURS}
    assert {name for name in OURS if first[name] != (0, 1)} == {
        *("grand-central", "grand-central-video", "paper-shapes-ablation")
    }
    assert all(lengths == (0, 10) for lengths in first.values() if lengths != (0, 1))


def test_27_glimpse_networks_are_matrix_products() -> None:
    model = SCALOR(ModelConfig())
    assert model.propagation.searcher is not None
    for network in (model.appearance.encoder, model.appearance.decoder, model.propagation.searcher):
        layers = [layer for layer in network.modules() if list(layer.parameters(recurse=False))]
        assert layers
        assert all(isinstance(layer, nn.Linear) for layer in layers)
    assert glimpses.PATCHES == 4


@pytest.mark.parametrize("name", DENSITIES)
def test_10_and_18_our_presets_have_inertia_and_end_siblings(name: str) -> None:
    model = get_preset(name).model
    assert (model.inertia, model.siblings, model.search, model.end_duplicates) == (True, True, True, True)


@pytest.mark.parametrize("name", PAPERS)
def test_34_the_paper_s_configuration_stands_beside_ours(name: str) -> None:
    paper, ours = get_preset(name), get_preset(name.removeprefix("paper-"))
    assert (paper.scene, paper.test) == (ours.scene, ours.test)
    model = paper.model
    assert (model.grid, model.size_range, model.rejection_overlap) == ((8, 8), 0.5, 0.3)
    assert (model.search, model.inertia, model.siblings, model.end_duplicates) == (False, False, False, False)
    assert paper.train.presence_prior == (0.1, 1e-4, 500)
    assert ours.model.grid[0] > 8
    assert ours.model.size_range == 0.25
    assert ours.train.presence_prior == (0.1, 0.01, 500)


@pytest.mark.parametrize("name", DENSITIES)
def test_35_trainings_of_ours_are_shorter_and_their_objects_small(name: str) -> None:
    config = get_preset(name)
    assert config.train.temperature in [(1.0, 0.3, 4_000), (1.0, 0.3, 2_500)]
    assert (config.model.what_dim, config.model.glimpse) == (16, 16)


def test_15_discovery_sees_the_explained_mask_of_a_cell_and_its_eight_neighbours() -> None:
    model = tiny_model(lively=False)
    mask = torch.zeros(16, 1, 32, 32)  # a mask in another one of the 4x4 cells each
    for cell in range(16):
        row, column = divmod(cell, 4)
        mask[cell, :, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = 1
    seen = model.discovery.around(mask).sum(-1)  # [mask in, seen by]
    for inside in range(16):
        for cell in range(16):
            near = max(abs(inside // 4 - cell // 4), abs(inside % 4 - cell % 4)) <= 1
            assert seen[inside, cell] == (64 if near else 0)


def test_30_a_model_as_it_starts_shows_and_follows_nothing() -> None:
    """And learns: its masks have gradients."""
    torch.manual_seed(0)
    model = SCALOR(replace(ModelConfig(), slots=8))
    video = squares(2, (64, 64), clips=2)
    assert not model.appearance.draw(torch.randn(1, 50, model.config.what_dim)).shows.any()
    assert len(model.track(video)) == 0
    bound = explained(model, video)
    assert torch.isfinite(bound.terms.elbo).all()
    assert 0 < float(bound.activity.foreground.max()) < 0.5
    bound.terms.elbo.mean().backward()
    gradient = linear(model.appearance.decoder.each).bias.grad
    assert gradient is not None
    assert (gradient[-4:] != 0).all()


@pytest.mark.parametrize("raw", [-1e3, 1e3])
def test_4_logits_of_presence_are_limited(raw: float) -> None:
    assert str(PRESENCE_LIMIT) in PAGE
    model = tiny_model()
    with torch.no_grad():
        model.discovery.heads.bias[0] = raw
        linear(model.propagation.judge).bias[2] = raw
        first, second = explained(model, squares(2)).steps
    assert second.propagated is not None
    for logits in (first.proposals.logits, second.propagated.logits):
        torch.testing.assert_close(logits, torch.full_like(logits, PRESENCE_LIMIT if raw > 0 else -PRESENCE_LIMIT))


def test_12_the_prior_of_the_background_is_no_change_to_the_last_one() -> None:
    background = Background(ModelConfig(background=True))
    with torch.no_grad():
        background.cell.weight_ih.zero_()  # what is remembered of the last background
        one, other = (background.expect(background.recall(memory)) for memory in memories())
    torch.testing.assert_close(one.mean, other.mean)


def memories() -> list[BackgroundMemory]:
    hidden = torch.zeros(1, 64)
    return [BackgroundMemory(hidden, torch.full((1, 10), value), fresh=False) for value in (-3.0, 3.0)]


@pytest.mark.parametrize("frame", [(32, 32), (96, 160)])
def test_24_a_background_is_a_smooth_picture_of_any_size(frame: tuple[int, int]) -> None:
    torch.manual_seed(0)
    background = Background(ModelConfig(background=True))
    with torch.no_grad():
        picture = background.draw(10 * torch.randn(1, 10), frame)
    assert picture.shape == (1, 3, *frame)
    assert ((picture >= 0) & (picture <= 1)).all()
    coarse = frame[0] / 16  # pixels of the frame to one of the largest map
    assert picture.diff(dim=-2).abs().max() < 1 / coarse + 1e-3


@pytest.mark.parametrize("memory", [True, False])
def test_29_without_a_memory_every_frame_is_encoded_alone(memory: bool) -> None:
    torch.manual_seed(0)
    encoder = image_encoder.ImageEncoder(3, (8, 8), 8, memory).eval()
    frames = torch.rand(3, 1, 3, 32, 32)
    with torch.no_grad():
        whole, _ = encoder(frames, encoder.empty(1, (4, 4), frames))
        alone, _ = encoder(frames[2:], encoder.empty(1, (4, 4), frames))
    assert torch.allclose(whole[2:], alone, atol=1e-5) == (not memory)
