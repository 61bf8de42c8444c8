"""Where ids begin and end, and how they move, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from scalor.health.lifetimes import Lifetimes

from .stories import FPS, HEIGHT, WIDTH, tracks_of

Place = tuple[float, float]


def lived(paths: dict[int, dict[int, Place]], frames: int) -> Lifetimes:
    """By id and frame, where boxes of 10 x 10 pixels have their middles."""
    lives = Lifetimes((0, 0, WIDTH, HEIGHT), FPS)
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
    lives = Lifetimes((0, 0, WIDTH, HEIGHT), FPS)
    for number in range(500):
        place = 10.0 + 23 * (number % 8)
        lives.step(number, tracks_of(number, [(number, place, 40, place + 5, 45)]))
    assert lives.ids == 500
    assert len(lives.alive) <= 2 * FPS + 1


def test_boxes_of_whole_numbers_are_as_good_as_others() -> None:
    whole, parts = Lifetimes((0, 0, WIDTH, HEIGHT), FPS), Lifetimes((0, 0, WIDTH, HEIGHT), FPS)
    for number in range(5):
        tracks = tracks_of(number, [(1, 50, 40, 60, 55)])
        parts.step(number, tracks)
        whole.step(number, replace(tracks, box=tracks.box.astype(int)))
    assert vars(whole)["alive"] == vars(parts)["alive"]
