"""The long video of the soak, and its measure of growth."""

from itertools import islice, pairwise

import numpy as np

from benchmarks.soak import DISCS, Row, growth, pictures


def test_every_picture_shows_all_discs_and_they_move() -> None:
    whole = list(pictures(400, 0))
    for picture in whole[::57]:
        bright = (picture == 200).all(-1) | (picture.max(-1) > 190)
        assert bright.sum() > DISCS * 40
    assert all((one != other).any() for one, other in pairwise(whole))
    assert all((one == other).all() for one, other in zip(whole, islice(pictures(400, 0), 5), strict=False))
    assert not np.array_equal(whole[0], next(pictures(1, 1)))


def test_growth_leaves_out_the_start_and_the_report() -> None:
    assert growth([Row(number, 0, mib) for number, mib in enumerate((100, 200, 205, 203, 900))]) == 5
