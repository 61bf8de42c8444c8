"""Looks of generated objects: measured on sprites made by hand, and on an untrained model."""

import math
from dataclasses import replace

import pytest
import torch

from scalor.evaluation.looks import Spread, compare, mean_colour, measure_looks
from scalor.model.glimpses import Sprite
from scalor.model.scalor import SCALOR
from scalor.presets import get_preset


def sprite(colour: tuple[float, float, float], columns: int) -> Sprite:
    """One object of one colour that fills the first columns of an 8x8 glimpse, [1, 1]."""
    mask = torch.zeros(1, 1, 1, 8, 8)
    mask[..., :columns] = 1
    return Sprite(torch.tensor(colour).view(1, 1, 3, 1, 1).expand(1, 1, 3, 8, 8), mask)


CHOSEN = torch.ones(1, 1, dtype=torch.bool)


def test_an_object_that_stays_as_it_is_has_no_difference() -> None:
    one = sprite((1.0, 0.0, 0.0), 4)
    assert compare(one, one, CHOSEN).tolist() == [0, 1, 0, 1]
    assert compare(one, one, ~CHOSEN).tolist() == [0, 0, 0, 0]


def test_a_change_of_colour_and_a_change_of_shape_are_told_apart() -> None:
    red, green, wide = sprite((1.0, 0.0, 0.0), 4), sprite((0.0, 1.0, 0.0), 4), sprite((1.0, 0.0, 0.0), 8)
    picture, overlap, colour, _ = compare(red, green, CHOSEN).tolist()
    assert (picture, overlap, colour) == pytest.approx((1 / 3, 1, math.sqrt(2)))
    picture, overlap, colour, _ = compare(red, wide, CHOSEN).tolist()
    assert (picture, overlap, colour) == pytest.approx((1 / 6, 0.5, 0))


def test_spread_is_that_of_the_colours_within_the_mask() -> None:
    plain, mixed = Spread(), Spread()
    assert plain.mean is None
    half = sprite((1.0, 0.0, 0.0), 8)
    colour = half.colour.clone()
    colour[..., 4:] = 0
    plain.add(half, CHOSEN)
    mixed.add(Sprite(colour, half.mask), CHOSEN)
    assert plain.mean == pytest.approx(0)
    assert mixed.mean == pytest.approx(math.sqrt(0.25 / 3))  # one of three channels varies
    assert mean_colour(Sprite(colour, half.mask)).flatten().tolist() == [0.5, 0, 0]


@pytest.mark.usefixtures("untrained_masks")
@pytest.mark.filterwarnings("ignore:slots run out")
def test_a_whole_measurement_compares_every_sampled_frame_with_the_last_observed_one() -> None:
    torch.manual_seed(0)
    config = get_preset("shapes-tiny")
    config = replace(config, test=replace(config.test, length=6))
    model = SCALOR(replace(config.model, birth_presence=0.2, death_presence=0.1))
    found = measure_looks(model, config, clips=2, horizon=3, quiet=True)
    assert len(found.picture) == len(found.mask_overlap) == len(found.colour) == len(found.left) == 3
    assert 1 >= found.left[0] >= found.left[1] >= found.left[2] >= 0
    assert found.left[0] > 0
    assert found.picture[0] is not None
    assert 0 < found.picture[0] < 1
    assert found.spread_tracked is not None
    assert found.spread_imagined is not None
