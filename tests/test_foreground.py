"""What stands out from a still scene."""

import numpy as np
import pytest

from scalor.foreground import close, coarseness, shrink, stands_out


def street(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.45, 0.55, (3, 60, 80)).astype(np.float32)


def test_shrinking_takes_means_and_cuts_off_what_is_left() -> None:
    picture = np.arange(3 * 5 * 4, dtype=float).reshape(3, 5, 4)
    np.testing.assert_allclose(shrink(picture, 2)[0], [[2.5, 4.5], [10.5, 12.5]])
    np.testing.assert_array_equal(shrink(picture, 1), picture)


@pytest.mark.parametrize(("light", "found"), [(0.7, False), (0.3, True), (1.3, True)])
def test_a_shadow_does_not_stand_out(light: float, found: bool) -> None:
    frame = street()
    frame[:, 20:40, 30:38] *= light
    assert stands_out(frame, street())[20:40, 30:38].any() == found


def test_colour_stands_out_at_any_light() -> None:
    frame = street()
    frame[:, 20:40, 30:38] *= np.array([1.0, 0.7, 0.5])[:, None, None]
    assert stands_out(frame, street())[20:40, 30:38].mean() > 0.9


def test_noise_does_not_stand_out() -> None:
    rng = np.random.default_rng(3)
    frame = street() + rng.normal(0, 0.05, (3, 60, 80))
    assert stands_out(frame, street()).mean() < 0.01


def test_specks_go_and_gaps_close() -> None:
    inside = np.zeros((60, 80), bool)
    inside[20:40, 30:38] = True
    whole = close(inside, (20.0, 8.0))
    inside[30, 30:38] = False
    inside[5, 5] = True
    assert np.array_equal(close(inside, (20.0, 8.0)), whole)


@pytest.mark.parametrize(("size", "squares"), [((9.0, 9.0), 1), ((80.0, 28.0), 2), ((100.0, 60.0), 5)])
def test_large_objects_are_seen_in_coarse_pictures(size: tuple[float, float], squares: int) -> None:
    assert coarseness(size) == squares
