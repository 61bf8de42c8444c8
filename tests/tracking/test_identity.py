"""Who was who stays so: past each other, behind a post, and when a model doubles an object."""

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.tracking.identity import (
    LAG,
    MAX_PRESENCE_ASKED,
    MIN_MEAN_PRESENCE,
    MIN_PRESENCE,
    PREDICTED_PRESENCE,
    PROOF,
    Identities,
    believable,
    merge_duplicates,
    shown_objects,
)
from scalor.tracks import Tracks

FRAME = (300, 500)
WALKER = (80.0, 30.0)
LATE = 20
"""A frame well after the first ones."""

Seen = tuple[int, float, float]
"""The model's id, x and y of the centre."""


def tracks(*seen: Seen, size: tuple[float, float] = WALKER, masks: bool = False) -> Tracks:
    """What the model saw in a frame; a mask is the row of pixels through the centre."""
    rows = sorted(seen)
    number = np.array([row[0] for row in rows], int)
    centre = np.array([row[1:] for row in rows], float).reshape(-1, 2)
    half = np.array(size[::-1]) / 2
    box = np.concatenate([centre - half, centre + half], 1)
    pixels = np.zeros((len(rows), *FRAME), bool) if masks else None
    for mask, (x0, y0, x1, y1) in zip([] if pixels is None else pixels, box, strict=masks):
        row = int((y0 + y1) / 2)
        mask[row : row + 1, max(0, int(x0)) : int(x1)] = True
    zero = np.zeros(len(rows), int)
    return Tracks(zero, zero, number, box, zero + 0.9, zero == 1, FRAME, pixels)


def keeper(size: tuple[float, float] = WALKER) -> Identities:
    return Identities(size, (0, 0, FRAME[1], FRAME[0]))


def undoubled(seen: Tracks) -> Tracks:
    return merge_duplicates(seen, np.tile(np.array(WALKER[::-1]), (len(seen), 1)))


def decided(identities: Identities, video: Iterable[Tracks]) -> list[Tracks]:
    """All frames of a video, each as it is once it is decided."""
    return [one for seen in video for one in identities.step(seen)] + identities.finish()


def told_of(video: Sequence[Sequence[Seen]], masks: bool = False) -> list[Tracks]:
    return decided(keeper(), [tracks(*seen, masks=masks) for seen in video])


def id_at(told: Tracks, x: float, y: float) -> int:
    """Of the object nearest to a place, which must be near."""
    away = np.abs(told.centre - (x, y)).max(1)
    assert away.min() < 10, (told.centre, x, y)
    return int(told.id[away.argmin()])


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_two_that_cross_keep_their_ids(scale: float) -> None:
    """The model sees one of them while they overlap, and mixes up its own ids."""
    size, video, places = (80 * scale, 30 * scale), [], []
    for t in range(81):
        left, right = (100 + 3 * t) * scale, (340 - 3 * t) * scale
        together = abs(left - right) < 20 * scale
        numbers = (0, 1) if left < right else (1, 0)
        seen = [(numbers[0], left, 100 * scale), (numbers[1], right, 110 * scale)]
        video.append(tracks(*seen[: 1 if together else 2], size=size))
        places.append(None if together else (left, right))
    ids = []
    for told, place in zip(decided(Identities(size, (0, 0, 5000, 3000)), video), places, strict=True):
        if place is not None:
            ids.append(told.id[np.abs(told.centre[:, :1] - np.array(place)).argmin(0)].tolist())
    assert ids == [ids[0]] * len(ids)
    assert ids[0][0] != ids[0][1]


def test_a_double_goes_and_both_ids_live_on() -> None:
    """The older of two leaps onto the younger as they pass and stays; where it was, the model finds a new object."""
    video, places = [], []
    for t in range(60):
        one, other = (100 + 3 * t, 100), (250 - 3 * t, 130)
        doubled = [(0, other[0] + 2, other[1]), (1, *other), (2, *one)]
        seen = [(0, *one), (1, *other)] if t < 25 else doubled
        video.append(undoubled(tracks(*seen)))
        places.append((one, other))
    told = list(zip(decided(keeper(), video), places, strict=True))
    before = [id_at(told[10][0], *place) for place in told[10][1]]
    for now, (one, other) in told[35:]:
        assert [id_at(now, *one), id_at(now, *other)] == before
        assert len(now) == 2


def test_one_that_is_hidden_keeps_its_id_and_its_boxes_are_interpolated() -> None:
    told = told_of([[(0 if t < 30 else 1, 50 + 4 * t, 100)] if not 20 <= t < 30 else [] for t in range(50)])
    assert [now.id.tolist() for now in told] == [[1]] * 50
    np.testing.assert_allclose([now.centre[0, 0] for now in told], 50 + 4 * np.arange(50), atol=1e-6)
    assert all((now.confidence == PREDICTED_PRESENCE).all() for now in told[20:30])
    assert all((now.confidence == 0.9).all() for now in told[:20] + told[30:])


