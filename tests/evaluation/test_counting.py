"""Counts of objects, discoveries and propagations."""

import numpy as np
import pytest

from scalor.evaluation.counting import BirthCounts, CountErrors, birth_counts, count_errors
from scalor.evaluation.matching import FramePair, paper_gate
from scalor.evaluation.tracking import match_sequence

from .stories import frame, tracks_of

A, B, C = (10.0, 10.0), (30.0, 30.0), (50.0, 50.0)


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
