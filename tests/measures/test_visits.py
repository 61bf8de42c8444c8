"""Time in zones and visits, against paths whose times are known."""

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.measures import Zone, occupancy, samples_of, visits, zone_times
from tests.measures.walks import circle, line, table

STRIP = Zone.rectangle("strip", 129.9, 0, 159.9, 200)
"""A walker at 30 px/s from x = 100 is in it from 1 s on, until 2 s."""


def test_a_walker_passes_a_strip() -> None:
    samples = samples_of(table(line(30)[None]))
    (visit,) = visits(samples, [STRIP]).to_dict("records")
    assert (visit["zone"], visit["id"], visit["ended"]) == ("strip", 1, 1)
    assert (visit["enter_s"], visit["leave_s"], visit["dwell_s"]) == pytest.approx((1, 2, 1))
    (spent,) = zone_times(samples, [STRIP]).to_dict("records")
    assert (spent["inside_s"], spent["inside_share"], spent["visits"]) == pytest.approx((1, 1 / 5, 1))
    assert (spent["first_entry_s"], spent["longest_visit_s"]) == pytest.approx((1, 1))


def test_a_quarter_of_a_circle_takes_a_quarter_of_the_time() -> None:
    quarter = Zone.rectangle("quarter", 100, 100, 200, 200)
    samples = samples_of(table(circle(50, 0.0997, frames=1008)[None, 5:]))
    (spent,) = zone_times(samples, [quarter]).to_dict("records")
    assert spent["inside_share"] == pytest.approx(0.25, abs=0.01)
    assert spent["visits"] == 10


def test_times_of_zones_that_share_out_the_picture_add_up_to_the_whole_time() -> None:
    samples = samples_of(table(np.stack([line(30), line(20, 45), circle(40, 0.3, 50)])))
    zones = [Zone.rectangle("left", -500, -500, 131, 500), Zone.rectangle("right", 131, -500, 500, 500)]
    spent = zone_times(samples, zones)
    assert spent.groupby("id")["inside_s"].sum().to_numpy() == pytest.approx(5)
    table_of_visits = visits(samples, zones)
    assert table_of_visits.groupby("id")["dwell_s"].sum().to_numpy() == pytest.approx(5)


def test_a_short_absence_does_not_end_a_visit_of_the_patient() -> None:
    path = np.full((1, 30, 2), 50.0)
    path[0, 10:13], path[0, 20:25] = 500, 500
    zone = [Zone("home", circle=(50, 50, 10))]
    counts = [len(visits(samples_of(table(path)), zone, patience)) for patience in (0, 0.29, 0.3, 0.5)]
    assert counts == [3, 3, 2, 1]
    (all_of_it,) = visits(samples_of(table(path)), zone, 1).to_dict("records")
    assert (all_of_it["dwell_s"], all_of_it["ended"]) == (pytest.approx(3), 0)
    (spent,) = zone_times(samples_of(table(path)), zone, 1).to_dict("records")
    assert (spent["inside_s"], spent["visits"]) == (pytest.approx(2.2), 1)
    with pytest.raises(InputError, match="patience"):
        visits(samples_of(table(path)), zone, -1)


def test_an_object_that_is_hidden_for_a_while_stays_where_it_was() -> None:
    hidden = table(np.full((1, 30, 2), 50.0)).query("frame not in (10, 11, 12)")
    zone = [Zone("home", circle=(50, 50, 10))]
    (spent,) = zone_times(samples_of(hidden), zone).to_dict("records")
    assert (spent["inside_s"], spent["visits"]) == (pytest.approx(3), 1)


def test_who_never_comes_has_a_row_without_visits() -> None:
    (spent,) = zone_times(samples_of(table(line(30)[None])), [Zone("far", circle=(900, 900, 5))]).to_dict("records")
    assert (spent["inside_s"], spent["visits"], spent["longest_visit_s"]) == (0, 0, 0)
    assert np.isnan(spent["first_entry_s"])
    assert len(visits(samples_of(table(line(30)[None])), [])) == 0


def test_occupancy_adds_up_to_the_time_of_all_objects() -> None:
    samples = samples_of(table(np.stack([line(30), circle(40, 0.3, 50)])))
    seconds = occupancy(samples, (200, 300), 10)
    assert seconds.shape == (20, 30)
    assert seconds.sum() == pytest.approx(10)
    still = samples_of(table(np.full((1, 50, 2), (37.0, 12.0))))
    seconds = occupancy(still, (200, 300), 10)
    assert seconds[1, 3] == pytest.approx(5)
    assert occupancy(still, (640, 480)).shape == (64, 48)
    passing = occupancy(samples_of(table(line(30)[None])), (200, 300), 1)
    assert passing[100, 100:246] == pytest.approx(1 / 30, abs=0.011)  # no cell is skipped
    outside = samples_of(table(np.full((1, 50, 2), (-5.0, 500.0))))
    assert occupancy(outside, (200, 300), 10)[19, 0] == pytest.approx(5)
    for bad in (0, -1, float("nan"), 1e-3):
        with pytest.raises(InputError, match="cell is"):
            occupancy(still, (200, 300), bad)
