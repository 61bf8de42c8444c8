"""Crossings and doubtful places of tracks that were made to have them."""

from dataclasses import replace

import numpy as np
import pytest

from scalor.edits import crossings, doubtful_places
from scalor.errors import InputError
from tests.edits.drawn import FRAMES, mixed_ids, tracks_of, true_centres

SCENE = tracks_of(true_centres(), mixed_ids())


def test_the_crossing_of_the_drawn_scene() -> None:
    (found,) = crossings(SCENE)
    assert (found.a, found.b, found.frame) == (1, 2, 20)
    # Centres 120 - 6 t and 4 px apart are within one size, 12 px, for |120 - 6 t| <= 11.3.
    assert (found.first, found.last) == (19, 21)
    assert found.distance_px == pytest.approx(4)
    assert crossings(SCENE, after=20) == [found]
    assert crossings(SCENE, after=21) == []
    assert crossings(SCENE.select(SCENE.frame < 0)) == []
    assert crossings(SCENE, near=0.3) == []
    (wider,) = crossings(SCENE, near=2.0)
    assert (wider.first, wider.last) == (17, 23)


def test_two_meetings_are_two_crossings_and_a_short_parting_is_none() -> None:
    apart = np.full(60, 100.0)
    apart[[5, 6, 10, 40]] = 3.0  # away for three frames, then for thirty
    centres = np.stack([np.stack([apart, apart * 0], 1), np.zeros((60, 2))], axis=1)
    tracks = tracks_of(centres, np.tile([4, 9], (60, 1)))
    assert [(one.first, one.last, one.frame) for one in crossings(tracks)] == [(5, 10, 5), (40, 40, 40)]


def test_near_must_be_above_zero() -> None:
    for near in (0, -1, float("nan")):
        with pytest.raises(InputError, match="near is"):
            crossings(SCENE, near=near)


def kinds(tracks: object) -> list[tuple[str, int, int, int]]:
    return [(one.kind, one.id, one.first, one.last) for one in doubtful_places(tracks)]  # type: ignore[arg-type]


STEADY = tracks_of(true_centres(), np.tile([1, 2, 3], (FRAMES, 1)))


def test_steady_tracks_are_not_doubtful() -> None:
    assert kinds(STEADY) == []
    assert doubtful_places(STEADY.select(np.zeros(len(STEADY), bool))) == []


def test_ends_inside_the_picture_are_doubtful_and_those_at_its_border_are_not() -> None:
    middle = STEADY.select((STEADY.id != 3) | ((STEADY.frame >= 10) & (STEADY.frame < 30)))
    assert kinds(middle) == [("begins inside", 3, 10, 10), ("ends inside", 3, 29, 29)]
    gone = STEADY.select((STEADY.id != 1) | (STEADY.frame < 35))  # y is 20 of 120: away from the border
    assert kinds(gone) == [("ends inside", 1, 34, 34)]
    leaving = replace(gone, box=gone.box - [0, 12, 0, 12] * (gone.id == 1)[:, None])  # the upper edge is 2 px away
    assert kinds(leaving) == []


def test_jumps_of_place_and_size_are_doubtful() -> None:
    box = STEADY.box.copy()
    box[(STEADY.id == 3) & (STEADY.frame >= 25)] += 40
    assert kinds(replace(STEADY, box=box)) == [("jump", 3, 24, 25)]
    box = STEADY.box.copy()
    box[(STEADY.id == 2) & (STEADY.frame == 8)] += [-3, -3, 3, 3]
    assert kinds(replace(STEADY, box=box)) == [("size", 2, 7, 8), ("size", 2, 8, 9)]


def test_a_steady_fast_object_does_not_jump() -> None:
    fast = np.stack([20.0 + 25 * np.arange(20), np.full(20, 50.0)], 1)[:, None]
    assert kinds(tracks_of(fast, np.ones((20, 1), int), (100, 600))) == []
    fast[10:] += 150
    assert kinds(tracks_of(fast, np.ones((20, 1), int), (100, 900))) == [("jump", 1, 9, 10)]


def test_gaps_and_low_confidence_are_doubtful() -> None:
    holes = STEADY.select((STEADY.id != 2) | ~np.isin(STEADY.frame, [8, 9]))
    assert kinds(holes) == [("gap", 2, 7, 10)]
    presence = np.where((STEADY.id == 1) & np.isin(STEADY.frame, [3, 4, 9]), 0.3, 0.9)
    unsure = replace(STEADY, confidence=presence)
    assert kinds(unsure) == [("low confidence", 1, 3, 4), ("low confidence", 1, 9, 9)]
    assert doubtful_places(unsure, confidence=0.2) == []
    assert "0.30" in doubtful_places(unsure)[0].sentence


def test_a_stride_is_no_gap() -> None:
    thinned = STEADY.select(STEADY.frame % 4 == 0)
    assert kinds(thinned) == []
