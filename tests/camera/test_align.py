import sys

import numpy as np
import pytest

from scalor.camera.align import Landmarks, align, compose, evened, find, for_pixels, identity, invert, move
from scalor.errors import InputError
from tests.camera.filming import film, pose, scene

POINTS = np.random.default_rng(0).uniform(0, 200, (20, 2))


def test_an_inverse_leads_back() -> None:
    there = pose(12, -7, 20, 1.4)
    np.testing.assert_allclose(move(invert(there), move(there, POINTS)), POINTS)
    np.testing.assert_allclose(compose(invert(there), there), identity(), atol=1e-12)


def test_the_similarity_for_pixels_takes_centres_to_centres() -> None:
    there = pose(3, 4, 30, 2)
    np.testing.assert_allclose(move(for_pixels(there), POINTS - 0.5), move(there, POINTS) - 0.5)


@pytest.mark.parametrize("other", [pose(8, -5), pose(0, 0, 4), pose(0, 0, 0, 1.1), pose(5, 5, 3, 0.95)])
def test_a_small_motion_is_measured_to_a_tenth_of_a_pixel_whatever_moves_in_front(other: np.ndarray) -> None:
    one, two = film([pose(), other], discs=8, flicker=0.2)
    match = align(Landmarks(evened(one)), evened(two), identity())
    assert match is not None
    true = compose(invert(pose()), other)
    assert np.abs(move(match.similarity, POINTS) - move(true, POINTS)).max() < 0.25
    assert np.abs(move(match.similarity, POINTS) - move(true, POINTS)).mean() < 0.1


def test_pictures_far_apart_are_found_without_a_guess() -> None:
    one, two = film([pose(-60, 10), pose(50, -20, 25, 1.2)])
    assert align(Landmarks(evened(one)), evened(two), identity()) is None
    match = find(Landmarks(evened(one)), Landmarks(evened(two)))
    assert match is not None
    true = compose(invert(pose(-60, 10)), pose(50, -20, 25, 1.2))
    assert np.abs(move(match.similarity, POINTS) - move(true, POINTS)).max() < 0.5


def test_different_scenes_and_empty_ones_do_not_match() -> None:
    one, other, empty = (Landmarks(evened(picture)) for picture in (scene(0), scene(1), np.full_like(scene(), 90)))
    for pair in ((one, other), (one, empty), (empty, empty)):
        assert align(pair[0], pair[1].grey, identity()) is None
        assert find(*pair) is None


def test_without_opencv_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(InputError, match=r"opencv-python-headless.*scalor\[video\]"):
        evened(np.zeros((20, 20, 3), np.uint8))
