"""The fast model computes what the model computes as the paper writes it."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from scalor import checkpoint
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.kernels import crop, paste
from scalor.model import reference
from scalor.model.glimpses import Sprite
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import Estimator, Mode
from tests.model.worlds import VARIANTS, each, random_sprite, squares, tiny_model

SHIPPED = ("shapes-md", "shapes-hd", "shapes-background", "any")


def with_canvas_rejection(model: SCALOR) -> SCALOR:
    """The model with the reference's rule of rejection, the one thing in which they differ."""

    def reject(sprite: Sprite, where: Tensor, explained: Tensor) -> Tensor:
        with torch.no_grad():
            masks = reference.paste(sprite.mask, where, explained.shape[-2:])[:, :, 0]
            return reference.reject(model, masks, explained)

    model.discovery.reject = reject  # type: ignore[method-assign]
    return model


def gradient(model: SCALOR, elbo: Tensor) -> Tensor:
    model.zero_grad()
    elbo.mean().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def assert_agree(model: SCALOR, video: Observation, estimator: Estimator) -> None:
    """Terms to 1e-3 of their size (or 0.01 nats), pixels to 1e-3, gradients to 5e-3 of their norm."""
    ours, theirs = model.elbo(video, estimator), reference.elbo(model, video, estimator)
    for name, term in ours.terms.to_dict().items():
        torch.testing.assert_close(theirs.terms.to_dict()[name], term, rtol=1e-3, atol=1e-2, msg=name)
    images = ours.rendering.image.unflatten(0, (-1, len(video))).transpose(0, 1)
    torch.testing.assert_close(theirs.image, images, rtol=0, atol=1e-3)
    assert theirs.objects == pytest.approx(float(ours.activity.objects.mean()))
    assert theirs.objects > 1
    wanted = gradient(model, ours.terms.elbo)
    assert (gradient(model, theirs.terms.elbo) - wanted).norm() < 5e-3 * wanted.norm()


@each(VARIANTS)
def test_bound_reconstruction_and_gradient_agree_on_random_weights(changes: dict[str, Any]) -> None:
    # A gradient jumps where a sampled point meets a pixel: with this seed rounding puts none on the other side.
    model = with_canvas_rejection(tiny_model(seed=5, **changes))
    assert_agree(model, Observation(squares(3, clips=3)), Mode())


@pytest.mark.parametrize("weights", SHIPPED)
def test_bound_reconstruction_and_gradient_agree_on_shipped_weights(weights: str) -> None:
    model = checkpoint.load(weights)
    assert isinstance(model, SCALOR)
    assert model.run is not None
    scene = replace(model.run.test, length=3)
    assert_agree(with_canvas_rejection(model), Scenes(scene, 0, "test").clips(0, 2).observation, Mode())


def test_it_can_look_at_every_cell() -> None:
    """As the public code does: then it is a model with as many slots and proposals as cells."""
    model = tiny_model(slots=16, proposals=16, rejection=False)
    video = squares(3, clips=2)
    theirs = reference.elbo(
        tiny_model(slots=16, proposals=2, rejection=False), Observation(video), Mode(), proposals=16
    )
    torch.testing.assert_close(
        theirs.terms.elbo, model.elbo(Observation(video), Mode()).terms.elbo, rtol=1e-4, atol=1e-2
    )


def test_it_follows_the_same_objects() -> None:
    model = with_canvas_rejection(tiny_model())
    video = squares(4, clips=2)
    with torch.no_grad():
        ours = model.elbo(Observation(video), Mode()).steps
    for seen, state in zip(ours, reference.track(model, Observation(video).unbind(1)), strict=True):
        assert places(state.id, state.objects.where) == places(seen.state.id, seen.state.objects.where)


def places(ids: Tensor, where: Tensor) -> list[dict[int, list[float]]]:
    """Clip by clip, where each living object is."""
    return [
        {int(i): [round(side, 1) for side in box.tolist()] for i, box in zip(*clip, strict=True) if i >= 0}
        for clip in zip(ids, where, strict=True)
    ]


def test_a_crop_and_the_sum_of_canvases_are_the_kernels() -> None:
    frame = (24, 32)
    where = torch.cat([torch.rand(2, 5, 2) * 40 - 4, 3 + 12 * torch.rand(2, 5, 2)], -1)
    image, sprite = torch.rand(2, 3, *frame), random_sprite(2, 5)
    torch.testing.assert_close(reference.crop(image, where, 8), crop(image, where, 8), rtol=1e-4, atol=1e-5)
    pasted = reference.paste(sprite.colour, where, frame)
    assert pasted.shape == (2, 5, 3, *frame)
    torch.testing.assert_close(pasted.sum(1), paste(sprite.colour, where, frame), rtol=1e-4, atol=1e-5)


def test_areas_on_the_canvas_and_in_the_glimpse_tell_the_same() -> None:
    """The two rules of rejection agree on discs that are more or less covered, but for the close calls."""
    model = tiny_model(frame=(64, 64), grid=(8, 8))
    side = torch.linspace(-1, 1, 8)
    disc = (side[:, None] ** 2 + side**2 < 0.9).float().expand(1, 40, 1, 8, 8)
    x = torch.linspace(8, 56, 40)
    where = torch.stack([x, 32 + 0 * x, 12 + 0 * x, 12 + 0 * x], -1)[None]
    explained = torch.zeros(1, 1, 64, 64)
    explained[..., 33:] = 1  # all to the right of the middle
    glimpse = model.discovery.reject(Sprite(disc.expand(-1, -1, 3, -1, -1), disc), where, explained)
    canvas = reference.reject(model, reference.paste(disc, where, (64, 64))[:, :, 0], explained)
    assert glimpse.mean() == pytest.approx(0.5, abs=0.2)
    assert (glimpse == canvas).float().mean() >= 0.95
