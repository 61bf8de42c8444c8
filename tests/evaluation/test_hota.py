"""HOTA: hand-computed stories, and the numbers of TrackEval, its authors' code."""

import numpy as np
import pytest

from scalor.evaluation.hota import ALPHAS, HotaCounts, hota_counts
from scalor.evaluation.matching import Gate, iou_gate
from scalor.evaluation.mota import match_sequence

from .stories import frame, noisy_clip

A, B = (10.0, 10.0), (30.0, 30.0)

# TrackEval 1.3.0 (numpy 2.4.6), metrics HOTA and combine_sequences on noisy_clip(1), (2) and (3): the
# similarity is its own box IoU, or max(0, 1 - distance / 6). HOTA, DetA, AssA, LocA: means over the alphas.
TRACKEVAL = {
    "iou": [0.33232834989221965, 0.4551299328076275, 0.24551797216692303, 0.7684886697721897],
    "distance": [0.41380182807340365, 0.575685159277553, 0.29820096473015817, 0.8631933651685264],
}
TRACKEVAL_IOU_OF_EACH_CLIP = [0.31081325952186756, 0.3293894345647131, 0.35099927948895066]
TRACKEVAL_IOU_MATCHES = [
    165,
    165,
    165,
    165,
    164,
    164,
    164,
    163,
    156,
    149,
    136,
    122,
    103,
    82,
    58,
    38,
    23,
    13,
    4,
]


@pytest.mark.parametrize("gate", [iou_gate(), Gate("near", "distance", 3.0)], ids=lambda g: g.kind)
def test_noisy_clips_score_as_in_trackeval(gate: Gate) -> None:
    total = sum((hota_counts(noisy_clip(seed), gate) for seed in (1, 2, 3)), HotaCounts())
    assert [total.hota, total.deta, total.assa, total.loca] == pytest.approx(TRACKEVAL[gate.kind], abs=1e-12)


def test_each_noisy_clip_scores_as_in_trackeval() -> None:
    clips = [hota_counts(noisy_clip(seed), iou_gate()) for seed in (1, 2, 3)]
    assert [clip.hota for clip in clips] == pytest.approx(TRACKEVAL_IOU_OF_EACH_CLIP, abs=1e-12)
    total = sum(clips, HotaCounts())
    np.testing.assert_array_equal(total.true_positives, TRACKEVAL_IOU_MATCHES)
    np.testing.assert_array_equal(total.true_positives + total.misses, 205)
    np.testing.assert_array_equal(total.true_positives + total.false_positives, 198)


def test_perfect_tracks_score_one() -> None:
    counts = hota_counts([frame({1: A, 2: B}, {7: A, 8: B})] * 4, iou_gate())
    assert [counts.hota, counts.deta, counts.assa, counts.loca] == pytest.approx([1, 1, 1, 1])


def test_an_identity_lost_half_way_halves_the_association() -> None:
    counts = hota_counts([frame({1: A}, {7: A})] * 2 + [frame({1: A}, {8: A})] * 2, iou_gate())
    assert counts.deta == pytest.approx(1)
    assert counts.assa == pytest.approx(0.5)  # each match: 2 shared of 4 + 2 - 2 frames
    assert counts.hota == pytest.approx(np.sqrt(0.5))


def test_a_match_counts_at_the_levels_it_reaches() -> None:
    counts = hota_counts([frame({1: A}, {7: (11.0, 10.0)})], iou_gate())  # IoU 12 / 20
    np.testing.assert_array_equal(counts.true_positives, ALPHAS < 0.601)
    assert counts.deta == pytest.approx(12 / 19)
    assert counts.loca == pytest.approx((12 * 0.6 + 7) / 19)


def test_clips_without_truth_or_without_predictions_still_count() -> None:
    missed, invented = frame({1: A}, {}), frame({}, {7: A})
    for clip in (missed, invented):
        assert (hota_counts([clip], iou_gate()).hota, hota_counts([clip], iou_gate()).loca) == (0, 1)
    perfect = hota_counts([frame({1: A}, {7: A})], iou_gate())
    assert (perfect + hota_counts([missed], iou_gate())).deta == pytest.approx(0.5)
    assert (perfect + hota_counts([invented], iou_gate())).assa == pytest.approx(1)


def test_nothing_at_all_has_no_score() -> None:
    for counts in (HotaCounts(), hota_counts([], iou_gate()), hota_counts([frame({}, {})], iou_gate())):
        assert np.isnan([counts.hota, counts.deta, counts.assa, counts.loca]).all()


def test_ignored_objects_are_out_after_matching() -> None:
    story = [frame({1: A, 2: B}, {7: A, 8: B}, ignored=[2])] * 3
    counts = hota_counts([m.pair for m in match_sequence(story, iou_gate())], iou_gate())
    assert counts.hota == pytest.approx(1)
    np.testing.assert_array_equal(counts.true_positives, 3)
