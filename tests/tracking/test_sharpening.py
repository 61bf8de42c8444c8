"""Boxes drawn again around what stands out."""

import numpy as np
import pytest

from scalor.still.foreground import ForegroundTest
from scalor.tracking.sharpening import Sharpener
from scalor.tracks import Tracks

STREET = np.random.default_rng(0).integers(110, 120, (120, 160, 3)).astype(np.uint8)
RED, BLUE = (220, 30, 20), (20, 40, 210)


def told(*boxes: tuple[float, float, float, float]) -> Tracks:
    rows = np.arange(len(boxes))
    box = np.array(boxes, float).reshape(-1, 4)
    return Tracks(0 * rows, 0 * rows, rows, box, np.ones(len(rows)), rows < 0, (120, 160))


def street(*walkers: tuple[int, int, int, int, tuple[int, int, int]]) -> np.ndarray:
    """x0, y0, x1, y1 and the colour of each."""
    picture = STREET.copy()
    for x0, y0, x1, y1, colour in walkers:
        picture[y0:y1, x0:x1] = colour
    return picture


@pytest.fixture
def sharpen() -> Sharpener:
    return Sharpener(STREET, (30.0, 12.0))


def test_a_box_that_is_a_little_off_is_put_right(sharpen: Sharpener) -> None:
    picture = street((50, 40, 62, 70, RED))
    for dx, dy in ((3, 0), (-3, 4), (0, -4), (2, 2)):
        found = sharpen(told((50 + dx, 40 + dy, 62 + dx, 70 + dy)), picture)
        np.testing.assert_allclose(found.box, [(50, 40, 62, 70)], atol=1)


@pytest.mark.parametrize("side", [6, 30])
def test_a_box_that_is_too_small_or_too_large_gets_the_size_of_its_object(sharpen: Sharpener, side: int) -> None:
    found = sharpen(told((56 - side / 2, 40, 56 + side / 2, 70)), street((50, 40, 62, 70, RED)))
    assert abs(found.box[0, 2] - found.box[0, 0] - 12) < abs(side - 12) / 2


def test_two_that_touch_are_told_apart_by_their_boxes(sharpen: Sharpener) -> None:
    picture = street((50, 40, 62, 70, RED), (62, 42, 74, 72, BLUE))
    found = sharpen(told((49, 41, 61, 69), (63, 44, 75, 73)), picture)
    np.testing.assert_allclose(found.box, [(50, 40, 62, 70), (62, 42, 74, 72)], atol=2)


def test_a_shadow_does_not_widen_a_box(sharpen: Sharpener) -> None:
    picture = street((50, 40, 62, 70, RED))
    picture[60:70, 62:72] = (STREET[60:70, 62:72] * 0.7).astype(np.uint8)
    np.testing.assert_allclose(sharpen(told((51, 41, 63, 71)), picture).box, [(50, 40, 62, 70)], atol=1)


def test_where_nothing_stands_out_there_is_no_object(sharpen: Sharpener) -> None:
    boxes = ((50.0, 40.0, 62.0, 70.0), (90.0, 40.0, 102.0, 70.0), (-30.0, 5.0, -18.0, 35.0))
    assert sharpen(told(*boxes), street((90, 40, 102, 70, RED))).id.tolist() == [1]


@pytest.mark.parametrize("box", [(-60, 40, -48, 70), (208, 40, 220, 70), (70, -90, 82, -60), (70, 180, 82, 210)])
def test_a_box_outside_the_picture_shows_nothing_whatever_is_inside(
    sharpen: Sharpener, box: tuple[int, int, int, int]
) -> None:
    inside = (60, 30, 90, 70)
    assert sharpen(told(box, inside), street((*inside, RED))).id.tolist() == [1]


def test_where_little_stands_out_a_box_stays(sharpen: Sharpener) -> None:
    box = (50.5, 40.5, 62.5, 70.5)
    assert sharpen(told(box), street((52, 50, 61, 54, RED))).box.tolist() == [list(box)]


def test_faint_objects_are_made_stronger_first() -> None:
    picture = street((50, 40, 62, 70, RED))
    faint = (STREET + 0.08 * (picture.astype(float) - STREET)).round().astype(np.uint8)
    assert len(Sharpener(STREET, (30.0, 12.0))(told((51, 41, 63, 71)), faint)) == 0
    found = Sharpener(STREET, (30.0, 12.0), contrast=10.0)(told((51, 41, 63, 71)), faint)
    np.testing.assert_allclose(found.box, [(50, 40, 62, 70)], atol=1)


def test_nothing_stays_nothing(sharpen: Sharpener) -> None:
    assert len(sharpen(told(), STREET)) == 0


def test_a_region_of_the_picture_has_a_corner() -> None:
    sharpen = Sharpener(STREET[20:100, 40:140], (30.0, 12.0), (40, 20))
    found = sharpen(told((52, 42, 64, 72)), street((50, 40, 62, 70, RED)))
    np.testing.assert_allclose(found.box, [(50, 40, 62, 70)], atol=1)


def test_large_objects_are_found_to_a_pixel_of_a_coarser_picture() -> None:
    sharpen = Sharpener(STREET, (90.0, 40.0))
    found = sharpen(told((46, 12, 92, 105)), street((50, 14, 90, 104, RED)))
    np.testing.assert_allclose(found.box, [(50, 14, 90, 104)], atol=sharpen.coarse)


@pytest.mark.parametrize("gain", [0.6, 1.4])
def test_the_background_of_a_frame_is_in_its_light(sharpen: Sharpener, gain: float) -> None:
    picture = (gain * STREET).astype(np.uint8)
    lit = picture.copy()
    picture[40:70, 50:62] = RED
    found = sharpen(told((53, 42, 65, 72), (100, 20, 112, 50)), picture, lit)
    assert found.id.tolist() == [0]
    np.testing.assert_allclose(found.box, [(50, 40, 62, 70)], atol=1)


def test_the_still_scene_is_the_background_unless_told_otherwise(sharpen: Sharpener) -> None:
    picture, seen = street((50, 40, 62, 70, RED)), told((52, 41, 64, 71))
    for background in (STREET, STREET.copy()):
        np.testing.assert_array_equal(sharpen(seen, picture, background).box, sharpen(seen, picture).box)


def test_a_dark_thing_in_grey_film_is_sharpened_where_colour_tells_nothing() -> None:
    grey = np.full((120, 160, 3), 150, np.uint8)
    picture = grey.copy()
    picture[40:70, 50:62] = 100
    seen = told((52, 42, 64, 72))
    assert len(Sharpener(grey, (30.0, 12.0))(seen, picture)) == 0
    found = Sharpener(grey, (30.0, 12.0), test=ForegroundTest(colourful=False))(seen, picture)
    np.testing.assert_allclose(found.box, [(50, 40, 62, 70)], atol=1)


@pytest.mark.parametrize(("height", "joined"), [(6, True), (2, False)])
def test_a_smaller_piece_belongs_to_its_object_if_it_is_a_tenth_of_it(
    sharpen: Sharpener, height: int, joined: bool
) -> None:
    """A head above a gap; a speck above a gap."""
    width = 12 if joined else 4
    picture = street((50, 54, 62, 70, RED), (50, 40, 50 + width, 40 + height, RED))
    picture[40 + height : 54] = STREET[40 + height : 54]
    top = sharpen(told((49, 40, 63, 70)), picture).box[0, 1]
    assert (top < 43) == joined
