"""The whole report, from tracks and truth to numbers for JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.data.clip import Truth
from scalor.evaluation import TrackingCounts, count_tracks, evaluate_tracks
from scalor.tracks import Tracks

from .stories import tracks_of, truth_of

SIZE = 4.0


def scattered(seed: int, clips: int = 2, frames: int = 4, objects: int = 5) -> np.ndarray:
    """Objects in the view that keep apart: each in a cell of 12 pixels."""
    rng = np.random.default_rng(seed)
    cells = np.stack([rng.permutation(25)[:objects] for _ in range(clips * frames)]).reshape(clips, frames, -1)
    return np.stack([cells % 5, cells // 5], axis=-1) * 12 + rng.uniform(4, 8, (clips, frames, objects, 2))


def noisy(seed: int, clips: int = 4) -> tuple[Tracks, Truth]:
    rng = np.random.default_rng(seed)
    centre = scattered(seed, clips)
    present = rng.uniform(size=centre.shape[:3]) < 0.9
    found = rng.uniform(size=centre.shape[:3]) < 0.8
    truth = truth_of(centre, present, visible=rng.uniform(0, 1, centre.shape[:3]))
    return tracks_of(centre + rng.normal(0, 1, centre.shape), found), truth


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_perfect_tracks_score_one_everywhere(seed: int) -> None:
    centre = scattered(seed)
    report = evaluate_tracks(tracks_of(centre), truth_of(centre), SIZE)
    for gate in (report.paper, report.strict, report.iou):
        assert [gate.mota, gate.idf1, gate.precision, gate.recall, gate.plain_mota] == [1] * 5
        assert (gate.switches, gate.misses, gate.false_positives, gate.mostly_tracked) == (0, 0, 0, 1)
        assert gate.objects == 40
    assert [report.hota, report.deta, report.assa, report.loca] == pytest.approx([1] * 4)
    assert (report.count_mae, report.plain_count_mae, report.propagation_rate) == (0, 0, 1)
    assert (report.discoveries_per_clip, report.clips) == (5, 2)
    assert report.iou.motp == pytest.approx(1)
    assert report.paper.motp == pytest.approx(0)


def test_a_looser_gate_forgives_more() -> None:
    centre = scattered(3)
    report = evaluate_tracks(tracks_of(centre + np.array([3.0, 0])), truth_of(centre), SIZE)
    assert report.paper.mota == 1
    assert report.strict.recall == 0
    assert report.iou.recall == 0
    assert evaluate_tracks(tracks_of(centre + np.array([1.9, 0])), truth_of(centre), SIZE).strict.mota == 1


def test_hidden_objects_count_only_in_the_plain_variant() -> None:
    centre, visible = scattered(4), np.ones((2, 4, 5))
    visible[:, :, 0] = 0.1
    found = np.ones((2, 4, 5), dtype=bool)
    found[:, :, 0] = False
    unseen = evaluate_tracks(tracks_of(centre, found), truth_of(centre, visible=visible), SIZE)
    assert (unseen.strict.mota, unseen.count_mae, unseen.hota) == pytest.approx((1, 0, 1))
    assert (unseen.strict.plain_mota, unseen.plain_count_mae) == pytest.approx((0.8, 0.2))
    seen = evaluate_tracks(tracks_of(centre), truth_of(centre, visible=visible), SIZE)
    assert (seen.strict.mota, seen.count_mae, seen.hota) == pytest.approx((1, 0, 1))
    assert (seen.strict.plain_mota, seen.plain_count_mae) == (1, 0)


def test_batches_add_up_to_the_whole() -> None:
    tracks, truth = noisy(5)
    total = TrackingCounts()
    for first in (0, 2):
        part = Truth(**{name: value[first : first + 2] for name, value in vars(truth).items()})
        rows = tracks.select((tracks.clip >= first) & (tracks.clip < first + 2))
        total += count_tracks(replace(rows, clip=rows.clip - first), part, SIZE)
    assert total.report().to_dict() == pytest.approx(evaluate_tracks(tracks, truth, SIZE).to_dict())


def test_the_same_names_in_other_clips_are_other_objects() -> None:
    tracks, truth = noisy(6)
    renamed = replace(tracks, id=tracks.id + 100 * tracks.clip)
    assert evaluate_tracks(renamed, truth, SIZE) == evaluate_tracks(tracks, truth, SIZE)


def test_the_report_becomes_plain_json() -> None:
    tracks, truth = noisy(7)
    values = evaluate_tracks(tracks, truth, SIZE).to_dict()
    assert {type(value) for value in values.values()} == {float}
    assert json.loads(json.dumps(values)) == values
    assert {
        "paper_mota",
        "strict_idf1",
        "iou_switches",
        "iou_plain_mota",
        "hota",
        "assa",
        "count_mae",
    } <= set(values)


def test_tracks_without_a_row_miss_everything() -> None:
    report = evaluate_tracks(tracks_of(np.zeros((2, 4, 0, 2))), truth_of(scattered(8)), SIZE)
    assert (report.paper.mota, report.paper.misses, report.paper.idf1, report.hota) == (0, 40, 0, 0)
    assert (report.count_mae, report.discoveries_per_clip, report.clips) == (1, 0, 2)
    assert np.isnan([report.paper.precision, report.propagation_rate]).all()


def test_a_truth_without_objects_leaves_only_false_positives() -> None:
    centre = scattered(9)
    report = evaluate_tracks(tracks_of(centre), truth_of(centre, np.zeros((2, 4, 5), dtype=bool)), SIZE)
    assert (report.paper.false_positives, report.paper.precision, report.hota) == (40, 0, 0)
    assert np.isnan([report.paper.mota, report.paper.recall, report.paper.mostly_lost, report.count_mae]).all()
