"""Speeds, headings, paths and neighbours: exact on lines and circles, and unmoved by where the camera stands."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.errors import InputError
from scalor.measures import Calibration, motion, per_frame, per_track, samples_of
from tests.measures.walks import brownian, circle, line, table


@pytest.mark.parametrize(("speed", "heading"), [(30.0, 0.0), (12.5, 90.0), (7.0, -135.0), (40.0, 180.0)])
def test_a_straight_line_has_its_speed_and_heading_everywhere(speed: float, heading: float) -> None:
    moved = motion(samples_of(table(line(speed, heading)[None]), Calibration(0.5)))
    assert moved["speed_mm_per_s"].isna().tolist() == [True] + [False] * 49
    assert moved["speed_mm_per_s"][1:].to_numpy() == pytest.approx(speed / 2)
    assert np.cos(np.radians(moved["heading_deg"][1:] - heading)).to_numpy() == pytest.approx(1)
    assert moved["heading_deg"][1:].between(-180, 180, inclusive="right").all()
    assert moved["turning_deg_per_s"][2:].to_numpy() == pytest.approx(0, abs=1e-6)
    assert moved["path_mm"].to_numpy() == pytest.approx(speed / 2 * np.arange(50) / 10)
    (track,) = per_track(samples_of(table(line(speed, heading)[None]), Calibration(0.5))).to_dict("records")
    assert (track["duration_s"], track["boxes"], track["straightness"]) == pytest.approx((4.9, 50, 1))
    for name in ("mean_speed", "median_speed", "max_speed"):
        assert track[f"{name}_mm_per_s"] == pytest.approx(speed / 2)
    assert (track["mean_width_mm"], track["mean_height_mm"]) == (2, 2)


def test_a_circle_turns_at_its_rate_and_its_path_is_that_of_the_polygon() -> None:
    samples = samples_of(table(circle(50, 0.1, frames=101)[None]))
    moved = motion(samples)
    assert moved["turning_deg_per_s"][2:].to_numpy() == pytest.approx(36)
    side = 2 * 50 * np.sin(np.pi / 100)
    assert moved["speed_px_per_s"][1:].to_numpy() == pytest.approx(side * 10)
    (track,) = per_track(samples).to_dict("records")
    assert track["path_px"] == pytest.approx(100 * side)
    assert (track["displacement_px"], track["straightness"]) == pytest.approx((0, 0), abs=1e-9)
    assert track["mean_turning_deg_per_s"] == pytest.approx(36)


def test_missing_frames_do_not_change_how_fast_a_circle_turns() -> None:
    holes = table(circle(50, 0.1, frames=101)[None]).query("frame % 7 not in (2, 3)")
    assert motion(samples_of(holes))["turning_deg_per_s"][2:].to_numpy() == pytest.approx(36)


def test_who_rests_has_no_heading() -> None:
    path = np.array([[0, 0], [3, 0], [3, 0], [3, -3], [3, -6]], float)[None]
    moved = motion(samples_of(table(path)))
    assert moved["heading_deg"].fillna(-1).tolist() == [-1, 0, -1, 90, 90]
    assert moved["turning_deg_per_s"].fillna(-1).tolist() == [-1, -1, -1, -1, 0]
    assert moved["speed_px_per_s"][1:].tolist() == pytest.approx([30, 0, 30, 30])


WANDER = brownian(4, 30, 25.0, 10.0)
INVARIANT = ("speed_px_per_s", "turning_deg_per_s", "path_px", "nearest_px")


@settings(deadline=None)
@given(st.floats(-np.pi, np.pi), st.floats(-500, 500), st.floats(-500, 500))
def test_measures_do_not_change_when_the_scene_is_moved_and_turned(angle: float, dx: float, dy: float) -> None:
    cos, sin = np.cos(angle), np.sin(angle)
    turned = WANDER @ np.array([[cos, -sin], [sin, cos]]).T + [dx, dy]
    one, two = (motion(samples_of(table(paths))) for paths in (WANDER, turned))
    for name in INVARIANT:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-6, atol=1e-6)
    apart = (one["heading_deg"] - two["heading_deg"]).dropna()
    np.testing.assert_allclose(np.exp(1j * np.radians(apart)), np.exp(1j * angle), atol=1e-6)
    alone = per_frame(samples_of(table(WANDER)))["alignment"], per_frame(samples_of(table(turned)))["alignment"]
    np.testing.assert_allclose(*alone, atol=1e-6)


@settings(deadline=None)
@given(st.floats(0.01, 100))
def test_lengths_grow_with_the_scale_and_nothing_else_does(scale: float) -> None:
    pixels, real = (motion(samples_of(table(WANDER), calibration)) for calibration in (None, Calibration(scale)))
    for name in ("x", "y", "path", "nearest"):
        np.testing.assert_allclose(real[f"{name}_mm"], scale * pixels[f"{name}_px"])
    np.testing.assert_allclose(real["speed_mm_per_s"], scale * pixels["speed_px_per_s"])
    for name in ("heading_deg", "turning_deg_per_s", "nearest_id", "seconds"):
        np.testing.assert_allclose(real[name], pixels[name], atol=1e-6)


def test_time_runs_by_seconds_not_by_frames() -> None:
    slow = motion(samples_of(table(line(30)[None], fps=5)))
    assert slow["speed_px_per_s"][1:].to_numpy() == pytest.approx(15)
    holes = table(line(30)[None]).query("frame not in [7, 8, 9]")
    assert motion(samples_of(holes))["speed_px_per_s"][1:].to_numpy() == pytest.approx(30)
    (track,) = per_track(samples_of(holes)).to_dict("records")
    assert (track["path_px"], track["boxes"]) == (pytest.approx(147), 47)


def test_each_object_is_measured_on_its_own() -> None:
    both = table(np.stack([line(30), line(10, 90) + 500]))
    shuffled = both.sample(frac=1, random_state=0)
    pandas.testing.assert_frame_equal(motion(samples_of(both)), motion(samples_of(shuffled)))
    tracks = per_track(samples_of(both), {2: "queen"})
    assert tracks["mean_speed_px_per_s"].tolist() == pytest.approx([30, 10])
    assert tracks["name"].tolist() == ["", "queen"]


def test_the_nearest_neighbour_is_one_in_the_same_frame() -> None:
    places = np.array([[[0, 0], [0, 0]], [[3, 4], [30, 40]], [[3, 4], [0, 10]]], float)
    moved = motion(samples_of(table(places)))
    assert moved["nearest_id"].tolist() == [2, 3, 3, 3, 2, 1]
    assert moved["nearest_px"].tolist() == pytest.approx([5, 10, 0, np.hypot(30, 30), 0, 10])
    alone = motion(samples_of(table(places[:1])))
    assert alone["nearest_id"].tolist() == [0, 0]
    assert alone["nearest_px"].isna().all()


def test_frames_without_objects_are_in_the_table_of_frames() -> None:
    samples = samples_of(table(np.stack([line(30), line(30) + 50])))
    frames = per_frame(samples, {frame: frame / 10 for frame in range(60)})
    assert frames["objects"].tolist() == [2] * 50 + [0] * 10
    assert frames["alignment"][1:50].to_numpy() == pytest.approx(1)
    assert frames["mean_speed_px_per_s"][1:50].to_numpy() == pytest.approx(30)
    assert frames["mean_speed_px_per_s"][50:].isna().all()
    opposite = per_frame(samples_of(table(np.stack([line(30), line(30, 180)]))))
    assert opposite["alignment"][1:].to_numpy() == pytest.approx(0, abs=1e-9)
    assert len(opposite) == 50


def test_smoothing_takes_the_jitter_out_of_a_path_and_leaves_a_line_as_it_is() -> None:
    steady = per_track(samples_of(table(line(30)[None]), smooth_s=0.5))["path_px"]
    assert steady[0] == pytest.approx(147)
    noise = np.random.default_rng(0).normal(0, 1, (1, 50, 2))
    rough, smooth = (per_track(samples_of(table(line(30)[None] + noise), smooth_s=s))["path_px"][0] for s in (0, 1.0))
    assert abs(smooth - 147) < abs(rough - 147) / 4


def test_the_feet_may_be_the_position() -> None:
    feet = samples_of(table(line(30)[None], side=8), anchor="bottom")
    assert feet.place[:, 1] == pytest.approx(104)
    assert feet.place[:, 0] == pytest.approx(line(30)[:, 0])


def test_a_box_in_a_single_frame_has_no_speed() -> None:
    (track,) = per_track(samples_of(table(np.zeros((1, 1, 2))))).to_dict("records")
    assert (track["path_px"], track["duration_s"]) == (0, 0)
    assert all(np.isnan(track[f"{name}_speed_px_per_s"]) for name in ("mean", "median", "max"))
    assert len(per_track(samples_of(table(np.zeros((1, 1, 2))).iloc[:0]))) == 0


def test_what_cannot_be_measured_is_refused() -> None:
    good = table(line(30)[None])
    for bad, said in (
        (good.drop(columns="seconds"), "no column seconds"),
        (good.assign(x0="left"), "not a number"),
        (good.assign(x0=np.nan), "not finite"),
        (pandas.concat([good, good]), "two boxes at one time"),
    ):
        with pytest.raises(InputError, match=said):
            samples_of(bad)
    for options in ({"anchor": "middle"}, {"smooth_s": -1.0}):
        with pytest.raises(InputError):
            samples_of(good, **options)


def test_a_scale_from_two_points() -> None:
    assert Calibration.from_points((40, 50), (640, 50), 72) == Calibration(0.12)
    assert Calibration.from_points((0, 0), (3, 4), 10).mm_per_pixel == pytest.approx(2)
    assert (Calibration().unit, Calibration().scale, Calibration(0.12).unit) == ("px", 1, "mm")
    for bad in (0, -1, float("nan"), float("inf"), "2"):
        with pytest.raises(InputError, match="mm_per_pixel"):
            Calibration(bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="two different points"):
        Calibration.from_points((1, 1), (1, 1), 5)
    with pytest.raises(InputError, match="known length"):
        Calibration.from_points((1, 1), (2, 1), 0)
