"""Boxes against a foreground that is drawn, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from scalor.health.measures import Covering, Lives, clean, shrunken

from .stories import FPS, HEIGHT, WIDTH, tracks_of

VIEW = (60, 80)


def mask(*boxes: tuple[int, int, int, int]) -> np.ndarray:
    drawn = np.zeros(VIEW, bool)
    for x0, y0, x1, y1 in boxes:
        drawn[y0:y1, x0:x1] = True
    return drawn


def counted(foreground: np.ndarray, *boxes: tuple[float, ...]) -> Covering:
    covering = Covering(VIEW, (6, 6))
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


def test_a_square_is_true_from_half_of_its_pixels_on() -> None:
    pixels = np.zeros((5, 6), bool)
    pixels[0, :2] = pixels[2, 2] = True
    assert shrunken(pixels, 2).tolist() == [[True, False, False], [False, False, False]]
    assert shrunken(pixels, 1) is pixels


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_the_scale_of_the_mask_does_not_matter(factor: int) -> None:
    fine = mask((8, 8, 24, 32), (40, 8, 56, 32))
    covering = Covering(VIEW, None)
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


Place = tuple[float, float]


def lived(paths: dict[int, dict[int, Place]], frames: int) -> Lives:
    """By id and frame, where boxes of 10 x 10 pixels have their middles."""
    lives = Lives((0, 0, WIDTH, HEIGHT), FPS)
    for number in range(frames):
        here = {id: path[number] for id, path in paths.items() if number in path}
        lives.step(number, tracks_of(number, [(id, x - 5, y - 5, x + 5, y + 5) for id, (x, y) in here.items()]))
    return lives


def line(start: Place, step: Place, frames: range) -> dict[int, Place]:
    return {number: (start[0] + step[0] * n, start[1] + step[1] * n) for n, number in enumerate(frames)}


def test_an_id_enters_at_the_border_or_at_the_start_and_appears_in_the_middle_later() -> None:
    middle, border = (100.0, 60.0), (8.0, 60.0)
    lives = lived(
        {
            1: line(middle, (0, 0), range(60)),
            2: line(border, (0, 0), range(30, 60)),
            3: line((60, 60), (0, 0), range(30, 60)),
        },
        60,
    )
    assert (lives.ids, lives.entered, lives.appeared, lives.replaced) == (3, 2, 1, 0)


def test_an_id_that_begins_where_another_has_just_gone_replaces_it() -> None:
    lives = lived({1: line((8, 60), (2, 0), range(20)), 2: line((48, 60), (2, 0), range(20, 40))}, 40)
    assert (lives.entered, lives.appeared, lives.replaced) == (1, 0, 1)


def test_an_id_beside_one_that_is_still_there_replaces_nothing() -> None:
    lives = lived({1: line((100, 60), (0, 0), range(40)), 2: line((104, 60), (0, 0), range(20, 40))}, 40)
    assert (lives.appeared, lives.replaced) == (1, 0)


def test_steady_motion_however_fast_jumps_once_at_most() -> None:
    assert lived({1: line((10, 60), (3, 0), range(60))}, 60).jumps == 0
    assert lived({1: line((10, 60), (15, 0), range(12))}, 12).jumps <= 2  # until its speed is known


def test_two_ids_that_change_places_jump_both() -> None:
    left, right = line((50, 60), (0, 0), range(20)), line((150, 60), (0, 0), range(20))
    swapped = {1: {n: (left if n < 10 else right)[n] for n in range(20)}}
    swapped[2] = {n: (right if n < 10 else left)[n] for n in range(20)}
    assert lived(swapped, 20).jumps == 2


def test_a_gap_of_a_few_frames_ends_no_id_and_a_long_one_does() -> None:
    path = line((100, 60), (0, 0), range(90))
    short = {n: place for n, place in path.items() if not 30 <= n < 40}
    long = {n: place for n, place in path.items() if not 30 <= n < 60}
    assert lived({1: short}, 90).ids == 1
    assert lived({1: long}, 90).ids == 2


def test_the_median_life_counts_those_still_alive() -> None:
    lives = lived({n: line((30 * n, 60), (0, 0), range(10 * n)) for n in (1, 3, 5)}, 50)
    assert lives.median_life() == pytest.approx(3.0, rel=0.03)


def test_crossing_is_the_view_by_the_median_speed() -> None:
    lives = lived({1: line((10, 60), (2, 0), range(80))}, 80)
    assert lives.crossing() == pytest.approx(np.sqrt(WIDTH * HEIGHT) / (2 * FPS), rel=0.03)
    assert lived({1: line((10, 60), (0, 0), range(5))}, 5).crossing() is None


def test_memory_does_not_grow_with_ids_that_have_ended() -> None:
    lives = Lives((0, 0, WIDTH, HEIGHT), FPS)
    for number in range(500):
        place = 10.0 + 23 * (number % 8)
        lives.step(number, tracks_of(number, [(number, place, 40, place + 5, 45)]))
    assert lives.ids == 500
    assert len(lives.alive) <= 2 * FPS + 1


def test_boxes_of_whole_numbers_are_as_good_as_others() -> None:
    whole, parts = Lives((0, 0, WIDTH, HEIGHT), FPS), Lives((0, 0, WIDTH, HEIGHT), FPS)
    for number in range(5):
        tracks = tracks_of(number, [(1, 50, 40, 60, 55)])
        parts.step(number, tracks)
        whole.step(number, replace(tracks, box=tracks.box.astype(int)))
    assert vars(whole)["alive"] == vars(parts)["alive"]
