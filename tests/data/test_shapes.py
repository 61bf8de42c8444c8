"""Shapes fill what their formulas say, and their boxes hug them."""

import math

import torch

from scalor.data.hashing import fold, key, whole
from scalor.data.shapes import HEART_SIDE, KIND, LOOK, Shapes, colours

SIZE = 30.0
RADIUS = 20
KEYS = key(0, "train", torch.arange(60))[None]  # [1, 60]
KINDS = whole(fold(KEYS, LOOK), KIND, 3)
SIZES = torch.full(KEYS.shape, SIZE)


def drawn() -> torch.Tensor:
    """Pictures of 60 shapes, [1, 60, S, S]."""
    middles = (torch.arange(-RADIUS, RADIUS) + 0.5).expand(1, 60, 1, -1)
    return Shapes().alpha(KEYS, SIZES, middles, middles)[:, :, 0]


def test_every_kind_appears() -> None:
    assert set(KINDS.flatten().tolist()) == {0, 1, 2}


def test_the_drawn_area_is_the_area_of_the_formula() -> None:
    areas = torch.tensor([0.64, math.pi * 0.5 * 0.325, HEART_SIDE**2 * (1 + math.pi / 4)]) * SIZE**2
    share = drawn().sum((-2, -1)) / areas[KINDS]
    assert share.sub(1).abs().max() < 0.02


def test_the_box_hugs_what_is_drawn() -> None:
    half = Shapes().half(KEYS, SIZES)
    solid = drawn() > 0.5
    for axis, along in ((0, -2), (1, -1)):
        used = solid.any(along)  # [1, 60, S], over x and then over y
        low = used.byte().argmax(-1) - RADIUS
        high = RADIUS - used.flip(-1).byte().argmax(-1)
        # Half-covered pixels lie within half a pixel of the rim, but for the tips of corners.
        assert (-low - half[..., axis]).abs().max() < 1.2
        assert (high - half[..., axis]).abs().max() < 1.2


def test_nothing_is_drawn_beyond_the_stated_reach() -> None:
    outside = (torch.arange(-RADIUS, RADIUS) + 0.5).abs() > Shapes.reach * SIZE + 0.75
    assert drawn()[..., outside].max() == 0


def test_colours_are_saturated_and_of_every_hue() -> None:
    colour = colours(key(0, "train", torch.arange(3000)))
    assert colour.amax(-1).min() >= 0.8
    assert (colour.amin(-1) / colour.amax(-1)).max() <= 0.25 + 1e-5
    assert colour.argmax(-1).bincount().min() > 900
