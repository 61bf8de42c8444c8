"""Medians of frames, and the running one."""

import numpy as np

from scalor.still.median import RUNNING_FRAMES, RunningBackground, median_of


def test_the_median_is_the_lower_of_two_middle_values() -> None:
    values = np.array([[9, 1], [3, 1], [5, 7], [7, 200]], np.uint8)
    assert median_of(values).tolist() == [5, 1]
    assert median_of(values[:3]).tolist() == [5, 1]


def test_pictures_that_do_not_show_a_pixel_do_not_count() -> None:
    values = np.array([[9, 1], [3, 1], [5, 7]], np.uint8)
    shown = np.array([[True, False], [False, False], [True, False]])
    assert median_of(values, shown).tolist() == [5, 0]


def test_the_running_background_reaches_back_farther_as_the_video_goes_on() -> None:
    background, empty = RunningBackground(), np.full((3, 6, 8), 150, np.uint8)
    walker = empty.copy()
    walker[:, 2:4, 3:5] = 20
    for t in range(400):  # someone stands there for 60 frames: a fifth of what is remembered in the end
        median = background.at(walker if t < 60 else empty)
        assert len(background.pictures) <= RUNNING_FRAMES
    assert background.stride == 16
    np.testing.assert_array_equal(median, empty)
