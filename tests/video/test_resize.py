"""Pictures change their size as the name says: to any size, or by a whole factor."""

import numpy as np

from scalor.video.resize import downsample, downsample_mask


def test_a_square_is_true_from_half_of_its_pixels_on() -> None:
    pixels = np.zeros((5, 6), bool)
    pixels[0, :2] = pixels[2, 2] = True
    assert downsample_mask(pixels, 2).tolist() == [[True, False, False], [False, False, False]]
    assert downsample_mask(pixels, 1) is pixels


def test_shrinking_takes_means_and_cuts_off_what_is_left() -> None:
    picture = np.arange(3 * 5 * 4, dtype=float).reshape(3, 5, 4)
    np.testing.assert_allclose(downsample(picture, 2)[0], [[2.5, 4.5], [10.5, 12.5]])
    np.testing.assert_array_equal(downsample(picture, 1), picture)
