"""One frame: gates, overlaps, the best assignment, and who counts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalor.boxes import assign, box_ious, clip_boxes
from scalor.errors import InputError
from scalor.evaluation.matching import Gate, dense_ids, iou_gate, pair_up, paper_gate, strict_gate

from .stories import frame, tracks_of, truth_of


@pytest.mark.parametrize(
    ("other", "iou"),
    [
        ((0, 0, 4, 4), 1.0),
        ((2, 0, 6, 4), 8 / 24),
        ((0, 0, 4, 2), 0.5),
        ((4, 0, 8, 4), 0.0),  # they touch
        ((10, 10, 12, 12), 0.0),
        ((1, 1, 1, 1), 0.0),  # an empty box
    ],
)
def test_iou_of_a_four_by_four_box_with(other: tuple[float, ...], iou: float) -> None:
    assert box_ious(np.array([[0.0, 0, 4, 4]]), np.array([other], dtype=float)).item() == pytest.approx(iou)


def test_two_empty_boxes_do_not_overlap() -> None:
    assert box_ious(np.zeros((1, 4)), np.zeros((1, 4))).item() == 0


@pytest.mark.parametrize(
    ("gate", "limit"), [(paper_gate(9.0), 18.0), (strict_gate(9.0), 4.5), (Gate("own", "distance", 3.0), 3.0)]
)
def test_a_distance_gate_holds_up_to_its_limit(gate: Gate, limit: float) -> None:
    cost = frame({0: (0, 0)}, {0: (limit, 0), 1: (limit + 0.01, 0)}).cost(gate)
    np.testing.assert_array_equal(cost, [[limit, np.inf]])


def test_a_distance_becomes_a_similarity_that_is_one_half_at_the_gate() -> None:
    pair = frame({0: (0, 0)}, {0: (0, 0), 1: (4.5, 0), 2: (9, 0), 3: (50, 0)})
    np.testing.assert_allclose(pair.similarity(strict_gate(9.0)), [[1, 0.5, 0, 0]])


def test_the_iou_gate_holds_from_one_half_on() -> None:
    gate, far = iou_gate(), np.zeros((1, 2))
    half, less = np.array([[0.0, 0, 4, 2]]), np.array([[0.0, 0, 4, 1.99]])
    whole = np.array([[0.0, 0, 4, 4]])
    assert gate.cost(whole, half, far, far).item() == 0.5
    assert gate.cost(whole, less, far, far).item() == np.inf
    assert gate.similarity(whole, less, far, far).item() == pytest.approx(1.99 / 4)


def test_the_assignment_takes_more_matches_before_nearer_ones() -> None:
    np.testing.assert_array_equal(assign(np.array([[1.0, 9.0], [2.0, np.inf]])), [1, 0])


def test_the_assignment_takes_the_least_total() -> None:
    np.testing.assert_array_equal(assign(np.array([[1.0, 2.0], [2.0, 9.0]])), [1, 0])


def test_the_assignment_leaves_out_what_no_gate_lets_in() -> None:
    np.testing.assert_array_equal(assign(np.array([[np.inf, 1.0], [np.inf, 2.0], [np.inf, np.inf]])), [1, -1, -1])


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0), (2, 3)])
def test_nothing_to_assign(shape: tuple[int, int]) -> None:
    np.testing.assert_array_equal(assign(np.full(shape, np.inf)), np.full(shape[0], -1))


@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(0, 6))
def test_an_assignment_is_one_to_one_inside_the_gate_and_leaves_no_free_pair(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    cost = np.where(rng.uniform(size=(n, m)) < 0.5, rng.uniform(size=(n, m)), np.inf)
    partner = assign(cost)
    rows = np.flatnonzero(partner >= 0)
    assert np.isfinite(cost[rows, partner[rows]]).all()
    assert len(np.unique(partner[rows])) == len(rows)
    free = np.delete(np.delete(cost, rows, 0), partner[rows], 1)
    assert not np.isfinite(free).any()


def test_identities_are_renumbered_over_the_whole_sequence() -> None:
    dense = dense_ids([np.array([70, 5]), np.array([], dtype=np.int64), np.array([9, 70])])
    assert [d.tolist() for d in dense] == [[2, 0], [], [1, 2]]
    assert dense_ids([]) == []


def test_boxes_are_clipped_to_the_view_and_centres_are_not() -> None:
    truth = truth_of(np.array([[[[1.0, 62.0]]]]))
    pair = pair_up(tracks_of(np.array([[[[-1.0, 62.0]]]])), truth, size=4.0)[0][0]
    np.testing.assert_array_equal(pair.true_box, [[0, 60, 3, 64]])
    np.testing.assert_array_equal(pair.pred_box, [[0, 60, 1, 64]])
    np.testing.assert_array_equal(pair.true_centre, [[1, 62]])
    np.testing.assert_array_equal(pair.pred_centre, [[-1, 62]])


def test_a_wide_view_clips_x_by_its_width_and_y_by_its_height() -> None:
    np.testing.assert_array_equal(clip_boxes(np.array([[-5.0, -5, 500, 500]]), (10, 20)), [[0, 0, 20, 10]])


def test_an_object_counts_from_a_visible_share_of_a_fifth_on() -> None:
    centre = np.full((1, 1, 4, 2), 30.0)
    truth = truth_of(
        centre,
        present=np.array([[[True, True, True, False]]]),
        visible=np.array([[[0.2, 0.19, 0.0, 1.0]]]),
    )
    nothing = tracks_of(np.zeros((1, 1, 0, 2)))
    pair = pair_up(nothing, truth, size=4.0)[0][0]
    assert pair.true_id.tolist() == [0, 1, 2]
    assert pair.ignored.tolist() == [False, True, True]
    plain = pair_up(nothing, truth, size=4.0, minimum_visible=0.0)[0][0]
    assert plain.true_id.tolist() == [0, 1, 2]
    assert not plain.ignored.any()


@pytest.mark.parametrize(
    ("x", "y", "presence", "counts"),
    [
        (30.0, 30.0, 0.51, True),
        (30.0, 30.0, 0.5, False),
        (-2.9, 30.0, 1.0, True),
        (-3.1, 30.0, 1.0, False),
        (30.0, 66.9, 1.0, True),
        (30.0, 67.1, 1.0, False),
        (67.1, 30.0, 1.0, False),
        (30.0, -3.1, 1.0, False),
    ],
)
def test_a_prediction_is_sure_and_near_the_view(x: float, y: float, presence: float, counts: bool) -> None:
    tracks = tracks_of(np.array([[[[x, y]]]]), presence=presence)
    pair = pair_up(tracks, truth_of(np.zeros((1, 1, 1, 2))), size=10.0)[0][0]
    assert len(pair.pred_id) == counts


def test_every_clip_and_frame_gets_its_own_rows() -> None:
    rng = np.random.default_rng(0)
    centre, present = rng.uniform(0, 64, (3, 4, 5, 2)), rng.uniform(size=(3, 4, 5)) < 0.6
    pairs = pair_up(tracks_of(centre, present), truth_of(centre, present), size=4.0)
    assert [len(clip) for clip in pairs] == [4, 4, 4]
    for clip in range(3):
        for t in range(4):
            pair = pairs[clip][t]
            assert pair.true_id.tolist() == pair.pred_id.tolist() == np.flatnonzero(present[clip, t]).tolist()
            np.testing.assert_array_equal(pair.true_centre, centre[clip, t, present[clip, t]])
            np.testing.assert_allclose(pair.pred_centre, pair.true_centre)


def test_tracks_that_do_not_belong_to_the_truth_are_refused() -> None:
    centre = np.full((2, 3, 1, 2), 30.0)
    truth, tracks = truth_of(centre), tracks_of(centre)
    with pytest.raises(InputError, match=r"tracks.clip runs from 1 to 2"):
        pair_up(replace(tracks, clip=tracks.clip + 1), truth, size=4.0)
    with pytest.raises(InputError, match=r"tracks.frame runs from 0 to 3"):
        pair_up(tracks_of(np.full((2, 4, 1, 2), 30.0)), truth, size=4.0)
    with pytest.raises(InputError, match=r"tracks.size is \(32, 64\)"):
        pair_up(replace(tracks, size=(32, 64)), truth, size=4.0)
    with pytest.raises(InputError, match="appears twice"):
        pair_up(replace(tracks, frame=np.zeros_like(tracks.frame)), truth, size=4.0)
