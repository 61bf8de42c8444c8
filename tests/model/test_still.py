"""A camera that stands still: frames come with the scene behind the objects."""

from dataclasses import replace

import pytest
import torch

from scalor.config import ModelConfig
from scalor.data.observation import Observation
from scalor.errors import InputError
from scalor.model.geometry import at_row
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import Exact, Mode

from .worlds import TINY, parts, squares, tiny_config


def still_model() -> SCALOR:
    torch.manual_seed(0)
    return SCALOR(replace(tiny_config(), still=True)).eval()


def before(scene: torch.Tensor, frames: int = 3) -> Observation:
    """[1, T]: squares that drift over a scene, the scene, and a ruler by which all are of typical size."""
    drawn = squares(frames)
    seen = torch.where(drawn.amax(2, keepdim=True) > 0, drawn, scene)
    return Observation(seen, scene.expand_as(seen), torch.ones_like(seen[:, :, 0, :, 0]))


def test_where_nothing_is_found_the_picture_is_the_scene() -> None:
    model, scene = still_model(), torch.rand(3, 32, 32)
    with torch.no_grad():
        model.discovery.heads.bias[0] = -20  # finds nothing
        model.discovery.heads.weight[0] = 0
    rollout = model.generate(before(scene), observe=3, horizon=2)
    assert torch.allclose(rollout.frames, scene.expand_as(rollout.frames), atol=1e-3)
    assert torch.allclose(rollout.background, scene.expand_as(rollout.background))


def test_the_bound_charges_for_the_frame_and_not_for_the_scene() -> None:
    model, scene = still_model(), torch.rand(3, 32, 32)
    with torch.no_grad():
        model.discovery.heads.bias[0] = -20
        model.discovery.heads.weight[0] = 0
    still = scene.expand(1, 3, -1, -1, -1)
    empty = Observation(still, still, torch.ones(1, 3, 32))
    explained = model.elbo(empty, Mode())
    assert float(explained.activity.squared_error) == pytest.approx(0, abs=1e-6)
    plain = SCALOR(tiny_config())
    pixels = 3 * 3 * 32 * 32
    best = plain.elbo(Observation(torch.zeros(1, 3, 3, 32, 32)), Mode()).terms
    assert float(explained.terms.log_likelihood) >= float(best.log_likelihood) - 1e-3 * pixels


def test_gradients_reach_every_weight() -> None:
    model = still_model().train()
    model.elbo(before(torch.rand(3, 32, 32)), Exact()).terms.elbo.sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_tracking_and_streaming_agree() -> None:
    model, video = still_model(), before(torch.rand(3, 32, 32))
    whole = model.track(video[0])
    assert sum(len(part) for part in model.stream(video[0].unbind())) == len(whole)


def test_frames_without_the_scene_are_refused() -> None:
    with pytest.raises(InputError, match=r"without a background.*still"):
        still_model().track(squares(3)[0])


def test_the_scene_is_given_or_modelled_but_not_both() -> None:
    with pytest.raises(InputError, match=r"model\.still"):
        ModelConfig(**{**TINY, "still": True, "background": True})


def ruled(video: Observation, sizes: torch.Tensor) -> Observation:
    """The same frames with another ruler, a size for each row."""
    return replace(video, ruler=sizes.expand(1, len(video[0]), -1))


def test_objects_are_found_as_large_as_the_ruler_says() -> None:
    model, video = still_model(), before(torch.rand(3, 32, 32), frames=1)
    cells = torch.arange(16)[None]
    z_where = torch.zeros(1, 16, 4)
    sizes = torch.linspace(0.5, 2.0, 32)
    (view,), _ = model.encode(ruled(video, sizes).time_first(), model.start_encoder(1, (32, 32), video.image))
    flat = model.discovery.place(z_where, cells, 4, None)
    grown = model.discovery.place(z_where, cells, 4, view.ruler)
    assert torch.equal(grown[..., :2], flat[..., :2])
    expected = sizes[flat[..., 1].long()][..., None]
    assert torch.allclose(grown[..., 2:] / flat[..., 2:], expected.expand(-1, -1, 2))


def test_near_objects_move_farther_and_far_ones_less() -> None:
    model = still_model()
    ruler = torch.linspace(0.5, 2.0, 32)[None]
    where = torch.tensor([[[10.0, 2.5, 6, 6], [10.0, 29.5, 6, 6]]])
    step = model.propagation.shift(where, torch.full((1, 2, 4), 0.3), ruler)[..., 0] - where[..., 0]
    assert torch.allclose(step[0, 1] / step[0, 0], ruler[0, 29] / ruler[0, 2])


@pytest.mark.usefixtures("untrained_masks")  # an untrained model must find objects
@pytest.mark.parametrize("horizon", [0, 2])
def test_a_ruler_of_typical_sizes_changes_nothing_and_another_one_does(horizon: int) -> None:
    model, video = still_model(), before(torch.rand(3, 32, 32))
    with torch.no_grad():
        model.discovery.heads.bias[0] = 0.5

    def boxes(frames: Observation) -> torch.Tensor:
        return torch.from_numpy(model.generate(frames, observe=3, horizon=horizon, estimator=Mode()).tracks.box)

    plain = boxes(video)
    assert torch.equal(boxes(ruled(video, torch.ones(32))), plain)
    larger = boxes(ruled(video, torch.full((32,), 1.5)))
    assert (larger[:, 2:] - larger[:, :2]).mean() > 1.2 * (plain[:, 2:] - plain[:, :2]).mean()


def test_beyond_the_frame_the_ruler_goes_on_as_at_its_border() -> None:
    ruler = torch.tensor([[0.5, 1.0, 2.0]])
    typical = at_row(torch.ones(2), torch.tensor([[-7.0, 0.4, 1.9, 40.0]]), ruler)
    assert typical[0, :, 0].tolist() == [0.5, 0.5, 1.0, 2.0]


def test_the_encoder_sees_what_differs_from_the_scene_and_colours_around_zero() -> None:
    model, seen = still_model(), []
    model.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    video = before(torch.rand(3, 32, 32))
    model.encode(video.time_first(), model.start_encoder(1, (32, 32), video.image))
    colours, scene, _ = parts(video[0])
    torch.testing.assert_close(seen[0][:, 0, :3], colours - scene)
    torch.testing.assert_close(seen[0][:, 0, 3:6], colours - 0.5)
