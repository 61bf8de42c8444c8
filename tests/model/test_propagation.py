"""Trackers: where they look, how far an object may move, and when it ends."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from scalor.model.glimpses import Sprite
from scalor.model.propagation import Propagation
from scalor.model.state import ObjectState, SceneState
from scalor.nn.distributions import Mode
from tests.layers import linear

from .worlds import all_alive, random_objects, tiny_config, tiny_model

CELLS, CELL = (12, 14), (8, 6)  # frames of 96 by 84


def propagation(**changes: object) -> Propagation:
    return Propagation(tiny_config(frame=(96, 84), grid=CELLS, **changes))


def middle(count: int) -> Tensor:
    """Boxes in the middle of the frame, away from every border."""
    return torch.tensor([42.0, 48.0, 8.0, 8.0]) + torch.randn(1, count, 4) * torch.tensor([4.0, 4.0, 1.0, 1.0])


@pytest.mark.parametrize("search", [True, False])
def test_a_tracker_sees_the_same_when_everything_moves_by_whole_cells(search: bool) -> None:
    trackers, where = propagation(search=search), middle(5)
    features, image = torch.randn(1, 8, *CELLS), torch.rand(1, 3, 96, 84)
    seen = trackers.look(where, features, image)
    moved = where + torch.tensor([2.0 * CELL[1], -1.0 * CELL[0], 0, 0])
    again = trackers.look(
        moved,
        torch.roll(features, (-1, 2), (-2, -1)),
        torch.roll(image, (-1 * CELL[0], 2 * CELL[1]), (-2, -1)),
    )
    torch.testing.assert_close(again, seen, rtol=0, atol=1e-4)
    assert (seen[0, 0] - seen[0, 1]).abs().max() > 1e-2


def test_with_attention_a_tracker_sees_only_what_is_around_its_object() -> None:
    where = torch.tensor([[[42.0, 48.0, 8.0, 8.0]]])  # where cells 6 and 7 across and 5 and 6 down meet
    features, image = torch.randn(1, 8, *CELLS), torch.zeros(1, 3, 96, 84)
    near, far = features.clone(), features.clone()
    window = torch.zeros(CELLS, dtype=torch.bool)
    window[4:8, 5:9] = True
    far[..., ~window] += 1
    near[..., window] += 1
    for attention in (True, False):
        trackers = propagation(attention=attention)
        seen = trackers.look(where, features, image)
        assert not torch.allclose(trackers.look(where, near, image), seen, atol=1e-4)
        assert torch.allclose(trackers.look(where, far, image), seen, atol=1e-5) is attention


def test_an_object_moves_by_at_most_its_typical_size() -> None:
    trackers, where = propagation(object_size=(6.0, 10.0), size_range=0.4), middle(20)
    for scale in (0.0, 1.0, 100.0):
        moved = trackers.shift(where, scale * torch.randn(1, 20, 4))
        assert ((moved - where)[..., :2].abs() <= torch.tensor([10.0, 6.0]) + 1e-4).all()
        assert ((moved[..., 2:] / torch.tensor([10.0, 6.0]) - 1).abs() <= 0.4 + 1e-4).all()
    assert torch.equal(trackers.shift(where, torch.zeros(1, 20, 4))[..., :2], where[..., :2])


@pytest.mark.parametrize("inertia", [True, False])
def test_with_inertia_an_object_goes_on_as_it_did_before_anything_is_learned(inertia: bool) -> None:
    """And without inertia from where it was."""
    model = tiny_model(lively=False, inertia=inertia)
    last = linear(model.propagation.move)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    objects = all_alive(random_objects(1, 6, (32, 32)))
    objects = replace(objects, tracker=torch.zeros(1, 6, 16))
    nobody = torch.zeros(1, 6, dtype=torch.bool)
    state = SceneState(objects, torch.arange(6)[None], torch.tensor([6]), nobody, torch.zeros(1))
    features, image = torch.randn(1, 8, 4, 4), torch.rand(1, 3, 32, 32)
    moved, _, _ = model.propagation(state, features, image, model.appearance, Mode())
    step = model.propagation.typical * torch.tanh(objects.z_where[..., :2])
    expected = objects.where[..., :2] + (step if inertia else 0)
    torch.testing.assert_close(moved.where[..., :2], expected)


def test_with_inertia_a_tracker_looks_where_its_object_should_be() -> None:
    """A change in the picture that only the place ahead can show changes what is found."""
    model = tiny_model(lively=False, inertia=True)
    where = torch.tensor([[[8.0, 16.0, 8.0, 8.0]]])
    ahead = torch.tensor([[[3.0, 0.0, 0.0, 0.0]]])  # a whole typical size to the right
    looked: list[Tensor] = []
    look = model.propagation.look
    model.propagation.look = lambda place, *rest: looked.append(place) or look(place, *rest)  # type: ignore
    objects = replace(
        ObjectState.empty(1, 1, 9, 16, where), where=where, latent=torch.cat([ahead, torch.zeros(1, 1, 5)], -1)
    )
    state = SceneState(
        objects,
        torch.zeros(1, 1, dtype=torch.long),
        torch.ones(1, dtype=torch.long),
        torch.zeros(1, 1, dtype=torch.bool),
        torch.zeros(1),
    )
    model.propagation(state, torch.randn(1, 8, 4, 4), torch.rand(1, 3, 32, 32), model.appearance, Mode())
    torch.testing.assert_close(looked[0][0, 0, :2], torch.tensor([16.0, 16.0]), rtol=0, atol=0.1)


@pytest.mark.parametrize(
    ("presence", "x", "mask", "alive", "stays"),
    [
        (0.9, 42.0, 1.0, 1.0, True),
        (0.3, 42.0, 1.0, 1.0, False),
        (0.9, -20.0, 1.0, 1.0, False),
        (0.9, 42.0, 0.1, 1.0, False),
        (0.9, 42.0, 1.0, 0.0, False),
    ],
    ids=["there", "absent", "out of view", "shows nothing", "dead already"],
)
def test_an_object_ends_when_it_is_gone(presence: float, x: float, mask: float, alive: float, stays: bool) -> None:
    trackers, objects = propagation(), random_objects(1, 1, (96, 84))
    objects = objects.unpack(torch.cat([objects.pack()[..., :-1], torch.full((1, 1, 1), alive)], -1))
    drawn = (torch.zeros(1, 1, 9), torch.full((1, 1, 1), presence))
    sprite = Sprite(torch.ones(1, 1, 3, 8, 8), torch.full((1, 1, 1, 8, 8), mask))
    moved = trackers.carry(objects, torch.tensor([[[x, 48.0, 8.0, 8.0]]]), *drawn, sprite, (96, 84))
    assert bool(moved.alive.item()) is stays
