"""Parts that are learned first: the background alone, and the appearance of glimpses, each without the other."""

from typing import Any

import pytest
import torch
from torch import Tensor

from scalor.data.observation import Observation
from scalor.model.parts import explain_parts
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import Noise, Relaxed
from scalor.nn.interface import Annealed

from .worlds import squares, tiny_model


def noise(model: SCALOR, frames: int, clips: int) -> Noise:
    normals, uniforms = model.noise_per_frame((32, 32))
    torch.manual_seed(0)
    return Noise(torch.randn(frames, clips, normals), torch.rand(frames, clips, uniforms))


def bound(model: SCALOR, video: Tensor) -> Tensor:
    clips, frames = video.shape[:2]
    now = Annealed(torch.tensor(1.0), torch.tensor(0.1), cut_gradients=False, parts_alone=True)
    return model.bound(Observation(video), noise(model, frames, clips), now).elbo


@pytest.mark.parametrize("background", [False, True])
def test_only_the_appearance_and_the_background_learn(background: bool) -> None:
    model = tiny_model(lively=False, background=background)
    bound(model, squares(2, clips=2)).mean().backward()
    learning = {name.split(".")[0] for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert learning == {"appearance", "background"} if background else {"appearance"}


def test_masks_do_not_learn() -> None:
    model = tiny_model(lively=False)
    bound(model, squares(1, clips=2)).mean().backward()
    decoder = model.appearance.decoder
    gradient = decoder.each[-1].bias.grad
    assert isinstance(gradient, Tensor)
    colours, masks = gradient[: 3 * decoder.patch**2], gradient[3 * decoder.patch**2 :]
    assert colours.all()
    assert not masks.any()


@pytest.mark.parametrize("changes", [{}, {"background": True, "background_map": 8}])
def test_learning_makes_sprites_and_background_look_like_the_frames(changes: dict[str, Any]) -> None:
    model = tiny_model(lively=False, **changes)
    video = 0.5 + 0.5 * squares(1, clips=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    first = float(bound(model, video).mean().detach())
    for _ in range(30):
        optimizer.zero_grad()
        loss = -bound(model, video).mean()
        loss.backward()
        optimizer.step()
    assert -float(loss.detach()) > first + 100


def test_the_bound_is_the_sum_of_its_terms_and_counts_no_object() -> None:
    model = tiny_model(lively=False, background=True)
    video = Observation(squares(3, clips=2))
    terms, activity = explain_parts(model, video.time_first(), Relaxed(torch.tensor(1.0), noise(model, 3, 2)))
    assert (terms.kl["kl_background"] > 0).all()
    assert (terms.kl["kl_discovered_what"] > 0).all()
    assert not activity.objects.any()
    assert (activity.squared_error > 0).all()
