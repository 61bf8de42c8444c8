"""Medians of frames, and the running one."""

import numpy as np

from scalor.still.median import RUNNING_FRAMES, RunningBackground, common_picture, median_of


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


def test_another_value_than_the_median_is_common_if_it_is_in_clearly_more_frames() -> None:
    """In a crowded place, where no value is in most of the frames."""

    def common(dark: int, median: int) -> int:
        """Of a pixel of 100 frames: so many dark, so many of the median value, all others bright."""
        values = np.repeat(np.array([20, 100, 200], np.uint8), (dark, median, 100 - dark - median))
        return int(common_picture(values[:, None, None, None].repeat(3, 3))[0, 0, 0])

    assert common(dark=40, median=30) == 20
    assert common(dark=34, median=31) == 100  # less than MODE_MARGIN more