def test_an_object_that_is_gone_is_not_reported_any_more() -> None:
    told = told_of([[(0, 100.0 + t, 100.0)] if t < 30 else [] for t in range(60)])
    assert [len(now) for now in told] == [1] * 30 + [0] * 30


def test_a_frame_is_decided_when_so_many_have_followed() -> None:
    identities = keeper()
    waited = [len(identities.step(tracks((0, 100.0, 100.0)))) for _ in range(LAG + 5)]
    assert waited == [0] * LAG + [1] * 5
    assert len(identities.finish()) == LAG


def test_a_gap_longer_than_the_wait_is_not_filled() -> None:
    video = [tracks((0, 100.0, 100.0)) if not 10 <= t < 18 else tracks() for t in range(40)]
    told = decided(Identities(WALKER, (0, 0, FRAME[1], FRAME[0]), lag=5), video)
    assert [len(now) for now in told] == [1] * 10 + [0] * 3 + [1] * 27
    assert {int(number) for now in told for number in now.id} == {1}


@pytest.mark.parametrize(("any_direction", "objects"), [(True, 1), (False, 2)])
def test_a_long_thing_that_turns_at_once_keeps_its_id_where_things_lie_in_any_direction(
    any_direction: bool, objects: int
) -> None:
    video = [tracks((0, 200.0, 150.0), size=(8.0, 60.0) if t < 20 else (60.0, 8.0)) for t in range(40)]
    identities = Identities((40.0, 40.0), (0, 0, FRAME[1], FRAME[0]), any_direction=any_direction)
    assert len({int(number) for now in decided(identities, video) for number in now.id}) == objects


def test_a_track_that_the_model_doubts_is_not_reported() -> None:
    doubted = [
        replace(tracks((0, 100.0 + t, 100.0)), confidence=np.array([MIN_MEAN_PRESENCE - 0.05])) for t in range(30)
    ]
    for likely, objects in ((MIN_MEAN_PRESENCE, 0), (0.0, 1)):
        identities = Identities(WALKER, (0, 0, FRAME[1], FRAME[0]), likely=likely)
        assert [len(now) for now in decided(identities, doubted)] == [objects] * 30


@pytest.mark.parametrize(
    ("size", "presence", "any_direction", "certainty", "believed"),
    [
        (WALKER, MIN_PRESENCE, False, 1.0, True),
        (WALKER, MIN_PRESENCE - 0.01, False, 1.0, False),
        ((20.0, 70.0), 0.75, False, 1.0, False),  # tape that flutters before walkers
        ((20.0, 70.0), MAX_PRESENCE_ASKED, False, 1.0, True),  # sure enough, whatever the shape
        ((20.0, 70.0), 0.5, False, 0.0, True),  # nobody knows the typical shape
        (WALKER[::-1], 0.5, True, 1.0, True),  # a fish that has turned
        (WALKER[::-1], 0.5, False, 1.0, False),
    ],
)
def test_the_more_unlike_the_typical_shape_the_surer_the_model_must_be(
    size: tuple[float, float], presence: float, any_direction: bool, certainty: float, believed: bool
) -> None:
    seen = replace(tracks((0, 200.0, 150.0), size=size), confidence=np.array([presence]))
    assert believable(seen, np.array([WALKER[::-1]]), any_direction, certainty).tolist() == [believed]


def test_an_object_is_discovered_once_where_it_is_first_told_of() -> None:
    video = [[(0, 100.0, 100.0)] if t < LATE + 20 else [] for t in range(LATE + 40)]
    for t in range(LATE, LATE + 40):
        video[t] = [*video[t], (1, 300.0, 100.0)] if t != LATE + 10 else video[t]
    told = told_of(video)
    found = [(t, number) for t, now in enumerate(told) for number in now.id[now.discovered].tolist()]
    assert found == [(0, 1), (LATE, 2)]


def test_a_blip_is_never_told_of() -> None:
    video = [[(0, 100.0, 100.0)] for _ in range(LATE + 30)]
    for t in range(LATE, LATE + PROOF - 1):
        video[t] = [(0, 100.0, 100.0), (7, 300.0, 200.0)]
    assert all(now.id.tolist() == [1] for now in told_of(video))


