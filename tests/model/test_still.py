"""A camera that stands still: frames come with the scene behind the objects."""

from dataclasses import replace

import pytest
import torch

from scalor.config import ModelConfig
from scalor.distributions import Exact, Mode
from scalor.errors import InputError
from scalor.model.scalor import SCALOR

from .worlds import TINY, squares, tiny_config


def still_model() -> SCALOR:
    torch.manual_seed(0)
    return SCALOR(replace(tiny_config(), still=True)).eval()


def before(scene: torch.Tensor, frames: int = 3) -> torch.Tensor:
    """[1, T, 6, H, W]: squares that drift over a scene, and the scene."""
    drawn = squares(frames)
    seen = torch.where(drawn.amax(2, keepdim=True) > 0, drawn, scene)
    return torch.cat([seen, scene.expand_as(seen)], 2)


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
    empty = torch.cat([scene, scene])[None, None].expand(1, 3, -1, -1, -1)
    explained = model.elbo(empty, Mode())
    assert float(explained.activity.squared_error) == pytest.approx(0, abs=1e-6)
    plain = SCALOR(tiny_config())
    pixels = 3 * 3 * 32 * 32
    best = plain.elbo(torch.zeros(1, 3, 3, 32, 32), Mode()).terms
    assert float(explained.terms.log_likelihood) >= float(best.log_likelihood) - 1e-3 * pixels


def test_gradients_reach_every_weight() -> None:
    model = still_model().train()
    model.elbo(before(torch.rand(3, 32, 32)), Exact()).terms.elbo.sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_tracking_and_streaming_agree() -> None:
    model, video = still_model(), before(torch.rand(3, 32, 32))
    whole = model.track(video[0])
    assert sum(len(part) for part in model.stream(list(video[0]))) == len(whole)


def test_frames_without_the_scene_are_refused() -> None:
    with pytest.raises(InputError, match=r"\[T, 6, H, W\].*still scene"):
        still_model().track(squares(3)[0])


def test_the_scene_is_given_or_modelled_but_not_both() -> None:
    with pytest.raises(InputError, match=r"model\.still"):
        ModelConfig(**{**TINY, "still": True, "background": True})
