"""Mean squared displacement against theory, and against trackpy."""

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.measures import Calibration, mean_squared_displacement, samples_of
from tests.measures.walks import brownian, line, table


def test_brownian_motion_gives_4_d_t() -> None:
    """200 tracks of 200 steps, D = 25 px²/s: at 10 lags, 4,000 independent pieces give a standard error of 1.6 %."""
    msd = mean_squared_displacement(samples_of(table(brownian(200, 200, 25.0, 10.0))), lags=10)
    assert msd["lag_s"].tolist() == pytest.approx(np.arange(1, 11) / 10)
    assert msd["msd_px2"].to_numpy() == pytest.approx(4 * 25 * msd["lag_s"].to_numpy(), rel=0.06)
    assert msd["pairs"].tolist() == [200 * (200 - lag) for lag in range(1, 11)]


def test_steady_motion_gives_v2_t2_exactly() -> None:
    msd = mean_squared_displacement(samples_of(table(line(30, 37)[None]), Calibration(0.1)), lags=40)
    assert msd["msd_mm2"].to_numpy() == pytest.approx((3 * msd["lag_s"].to_numpy()) ** 2)
    assert len(msd) == 40


def test_errors_of_position_add_4_sigma2() -> None:
    noise = np.random.default_rng(0).normal(0, 2, (20, 1000, 2))
    msd = mean_squared_displacement(samples_of(table(np.zeros((20, 1000, 2)) + noise)), lags=5)
    assert msd["msd_px2"].to_numpy() == pytest.approx(16, rel=0.05)


@pytest.mark.parametrize("gaps", [False, True])
def test_trackpy_finds_the_same(gaps: bool) -> None:
    trackpy = pytest.importorskip("trackpy")
    whole = table(brownian(3, 60, 25.0, 10.0))
    if gaps:
        whole = whole[np.random.default_rng(1).random(len(whole)) < 0.8]
    ours = mean_squared_displacement(samples_of(whole, Calibration(0.5)), lags=12, each=True)
    for number, part in whole.groupby("id"):
        theirs = trackpy.msd(part.assign(x=(part["x0"] + part["x1"]) / 2, y=(part["y0"] + part["y1"]) / 2), 0.5, 10, 12)
        mine = ours[ours["id"] == number]
        np.testing.assert_allclose(mine["msd_mm2"], theirs["msd"].dropna())
        np.testing.assert_allclose(mine["lag_s"], theirs["lagt"].dropna() if "lagt" in theirs else theirs.index)


def test_a_stride_is_one_lag() -> None:
    thinned = mean_squared_displacement(samples_of(table(line(30)[None][:, ::4], stride=4)), lags=3)
    assert thinned["lag_s"].tolist() == pytest.approx([0.4, 0.8, 1.2])
    assert thinned["msd_px2"].to_numpy() == pytest.approx((30 * thinned["lag_s"].to_numpy()) ** 2)


def test_lags_without_pairs_are_left_out() -> None:
    two = table(line(30, frames=10)[None]).query("frame in [0, 5]")
    msd = mean_squared_displacement(samples_of(two), lags=3)
    assert msd["lag_s"].tolist() == pytest.approx([0.5])  # the smallest step between frames is one lag
    nothing = mean_squared_displacement(samples_of(two.iloc[:0]))
    assert (len(nothing), list(nothing)) == (0, ["lag_s", "msd_px2", "pairs"])
    with pytest.raises(InputError, match="lags is 0"):
        mean_squared_displacement(samples_of(two), lags=0)


def test_a_lag_beyond_all_tracks_costs_nothing_and_no_tracks_have_none() -> None:
    walks = samples_of(table(brownian(2, 10, 25.0, 10.0)))
    assert mean_squared_displacement(walks, lags=10**12).equals(mean_squared_displacement(walks, lags=9))
    assert len(mean_squared_displacement(samples_of(table(np.zeros((0, 10, 2)))), lags=5)) == 0


def test_the_largest_lag_is_a_quarter_of_the_longest_track() -> None:
    assert len(mean_squared_displacement(samples_of(table(line(30, frames=41)[None])))) == 10
    assert len(mean_squared_displacement(samples_of(table(line(30, frames=1000)[None])))) == 100
