"""Boxes against a foreground that is drawn, counted by hand."""

import numpy as np
import pytest

from scalor.health.coverage import Coverage, clean

VIEW = (60, 80)


def mask(*boxes: tuple[int, int, int, int]) -> np.ndarray:
    drawn = np.zeros(VIEW, bool)
    for x0, y0, x1, y1 in boxes:
        drawn[y0:y1, x0:x1] = True
    return drawn


def counted(foreground: np.ndarray, *boxes: tuple[float, ...]) -> Coverage:
    covering = Coverage(VIEW, (6, 6))
    covering.step(foreground, np.array(boxes, float).reshape(-1, 4))
    return covering


def test_a_box_explains_the_foreground_inside_it() -> None:
    covering = counted(mask((10, 10, 20, 20), (40, 10, 50, 40)), (10, 10, 20, 20))
    assert (covering.explained, covering.foreground) == (100, 400)


def test_boxes_that_overlap_explain_a_pixel_once() -> None:
    covering = counted(mask((10, 10, 20, 20)), (10, 10, 20, 20), (8, 8, 22, 22))
    assert covering.explained == 100


def test_a_box_beside_the_foreground_is_on_nothing() -> None:
    covering = counted(mask((10, 10, 20, 20)), (10, 10, 20, 20), (50, 10, 60, 20))
    assert (covering.empty, covering.rows) == (1, 2)


@pytest.mark.parametrize(
    ("box", "fits"),
    [((10, 10, 20, 30), True), ((12, 12, 22, 32), True), ((16, 10, 26, 30), False), ((5, 5, 35, 45), False)],
)
def test_a_box_that_stands_alone_fits_from_an_iou_of_one_half(box: tuple[float, ...], fits: bool) -> None:
    covering = counted(mask((10, 10, 20, 30)), box)
    assert (covering.pairs, covering.fitting) == (1, int(fits))


def test_pieces_of_a_body_are_one_where_no_other_box_is_near() -> None:
    covering = counted(mask((10, 10, 20, 18), (10, 22, 20, 30)), (10, 10, 20, 30))
    assert (covering.pairs, covering.fitting) == (1, 1)


def test_what_touches_another_box_or_the_border_is_not_judged_for_its_fit() -> None:
    assert counted(mask((10, 10, 30, 30)), (10, 10, 20, 30), (20, 10, 30, 30)).pairs == 0
    assert counted(mask((0, 10, 10, 30)), (0, 10, 10, 30)).pairs == 0


def test_two_boxes_on_one_thing_are_doubles() -> None:
    assert counted(mask(), (10, 10, 20, 20), (11, 11, 21, 21), (40, 40, 50, 50)).doubles == 2
    assert counted(mask(), (10, 10, 20, 20), (10, 10, 14, 14)).doubles == 2
    assert counted(mask(), (10, 10, 20, 20), (18, 10, 28, 20)).doubles == 0


def test_specks_are_no_foreground() -> None:
    cleaned, blobs, area = clean(mask((3, 3, 4, 5), (10, 10, 20, 20)))
    assert cleaned.sum() == 100
    assert blobs.tolist() == [[10, 10, 20, 20]]
    assert area.tolist() == [100]


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_the_scale_of_the_mask_does_not_matter(factor: int) -> None:
    fine = mask((8, 8, 24, 32), (40, 8, 56, 32))
    covering = Coverage(VIEW, None)
    covering.step(fine[::factor, ::factor], np.array([[8, 8, 24, 32], [60, 40, 76, 56.0]]))
    assert covering.explained / covering.foreground == 0.5
    assert (covering.empty, covering.pairs, covering.fitting) == (1, 1, 1)
    assert covering.blob_height.median() == pytest.approx(24, rel=0.03)
    assert covering.box_width.median() == pytest.approx(16, rel=0.03)


def test_boxes_outside_the_picture_are_cut_and_do_no_harm() -> None:
    covering = counted(mask((0, 0, 10, 10)), (-20, -20, 10, 10), (100, 100, 120, 120), (30, 30, 30, 30))
    assert (covering.rows, covering.explained, covering.empty) == (1, 100, 0)


def test_an_empty_frame_counts_as_one() -> None:
    covering = counted(mask())
    assert (covering.frames, covering.rows, covering.foreground, covering.moving_frames) == (1, 0, 0, 0)
