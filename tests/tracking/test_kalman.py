"""The Kalman filter is exact, assignments respect their gates, and a number is never given twice."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.tracking.kalman import EARLY, GATE, Detections, Linker, LinkerSettings, predict, update

SIZE = 10.0
FRAME = (100, 100)
SETTINGS = LinkerSettings(patience=2, reported=1)
BLIND = (0.0, 0.0, 0.0)


def detections(*centres: tuple[float, float], colour: tuple[float, float, float] = BLIND) -> Detections:
    middle = np.array(centres, dtype=float).reshape(-1, 2)
    box = np.concatenate([middle - SIZE / 2, middle + SIZE / 2], 1)
    return Detections(box, np.tile(np.array(colour, float), (len(box), 1)))


def linker(chosen: LinkerSettings = SETTINGS) -> Linker:
    return Linker((SIZE, SIZE), FRAME, chosen)


def joint(prior: np.ndarray, shove: float, noise: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of the last state given all sightings, as a matrix, and its covariance, by conditioning one Gaussian.

    The unknowns are the first state and every shove; states and sightings are linear in them.
    """
    step, push = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([0.5, 1.0])
    unknown = np.zeros((2 + steps, 2 + steps))
    unknown[:2, :2] = prior
    unknown[2:, 2:] = shove**2 * np.eye(steps)
    state, sightings = np.eye(2, 2 + steps), []
    for t in range(steps):
        state = step @ state
        state[:, 2 + t] += push
        sightings.append(state[0].copy())
    look = np.array(sightings)
    cross = state @ unknown @ look.T
    gain = cross @ np.linalg.inv(look @ unknown @ look.T + noise**2 * np.eye(steps))
    return gain, state @ unknown @ state.T - gain @ cross.T


def test_the_filter_is_the_exact_posterior() -> None:
    steps, shove, noise = 5, 0.3, 0.7
    prior = np.array([[2.0, 0.4], [0.4, 1.5]])
    rng = np.random.default_rng(1)
    seen = rng.normal(0, 3, (steps, 2))  # x and y
    motion, spread = np.zeros((1, 2, 2)), prior[None]
    for sighting in seen:
        motion, spread = update(*predict(motion, spread, shove), sighting[None], noise)
    gain, covariance = joint(prior, shove, noise, steps)
    np.testing.assert_allclose(motion[0].T, gain @ seen, rtol=1e-9)
    np.testing.assert_allclose(spread[0], covariance, rtol=1e-9)


def test_constant_velocity_is_learnt_and_gone_on_with() -> None:
    follow = linker()
    for t in range(8):
        follow.step(detections((10 + 3 * t, 50 - 2 * t)))
    np.testing.assert_allclose(follow.followed.motion[0, :, 1], (3, -2), atol=0.02)
    unseen = follow.step(detections())
    np.testing.assert_allclose(unseen.centre, [[34, 34]], atol=0.1)
    assert unseen.missed.tolist() == [1]


def test_a_track_ends_after_a_while_and_its_number_with_it() -> None:
    follow = linker()
    follow.step(detections((50, 50)))
    for missed in range(1, SETTINGS.patience + 1):
        assert follow.step(detections()).missed.tolist() == [missed]
    assert len(follow.step(detections()).id) == 0
    assert follow.step(detections((50, 50))).id.tolist() == [1]


def test_a_track_is_told_of_when_proven_and_for_a_while_after_its_last_detection() -> None:
    follow = Linker((SIZE, SIZE), FRAME, LinkerSettings(patience=3, reported=1, proof=2))
    for _ in range(2 * EARLY):
        follow.step(detections((20, 50)))
    told = []
    for found in ([(20, 50), (80, 50)], [(20, 50), (80, 50)], [(80, 50)], [(80, 50)]):
        follow.step(detections(*found))
        told.append(follow.reported().id.tolist())
    assert told == [[0], [0, 1], [0, 1], [1]]


def test_early_in_a_video_less_is_asked_for() -> None:
    chosen = LinkerSettings(patience=3, reported=1, proof=3)
    for begin, asked in ((0, 1), (EARLY, 2), (3 * EARLY, 3)):
        follow, needed = Linker((SIZE, SIZE), FRAME, chosen), 0
        for _ in range(begin):
            follow.step(detections())
        while not len(follow.reported().id):
            follow.step(detections((20, 50)))
            needed += 1
        assert needed == asked


def test_the_boxes_expected_next_are_where_the_motion_leads() -> None:
    follow = linker()
    for t in range(8):
        follow.step(detections((10 + 3 * t, 50)))
    np.testing.assert_allclose(follow.expected(), [(29, 45, 39, 55)], atol=0.1)
    assert follow.followed.missed.tolist() == [0]


def test_a_track_that_is_predicted_out_of_view_ends_at_once() -> None:
    follow = linker()
    for x in (90, 94, 98):
        follow.step(detections((x, 50)))
    assert len(follow.step(detections((50, 50))).id) == 1


