"""What stands out is found, and what touches comes apart where colours tell it apart."""

import numpy as np
import pytest

from scalor.classical.detectors import Detector, threshold
from scalor.tracking.kalman import Detections

WAYS = ("colour", "foreground")
RED, GREEN = (1.0, 0.1, 0.1), (0.1, 1.0, 0.1)


def picture(*squares: tuple[int, int, tuple[float, float, float]], side: int = 8) -> np.ndarray:
    """Squares of 8 px over black, each by its left, its top and its colour; later ones in front."""
    frame = np.zeros((3, 40, 48), dtype=np.float32)
    for x, y, colour in squares:
        frame[:, y : y + side, x : x + side] = np.array(colour)[:, None, None]
    return frame


def find(way: str, frame: np.ndarray, background: np.ndarray | None = None) -> Detections:
    return Detector(way, (8.0, 8.0), 0.02)(frame, background)


@pytest.mark.parametrize("way", WAYS)
def test_a_square_has_its_own_box(way: str) -> None:
    assert find(way, picture((5, 9, RED))).box.tolist() == [[5, 9, 13, 17]]


def test_touching_squares_come_apart_by_colour_alone() -> None:
    frame = picture((5, 9, RED), (13, 11, GREEN))
    assert find("colour", frame).box.tolist() == [[5, 9, 13, 17], [13, 11, 21, 19]]
    assert find("foreground", frame).box.tolist() == [[5, 9, 21, 19]]


def test_colours_are_known_by_colour_alone() -> None:
    frame = picture((5, 9, RED), (30, 9, (0.05, 0.5, 0.05)))
    np.testing.assert_allclose(find("colour", frame).colour, [RED, GREEN], atol=1e-6)
    assert not find("foreground", frame).colour.any()


def test_a_square_cut_in_two_by_another_is_one() -> None:
    frame = picture((5, 9, RED))
    frame[:, :, 8:10] = np.array(GREEN)[:, None, None]  # a bar from top to bottom
    boxes = find("colour", frame).box.tolist()
    assert [5, 9, 13, 17] in boxes
    far = picture((5, 9, RED), (30, 9, RED))
    assert len(find("colour", far).box) == 2


def test_crumbs_are_no_objects() -> None:
    frame = picture((5, 9, RED))
    frame[:, 30, 30:33] = 1.0
    assert len(find("foreground", frame).box) == 1


def test_blurred_rims_between_objects_part_them() -> None:
    frame = picture((5, 9, RED), (14, 9, RED))
    frame[:, 9:17, 13] = 0.6 * np.array(RED)[:, None]
    assert find("foreground", frame).box[:, [0, 2]].tolist() in ([[5, 14], [14, 22]], [[5, 13], [13, 22]])


def test_a_known_background_is_no_object() -> None:
    background = np.linspace(0.2, 0.8, 48, dtype=np.float32) * np.ones((3, 40, 1), dtype=np.float32)
    frame = background.copy()
    frame[:, 9:17, 5:13] = np.array(GREEN)[:, None, None]
    for way in WAYS:
        assert find(way, frame, background).box.tolist() == [[5, 9, 13, 17]]
        assert len(find(way, background, background).box) == 0


@pytest.mark.parametrize("way", WAYS)
def test_black_holds_nothing(way: str) -> None:
    found = find(way, picture())
    assert (found.box.shape, found.colour.shape) == ((0, 4), (0, 3))


def test_the_threshold_parts_two_groups_and_ignores_faint_noise() -> None:
    rng = np.random.default_rng(0)
    two = np.concatenate([rng.uniform(0.1, 0.3, (20, 32)), rng.uniform(0.7, 0.9, (12, 32))])
    assert 0.3 < threshold(two) < 0.7
    assert threshold(rng.uniform(0, 0.05, (32, 32))) == 0.1
