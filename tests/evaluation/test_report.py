"""The whole report, from tracks and truth to numbers for JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor import SCALOR, Config, get_preset
from scalor.data.clip import Truth
from scalor.evaluation import TrackingCounts, count_tracks, evaluate_tracks
from scalor.evaluation.report import evaluate
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


def untrained(length: int = 7) -> tuple[SCALOR, Config]:
    config = get_preset("shapes-tiny")
    model = replace(
        config.model, slots=6, proposals=2, glimpse=8, what_dim=4, feature_dim=8, tracker_dim=8, prior_dim=8
    )
    config = replace(config, model=model, test=replace(config.test, objects=(2, 4), length=length))
    torch.manual_seed(0)
    return SCALOR(model), config


def flat(values: dict[str, object]) -> dict[str, object]:
    """Without the nesting that `pytest.approx` does not understand."""
    forecast = values["forecast"]
    assert isinstance(forecast, dict)
    return {**values, "forecast": None, **{f"forecast_{name}": value for name, value in forecast.items()}}


def test_a_model_is_measured_in_every_way() -> None:
    model, config = untrained()
    report = evaluate(model, config, clips=3, nll_samples=1, quiet=True)
    values = report.to_dict()
    assert json.loads(json.dumps(values))["mse"] == values["mse"]
    assert {"paper_mota", "strict_mota", "iou_mota", "hota", "count_mae", "mse", "nll", "forecast"} <= set(values)
    assert (values["clips"], values["nll_samples"]) == (3, 1)
    assert 0 < report.mse < 1
    assert report.nll is not None
    assert np.isfinite(report.nll)
    assert report.forecast is not None
    for steps in vars(report.forecast).values():
        assert steps == 5 or len(steps) == 2  # five frames observed, two imagined
    assert all(0 < error < 1 for error in report.forecast.mse)
    assert report.tracking is not None
    assert report.tracking.strict.objects > 0


def test_a_clip_that_is_all_observed_has_no_forecast() -> None:
    model, config = untrained(length=5)
    report = evaluate(model, config, clips=1, quiet=True)
    assert report.to_dict()["forecast"] is None
    assert report.to_dict()["nll"] is None


def test_metrics_do_not_depend_on_the_batches_the_clips_come_in() -> None:
    model, config = untrained()
    together, apart = (flat(evaluate(model, config, clips=5, batch=batch, quiet=True).to_dict()) for batch in (5, 2))
    assert together.keys() == apart.keys()
    for name, value in together.items():
        if value is None:
            assert apart[name] is None
        else:
            assert apart[name] == pytest.approx(value, rel=1e-5, nan_ok=True), name


def test_the_same_model_has_the_same_metrics_twice() -> None:
    model, config = untrained()
    first, second = (evaluate(model, config, clips=2, quiet=True).to_dict() for _ in range(2))
    assert json.dumps(first) == json.dumps(second)


def test_measuring_says_how_far_it_is_on_stderr_or_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    model, config = untrained(length=2)
    evaluate(model, config, clips=1, quiet=True)
    assert capsys.readouterr() == ("", "")
    evaluate(model, config, clips=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "batch" in err