@pytest.mark.parametrize(("away", "same"), [(0.9 * GATE, True), (1.1 * GATE, False)])
def test_a_detection_beyond_the_gate_is_another_object(away: float, same: bool) -> None:
    follow = linker()
    follow.step(detections((50, 50)))
    now = follow.step(detections((50 + away * SIZE, 50)))
    assert now.id[now.missed == 0].tolist() == ([0] if same else [1])


@pytest.mark.parametrize(("unlike", "same"), [(0.18, True), (0.22, False)])
def test_a_detection_of_another_colour_is_another_object(unlike: float, same: bool) -> None:
    follow = linker()
    follow.step(detections((50, 50), colour=(1, 0, 0)))
    now = follow.step(detections((51, 50), colour=(1, unlike, 0)))
    assert now.id[now.missed == 0].tolist() == ([0] if same else [1])


def test_the_assignment_is_the_best_of_all_together() -> None:
    """Each to its nearest would leave one alone."""
    follow = linker()
    follow.step(detections((50, 50), (56, 50)))
    now = follow.step(detections((55, 50), (64, 50)))
    assert now.id.tolist() == [0, 1]
    assert now.missed.tolist() == [0, 0]
    assert now.centre[0, 0] < now.centre[1, 0]


places = st.tuples(st.integers(0, 100), st.integers(0, 100))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.sampled_from([20, 50, 80]), unique=True), min_size=4, max_size=20), st.integers(1, 3))
def test_a_track_is_new_when_it_is_first_told_of(video: list[list[int]], proof: int) -> None:
    """Three that come and go, each at its place."""
    follow = linker(LinkerSettings(patience=2, reported=1, proof=proof))
    told_before: set[int] = set()
    for found in video:
        follow.step(detections(*((x, 50) for x in found)))
        told = follow.reported()
        assert set(told.id[told.new].tolist()) == set(told.id.tolist()) - told_before
        told_before |= set(told.id.tolist())


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(places, max_size=6), min_size=1, max_size=8))
def test_numbers_are_never_reused_and_a_detection_has_one(video: list[list[tuple[int, int]]]) -> None:
    follow, given_out = linker(), set[int]()
    gone: set[int] = set()
    for found in video:
        now = follow.step(detections(*found))
        ids = now.id.tolist()
        assert ids == sorted(set(ids))
        assert not gone & set(ids)
        assert (now.missed == 0).sum() == len(found)  # every detection has a track, and no two have the same
        given_out |= set(ids)
        gone = given_out - set(ids)


def test_where_sizes_are_compared_a_track_does_not_go_on_with_a_thing_of_another_size() -> None:
    box = np.array([[40.0, 40.0, 60.0, 60.0]])
    flat = np.array([[40.0, 47.0, 60.0, 53.0]])
    for gate, ids in ((math.inf, [0]), (1.0, [0, 1])):
        follow = linker(replace(SETTINGS, size_gate=gate))
        follow.step(Detections(box, np.zeros((1, 3))))
        assert follow.step(Detections(flat, np.zeros((1, 3)))).id.tolist() == ids


def test_of_two_detections_at_one_distance_the_one_of_the_same_size_is_taken() -> None:
    follow = linker(replace(SETTINGS, size_gate=2.0))
    follow.step(Detections(np.array([[40.0, 40.0, 60.0, 60.0]]), np.zeros((1, 3))))
    both = np.array([[40.0, 45.0, 60.0, 55.0], [40.0, 40.0, 60.0, 60.0]])
    assert follow.step(Detections(both, np.zeros((2, 3)))).detection.tolist() == [1, 0]


def test_of_two_tracks_at_one_distance_the_one_that_was_seen_lately_goes_on() -> None:
    follow = linker(replace(SETTINGS, missed_cost=0.05))
    follow.step(detections((40, 50), (54, 50)))
    follow.step(detections((54, 50)))
    assert follow.step(detections((46.9, 50))).detection.tolist() == [-1, 0]


def test_a_detection_farther_than_an_object_is_another_one() -> None:
    follow = linker()
    follow.step(detections((40, 50)))
    assert follow.step(detections((49, 50))).id.tolist() == [0]
    follow = linker()
    follow.step(detections((40, 50)))
    assert follow.step(detections((55, 50))).id.tolist() == [0, 1]


@pytest.mark.parametrize(("first", "detections_asked"), [(0, 1), (6, 2), (50, 4)])
def test_the_later_an_object_appears_the_more_detections_are_asked_for(first: int, detections_asked: int) -> None:
    """One in the first frames of a video, up to the whole proof after twenty."""
    follow = linker(LinkerSettings(patience=2, reported=1, proof=4))
    for _ in range(first):
        follow.step(detections())
    reported = []
    for _ in range(6):
        follow.step(detections((50, 50)))
        reported.append(len(follow.reported().id))
    assert reported.index(1) == detections_asked - 1
