"""The light of a picture beside that of the scene."""

import numpy as np
import pytest

from scalor.still.light import IDENTITY_LIGHT, Light, fit_light, in_light, points_of

from .films import street

SCENE = street().round().astype(np.uint8)


def lit(gain: float, offset: float, noise: float = 1.5) -> np.ndarray:
    """The scene in a light, with a thing over a fifth of it."""
    picture = gain * SCENE.astype(float) + offset + np.random.default_rng(2).normal(0, noise, SCENE.shape)
    picture[20:60, 30:90] = (230, 40, 90)
    return picture.round().clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize(("gain", "offset"), [(1, 0), (1.2, 0), (0.5, 0), (1, 60), (1, -40), (1.3, -20), (1.6, 0)])
def test_a_gain_and_an_offset_are_found_whatever_moves(gain: float, offset: float) -> None:
    light = fit_light(points_of(lit(gain, offset)), points_of(SCENE))
    seen = in_light(points_of(SCENE), light).clip(0, 255)
    assert np.abs(seen - np.clip(gain * points_of(SCENE) + offset, 0, 255)).max() < 4
    assert light.agreeing > 0.7


def test_each_colour_has_its_own_light() -> None:
    picture = (SCENE * np.array([1.2, 1.0, 0.8])).astype(np.uint8)
    assert fit_light(points_of(picture), points_of(SCENE)).gain == pytest.approx((1.2, 1.0, 0.8), abs=0.03)


def test_the_same_picture_has_the_usual_light() -> None:
    light = fit_light(points_of(SCENE), points_of(SCENE))
    assert light.is_usual()
    assert light.remainder == pytest.approx(0, abs=0.002)


def test_where_nothing_agrees_the_light_before_goes_on() -> None:
    before = Light((1.1, 1.1, 1.1))
    random = np.random.default_rng(0).integers(0, 256, SCENE.shape).astype(np.uint8)
    light = fit_light(points_of(random), points_of(SCENE), before)
    assert (light.gain, light.offset) == (before.gain, before.offset)
    assert light.agreeing < 0.5


def test_a_light_and_its_inverse_are_the_usual_light() -> None:
    light = Light((1.3, 0.8, 1.1), (0.1, -0.05, 0.0))
    there_and_back = in_light(in_light(points_of(SCENE), light), light.inverse())
    np.testing.assert_allclose(there_and_back, points_of(SCENE), atol=0.01)
    assert light.inverse().inverse().gain == pytest.approx(light.gain)


def test_a_table_has_the_colours_of_a_light() -> None:
    np.testing.assert_array_equal(IDENTITY_LIGHT.table(), np.tile(np.arange(256), (3, 1)))
    table = Light((1.0, 2.0, 0.5), (0.2, 0.0, 0.0)).table()
    assert table[:, 100].tolist() == [151, 200, 50]
    assert table[:, 255].tolist() == [255, 255, 128]
