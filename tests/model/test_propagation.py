"""Trackers: where they look, how far an object may move, and when it ends."""

import pytest
import torch
from torch import Tensor

from scalor.model.decoders import Sprite
from scalor.model.prior import Sampled
from scalor.model.propagation import Propagation

from .worlds import random_objects, tiny_config

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
    drawn = Sampled(torch.zeros(1, 1, 9), torch.full((1, 1, 1), presence))
    sprite = Sprite(torch.ones(1, 1, 3, 8, 8), torch.full((1, 1, 1, 8, 8), mask))
    moved = trackers.carry(objects, torch.tensor([[[x, 48.0, 8.0, 8.0]]]), drawn, sprite, (96, 84))
    assert bool(moved.alive.item()) is stays
