"""Connected pieces of the foreground."""

import numpy as np
import pytest

from scalor.boxes import FLAT
from scalor.still.blobs import find_blobs, join_blobs, large_enough

from .films import ellipse


def test_blobs_are_the_pieces_that_hang_together() -> None:
    changed = np.zeros((20, 30), bool)
    changed[2:8, 3:7] = changed[10:20, 20:28] = changed[0, 29] = True
    blobs = find_blobs(changed)
    assert blobs.centre.tolist() == [[5, 5], [24, 15]]
    assert blobs.size.tolist() == [[6, 4], [10, 8]]
    assert blobs.area.tolist() == [24, 80]
    assert blobs.whole.tolist() == [True, False]


def test_the_nearer_a_blob_the_larger_it_must_be_for_an_object() -> None:
    changed = np.zeros((100, 60), bool)
    changed[2:8, 3:9] = changed[80:86, 3:9] = changed[80:98, 20:38] = True
    blobs = find_blobs(changed)
    assert large_enough(blobs, (20, 10), 100, FLAT).tolist() == [True, True, True]
    assert large_enough(blobs, (20, 10), 100, (0.5, 2.0)).tolist() == [True, False, True]


def test_pieces_nearby_are_one_where_a_gap_is_allowed() -> None:
    changed = np.zeros((40, 40), bool)
    changed[5:12, 10:20] = changed[15:25, 10:20] = changed[5:12, 30:38] = True
    assert len(find_blobs(changed).box) == 3
    joined = find_blobs(changed, gap=2)
    assert joined.box.tolist() == [[10, 5, 20, 25], [30, 5, 38, 12]]
    assert joined.area.tolist() == [170, 56]
    assert joined.moments.sum(0) == pytest.approx(find_blobs(changed).moments.sum(0))


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.2, -0.8])
def test_the_axes_of_an_ellipse_are_found_at_any_angle(angle: float) -> None:
    row, column = np.mgrid[:96, :128] + 0.5
    along = (column - 60) * np.cos(angle) + (row - 50) * np.sin(angle)
    across = (row - 50) * np.cos(angle) - (column - 60) * np.sin(angle)
    length, breadth, found = find_blobs((along / 25) ** 2 + (across / 6) ** 2 < 1).axes()
    assert (length[0], breadth[0]) == pytest.approx((50, 12), rel=0.03)
    assert np.exp(2j * found[0]) == pytest.approx(np.exp(2j * angle), abs=0.03)


def test_nothing_has_no_blobs() -> None:
    nothing = find_blobs(np.zeros((20, 30), bool))
    assert len(nothing.box) == len(nothing.axes()[0]) == 0
    some = find_blobs(ellipse((40, 40), 20, 12))
    assert len(join_blobs([nothing, some, some]).box) == 2
