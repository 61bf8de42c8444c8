"""CLEAR-MOT and identity measures: stories with known counts, laws, and the same counts as py-motmetrics."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import motmetrics
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.evaluation.hota import HotaCounts, hota_counts
from scalor.evaluation.matching import FramePair, Gate, iou_gate, paper_gate
from scalor.evaluation.mota import (
    BirthCounts,
    ClearCounts,
    CountErrors,
    IdentityCounts,
    birth_counts,
    clear_counts,
    count_errors,
    identity_counts,
    match_sequence,
)

from .stories import frame, noisy_clip, tracks_of

NEAR = Gate("near", "distance", 3.0)
A, B, C = (10.0, 10.0), (30.0, 30.0), (50.0, 50.0)


def clear(*frames: FramePair, gate: Gate = NEAR) -> ClearCounts:
    return clear_counts(match_sequence(frames, gate), gate)


def identity(*frames: FramePair, gate: Gate = NEAR) -> IdentityCounts:
    return identity_counts(match_sequence(frames, gate))


def right(x: float, place: tuple[float, float] = A) -> tuple[float, float]:
    return place[0] + x, place[1]


@pytest.mark.parametrize("last", [1, 2])
def test_of_two_objects_that_had_a_prediction_the_last_one_keeps_it(last: int) -> None:
    story = [frame({3 - last: A}, {7: A}), frame({last: B}, {7: B}), frame({1: right(1, C), 2: right(2, C)}, {7: C})]
    match = match_sequence(story, NEAR)[2]
    assert match.pair.true_id[match.partner >= 0].tolist() == [last]


def test_predictions_without_objects_are_false_positives() -> None:
    counts = clear(frame({}, {1: A, 2: B}))
    assert counts == ClearCounts(predictions=2, false_positives=2)
    assert np.isnan([counts.mota, counts.recall, counts.motp]).all()
    assert counts.precision == 0


def test_objects_without_predictions_are_misses() -> None:
    counts = clear(frame({1: A, 2: B}, {}))
    assert counts == ClearCounts(objects=2, misses=2, identities=2, mostly_lost=2)
    assert (counts.mota, counts.recall) == (0, 0)
    assert np.isnan(counts.precision)


def test_nothing_at_all_has_no_ratios() -> None:
    for counts in (clear(), clear(frame({}, {}))):
        assert counts == ClearCounts()
        assert np.isnan([counts.mota, counts.motp, counts.precision, counts.recall]).all()
    assert np.isnan(identity().idf1)


def test_matches_in_the_gate() -> None:
    counts = clear(frame({1: A, 2: B}, {8: right(1), 9: right(2, B)}))
    assert (counts.matches, counts.misses, counts.false_positives, counts.mota) == (2, 0, 0, 1)
    assert counts.motp == pytest.approx(1.5)


def test_motp_of_an_iou_gate_is_the_mean_overlap() -> None:
    counts = clear(frame({1: A, 2: B}, {8: A, 9: right(1, B)}), gate=iou_gate())
    assert counts.motp == pytest.approx((1 + 12 / 20) / 2)


def test_a_prediction_just_outside_the_gate_is_both_a_miss_and_a_false_positive() -> None:
    counts = clear(frame({1: A}, {9: right(3.01)}))
    assert (counts.misses, counts.false_positives, counts.mota) == (1, 1, -1)


def test_another_prediction_than_before_is_a_switch() -> None:
    counts = clear(frame({1: A}, {7: A}), frame({1: A}, {8: A}), frame({1: A}, {8: A}))
    assert (counts.matches, counts.switches, counts.fragmentations) == (3, 1, 0)
    assert counts.mota == pytest.approx(1 - 1 / 3)


def test_crossed_identities_are_two_switches() -> None:
    assert clear(frame({1: A, 2: B}, {7: A, 8: B}), frame({1: A, 2: B}, {7: B, 8: A})).switches == 2


def test_a_prediction_is_kept_while_in_the_gate_though_another_is_nearer() -> None:
    counts = clear(frame({1: A}, {7: A}), frame({1: A}, {7: right(2), 8: A}))
    assert (counts.switches, counts.false_positives) == (0, 1)
    assert counts.closeness == pytest.approx(2)


def test_an_earlier_prediction_is_remembered_over_a_gap() -> None:
    missed = clear(frame({1: A}, {7: A}), frame({1: A}, {}), frame({1: A}, {7: right(2), 8: A}))
    assert (missed.switches, missed.misses, missed.fragmentations) == (0, 1, 1)
    absent = clear(frame({1: A}, {7: A}), frame({}, {}), frame({1: A}, {8: A}))
    assert (absent.switches, absent.fragmentations) == (1, 0)


def test_of_two_objects_that_had_one_prediction_the_later_keeps_it() -> None:
    middle = right(1)
    for one, two in ((1, 2), (2, 1)):
        counts = clear(
            frame({one: A}, {7: A}),
            frame({two: right(2)}, {7: middle}),
            frame({one: A, two: right(2)}, {7: right(0.1), 8: right(2)}),
        )
        assert (counts.switches, counts.matches) == (1, 4)
        assert counts.closeness == pytest.approx(0 + 1 + (1.9 + 2))  # object one has to take prediction 8


def test_a_fragmentation_needs_the_object_to_be_found_again() -> None:
    seen, missed = frame({1: A}, {7: A}), frame({1: A}, {})
    assert clear(missed, seen, seen, missed).fragmentations == 0
    assert clear(missed, seen, missed, missed, seen, missed, seen).fragmentations == 2


@pytest.mark.parametrize(("found", "tracked", "lost"), [(10, 1, 0), (8, 1, 0), (7, 0, 0), (2, 0, 0), (1, 0, 1)])
def test_mostly_tracked_and_mostly_lost_of_ten_frames(found: int, tracked: int, lost: int) -> None:
    counts = clear(*[frame({1: A}, {7: A} if t < found else {}) for t in range(10)])
    assert (counts.identities, counts.mostly_tracked, counts.mostly_lost) == (1, tracked, lost)


def test_counts_of_clips_add_up_before_ratios() -> None:
    one, two = clear(frame({1: A}, {})), clear(*[frame({1: A}, {7: A})] * 3)
    assert (one + two).mota == pytest.approx(1 - 1 / 4)
    assert (one + two).identities == 2


def test_idf1_gives_each_object_one_identity() -> None:
    counts = identity(*[frame({1: A}, {7: A})] * 3, frame({1: A}, {8: A}), frame({1: A}, {}))
    assert counts == IdentityCounts(true_positives=3, false_positives=1, misses=2)
    assert counts.idf1 == pytest.approx(6 / 9)


def test_missing_an_ignored_object_is_no_error() -> None:
    counts = clear(frame({1: A, 2: B}, {7: A}, ignored=[2]))
    assert counts == clear(frame({1: A}, {7: A}))


def test_a_prediction_on_an_ignored_object_is_no_false_positive() -> None:
    story = frame({1: A, 2: B}, {7: A, 8: right(1, B)}, ignored=[2])
    assert clear(story) == clear(frame({1: A}, {7: A}))
    assert identity(story) == IdentityCounts(true_positives=1)
    assert match_sequence([story], NEAR)[0].pair.pred_id.tolist() == [7]


def test_a_prediction_outside_the_gate_of_an_ignored_object_stays_a_false_positive() -> None:
    assert clear(frame({2: B}, {8: right(3.1, B)}, ignored=[2])).false_positives == 1


def test_two_predictions_on_one_ignored_object_leave_one_false_positive() -> None:
    counts = clear(frame({2: B}, {8: right(1, B), 9: right(-1, B)}, ignored=[2]))
    assert (counts.objects, counts.predictions, counts.false_positives) == (0, 1, 1)


def test_a_counted_object_is_served_before_a_nearer_ignored_one() -> None:
    counts = clear(frame({1: A, 2: right(2)}, {7: right(2)}, ignored=[2]))
    assert (counts.matches, counts.misses, counts.false_positives) == (1, 0, 0)


def test_a_prediction_that_follows_a_counted_object_is_not_dropped_for_a_nearer_one() -> None:
    counts = clear(frame({1: A}, {7: A}), frame({1: A, 2: right(4)}, {7: right(2), 8: A}, ignored=[2]))
    assert (counts.switches, counts.matches, counts.false_positives) == (0, 2, 1)


def test_an_object_that_is_hidden_for_a_while_keeps_its_prediction() -> None:
    hidden = frame({1: A}, {7: right(1)}, ignored=[1])
    counts = clear(frame({1: A}, {7: A}), hidden, frame({1: A}, {7: A}))
    assert counts == clear(*[frame({1: A}, {7: A})] * 2)
    assert clear(frame({1: A}, {7: A}), hidden, frame({1: A}, {8: A})).switches == 1


def motmetrics_counts(sequence: Sequence[FramePair], gate: Gate) -> dict[str, float]:
    accumulator: Any = motmetrics.MOTAccumulator(auto_id=True)  # type: ignore[no-untyped-call]
    for pair in sequence:
        # motmetrics lets the first of several claimants keep a prediction; we let the most recent one.
        recent = [-accumulator.last_match.get(i, -1) for i in pair.true_id]
        pair = pair.select(np.argsort(recent, kind="stable"), np.arange(len(pair.pred_id)))
        cost = pair.cost(gate)
        accumulator.update(pair.true_id, pair.pred_id, np.where(np.isfinite(cost), cost, np.nan))
    names = ["num_objects", "num_predictions", "num_detections", "num_switches", "num_fragmentations"]
    names += ["num_misses", "num_false_positives", "num_unique_objects", "mostly_tracked", "mostly_lost"]
    names += ["motp", "mota", "precision", "recall", "idtp", "idfp", "idfn", "idf1"]
    metrics: Any = motmetrics.metrics.create()  # type: ignore[no-untyped-call]
    table = metrics.compute(accumulator, metrics=names)
    return {name: float(table[name].iloc[0]) for name in names}


@pytest.mark.parametrize("gate", [NEAR, Gate("loose", "distance", 9.0), iou_gate()], ids=lambda g: g.name)
@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_clip_counts_as_in_motmetrics(seed: int, gate: Gate) -> None:
    sequence = noisy_clip(seed, frames=20, objects=8)
    ours, ids, theirs = (
        clear(*sequence, gate=gate),
        identity(*sequence, gate=gate),
        motmetrics_counts(sequence, gate),
    )
    assert ours.switches > 0
    assert ours.fragmentations > 0
    assert [ours.objects, ours.predictions, ours.matches, ours.switches, ours.fragmentations] == [
        theirs[f"num_{n}"] for n in ("objects", "predictions", "detections", "switches", "fragmentations")
    ]
    assert [ours.misses, ours.false_positives, ours.identities, ours.mostly_tracked, ours.mostly_lost] == [
        theirs[n] for n in ("num_misses", "num_false_positives", "num_unique_objects", "mostly_tracked", "mostly_lost")
    ]
    motp = theirs["motp"] if gate.kind == "distance" else 1 - theirs["motp"]
    assert [ours.motp, ours.mota, ours.precision, ours.recall] == pytest.approx(
        [motp, theirs["mota"], theirs["precision"], theirs["recall"]]
    )
    assert [ids.true_positives, ids.false_positives, ids.misses] == [theirs[n] for n in ("idtp", "idfp", "idfn")]
    assert ids.idf1 == pytest.approx(theirs["idf1"])


def all_counts(sequence: Sequence[FramePair], gate: Gate) -> list[float]:
    matches = match_sequence(sequence, gate)
    c, i, h = clear_counts(matches, gate), identity_counts(matches), hota_counts(sequence, gate)
    return [
        c.mota,
        c.motp,
        c.precision,
        c.recall,
        c.switches,
        c.fragmentations,
        i.idf1,
        h.hota,
        h.assa,
        h.loca,
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([NEAR, iou_gate()]))
def test_names_and_order_do_not_matter(seed: int, gate: Gate) -> None:
    rng = np.random.default_rng(seed)
    sequence = noisy_clip(seed)
    new_true, new_pred = rng.permutation(1_000), rng.permutation(1_000)
    renamed = []
    for pair in sequence:
        pair = replace(pair, true_id=new_true[pair.true_id], pred_id=new_pred[pair.pred_id])
        renamed.append(pair.select(rng.permutation(len(pair.true_id)), rng.permutation(len(pair.pred_id))))
    assert all_counts(renamed, gate) == pytest.approx(all_counts(sequence, gate), nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=4), st.randoms())
def test_the_order_of_clips_does_not_matter(seeds: list[int], random: Random) -> None:
    shuffled = list(seeds)
    random.shuffle(shuffled)
    totals = []
    for order in (seeds, shuffled):
        clips = [noisy_clip(seed, frames=5, objects=4) for seed in order]
        c = sum((clear(*clip) for clip in clips), ClearCounts())
        i = sum((identity(*clip) for clip in clips), IdentityCounts())
        h = sum((hota_counts(clip, NEAR) for clip in clips), HotaCounts())
        totals.append([c.mota, c.motp, i.idf1, h.hota])
    assert totals[0] == pytest.approx(totals[1], nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.data())
def test_a_switch_costs(frames: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, frames - 1))
    story = [frame({1: A, 2: B}, {7: A, 8: B} if t < at else {7: B, 8: A}) for t in range(frames)]
    objects = 2 * frames
    assert clear(*story).mota == pytest.approx(1 - 2 / objects)
    assert identity(*story).idf1 == pytest.approx(max(at, frames - at) / frames)
    assert hota_counts(story, NEAR).hota < 1
    assert hota_counts(story, NEAR).deta == pytest.approx(1)


def errors(*frames: FramePair) -> CountErrors:
    return count_errors(match_sequence(frames, paper_gate(4.0)))


def test_the_error_is_relative_to_the_true_count_and_averaged_over_frames() -> None:
    counts = errors(frame({1: A, 2: B}, {7: A}), frame({1: A}, {7: A, 8: B, 9: C}), frame({1: A}, {7: A}))
    assert counts.frames == 3
    assert counts.mae == pytest.approx((0.5 + 2 + 0) / 3)


def test_frames_without_objects_are_left_out() -> None:
    assert errors(frame({}, {7: A})) == CountErrors()
    assert np.isnan(errors(frame({}, {7: A})).mae)


def test_predictions_on_ignored_objects_do_not_count() -> None:
    assert errors(frame({1: A, 2: B}, {7: A, 8: B}, ignored=[2])).mae == 0
    assert errors(frame({1: A, 2: B}, {7: A, 8: C}, ignored=[2])).mae == 1  # C is too far from B


def test_count_errors_of_clips_add_up() -> None:
    assert (CountErrors(1.0, 2) + CountErrors(0.5, 1)).mae == pytest.approx(0.5)


def test_propagation_and_discovery() -> None:
    present = np.array([[[1, 1, 0], [1, 0, 1], [1, 0, 1]], [[0, 0, 0]] * 3], dtype=bool)
    counts = birth_counts(tracks_of(np.full((2, 3, 3, 2), 9.0), present), clips=2)
    assert counts == BirthCounts(clips=2, discovered=3, later=4, propagated=3)
    assert counts.propagation_rate == pytest.approx(3 / 4)
    assert counts.discoveries_per_clip == pytest.approx(1.5)


def test_without_objects_there_is_no_propagation_rate() -> None:
    counts = birth_counts(tracks_of(np.zeros((1, 3, 0, 2))), clips=1)
    assert np.isnan(counts.propagation_rate)
    assert counts.discoveries_per_clip == 0