@pytest.mark.parametrize(("fps", "proof"), [(10, PROOF), (25, 8), (1000, LAG // 2)])
def test_an_object_must_be_there_for_a_while_however_many_frames_that_are(fps: float, proof: int) -> None:
    for length, objects in ((proof - 1, 1), (proof, 2)):
        video = [[(0, 100.0, 100.0), *([(1, 300.0, 200.0)] if 15 <= t < 15 + length else [])] for t in range(40)]
        identities = Identities(WALKER, (0, 0, FRAME[1], FRAME[0]), fps=fps)
        told = decided(identities, [tracks(*seen) for seen in video])
        assert len({int(number) for now in told for number in now.id}) == objects


@pytest.mark.parametrize("masks", [False, True])
def test_nothing_in_nothing_out(masks: bool) -> None:
    for now in told_of([[]] * 5, masks=masks):
        assert len(now) == 0
        assert (None if now.masks is None else now.masks.shape) == ((0, *FRAME) if masks else None)


def test_masks_stay_with_their_objects_and_a_double_gives_its_own() -> None:
    hidden = range(10, 13)
    video = [
        [*([(0, 100.0 + 2 * t, 60.0)] if t not in hidden else []), (1, 300, 200), (2, 303, 203)] for t in range(30)
    ]
    told = decided(keeper(), [undoubled(tracks(*seen, masks=True)) for seen in video])
    for t, now in enumerate(told):
        assert now.masks is not None
        assert len(now) == 2
        for number, mask, y in zip(now.id, now.masks, now.centre[:, 1], strict=True):
            rows = np.flatnonzero(mask.any(1)).tolist()
            assert rows == ([200, 203] if y > 150 else [] if t in hidden else [60]), number


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_of_doubles_the_oldest_gives_the_id_and_the_most_usual_the_box(order: tuple[int, ...]) -> None:
    """One is on a part of a walker, one on a walker, one on more than a walker."""
    height, width = WALKER
    sizes = [(0.5 * height, 0.7 * width), WALKER, (1.3 * height, 1.2 * width)]
    middle = np.array([100.0, 100.0])
    half = [np.array(sizes[place][::-1]) / 2 for place in order]
    box = np.array([[*(middle - side), *(middle + side)] for side in half])
    seen = replace(tracks((4, 0, 0), (6, 0, 0), (9, 0, 0)), box=box)
    kept = undoubled(seen)
    assert kept.id.tolist() == [4]
    np.testing.assert_allclose(kept.box, box[[order.index(1)]])


def test_a_double_of_a_double_is_an_object_of_its_own() -> None:
    box = np.array([[0, 0, 10, 10], [4, 0, 14, 10], [8, 0, 18, 10], [2, 2, 5, 5], [50, 50, 50, 50]], float)
    assert shown_objects(box).tolist() == [0, 0, 2, 0, 4]


def test_a_region_is_told_of_in_pixels_of_the_video() -> None:
    video = [[(0, 100 + 4 * t, 100), (1, 30, 150)][: 2 if t < 20 else 1] for t in range(40)]
    moved = [[(number, x + 90, y + 40) for number, x, y in seen] for seen in video]
    whole, part = Identities(WALKER, (0, 0, 200, 200)), Identities(WALKER, (90, 40, 290, 240))
    here_and_there = [
        decided(one, [tracks(*seen) for seen in all_seen]) for one, all_seen in ((whole, video), (part, moved))
    ]
    for here, there in zip(*here_and_there, strict=True):
        np.testing.assert_allclose(here.box, there.box - np.array([90, 40, 90, 40]))
        assert here.id.tolist() == there.id.tolist()


places = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 500), st.integers(0, 300)), max_size=6)


@settings(deadline=None, max_examples=60)
@given(st.lists(places.map(lambda seen: list({row[0]: row for row in seen}.values())), min_size=1, max_size=12))
def test_ids_are_unique_in_a_frame_and_in_order(video: list[list[Seen]]) -> None:
    for t, now in enumerate(told_of(video)):
        assert now.id.tolist() == sorted(set(now.id.tolist()))
        assert (now.frame == t).all()


def test_memory_does_not_grow() -> None:
    """A hundred objects pass by, one after the other."""
    identities, held = keeper(), []
    for t in range(3000):
        number, phase = divmod(t, 30)
        identities.step(tracks((number, 20.0 + 15 * phase, 50 + 50 * (number % 5))))
        held.append(len(pickle.dumps(identities)))
    assert identities.linker.begun >= 100
    assert max(held[1500:]) < 1.1 * max(held[:300])


@pytest.mark.parametrize(("left", "shown"), [(32.5, [0, 0]), (33.5, [0, 1])])
def test_a_box_that_lies_in_another_by_seven_tenths_shows_the_same_object(left: float, shown: list[int]) -> None:
    box = np.array([[0.0, 0.0, 40.0, 40.0], [left, 5.0, left + 10, 15.0]])
    assert shown_objects(box).tolist() == shown


def test_interpolated_boxes_have_the_confidence_that_the_docs_promise() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "own_video.md").read_text()
    assert f"confidence of {PREDICTED_PRESENCE} and no mask" in " ".join(page.split())
