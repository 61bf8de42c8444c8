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


@pytest.mark.parametrize(("share", "located"), [(0.7, True), (0.3, False)])
def test_so_many_of_the_points_that_are_found_again_must_move_as_one(share: float, located: bool) -> None:
    """Dots in rows, of which a share moves by 3 pixels to the right, and each other one by itself."""
    random = np.random.default_rng(0)
    one, two = (np.full((240, 320, 3), 90, np.uint8) for _ in range(2))
    for number, (y, x) in enumerate((y, x) for y in range(20, 230, 20) for x in range(20, 310, 20)):
        brightness = random.integers(120, 255, 3)
        dx, dy = (3, 0) if number % 10 < 10 * share else random.integers(-6, 7, 2)
        one[y - 3 : y + 3, x - 3 : x + 3] = brightness
        two[y - 3 + dy : y + 3 + dy, x - 3 + dx : x + 3 + dx] = brightness
    match = align(Landmarks(evened(one)), evened(two), identity())
    assert (match is not None) == located


def test_without_opencv_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(InputError, match=r"opencv-python-headless.*scalor\[video\]"):
        evened(np.zeros((20, 20, 3), np.uint8))
