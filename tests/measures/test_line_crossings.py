"""Crossings of lines: who passes is counted once, which way, where and when; beside supervision's LineZone."""

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.measures import CountingLine, line_counts, line_crossings, samples_of
from tests.measures.walks import circle, line, table

UPWARDS = CountingLine("gate", (130.5, 200.0), (130.5, 0.0))
"""Walked from below; its right is on the right of the picture."""
SHAKEN = np.stack([line(6, frames=100)] * 7 + [line(6, frames=100)[::-1]] * 9)
SHAKEN = SHAKEN + np.random.default_rng(0).normal(0, 1, SHAKEN.shape)
"""Slow walkers, 7 one way and 9 the other, whose places are off by 1 px on average."""


def counted(paths: np.ndarray, *lines: CountingLine, margin: float | None = None) -> list[tuple[int, ...]]:
    """Forward, backward, came back, and all crossings both ways, of each line."""
    crossings = line_crossings(samples_of(table(paths)), lines, margin)
    rows = line_counts(crossings, lines).drop(columns="line").to_numpy().tolist()
    return [tuple(row) for row in rows]


def test_a_walker_crosses_forward_at_the_place_and_time_that_are_known() -> None:
    found = line_crossings(samples_of(table(line(30)[None])), [UPWARDS])
    (one,) = found.to_dict("records")
    assert (one["line"], one["id"], one["direction"], one["frame"]) == ("gate", 1, "forward", 11)
    assert (one["seconds"], one["x_px"], one["y_px"]) == pytest.approx((30.5 / 30, 130.5, 100))
    assert counted(line(30)[None], UPWARDS) == [(1, 0, 0, 1, 0)]


def test_the_time_is_that_at_the_line_and_not_that_at_the_margin() -> None:
    slow = table(line(3, frames=200)[None])
    for margin in (None, 0, 5):
        (one,) = line_crossings(samples_of(slow), [UPWARDS], margin).to_dict("records")
        assert (one["seconds"], one["x_px"], one["frame"]) == pytest.approx((30.5 / 3, 130.5, 102))


def test_the_way_back_and_the_line_the_other_way_round_are_backward() -> None:
    assert counted(line(30)[None, ::-1], UPWARDS) == [(0, 1, 0, 0, 1)]
    assert counted(line(30)[None], CountingLine("down", UPWARDS.end, UPWARDS.start)) == [(0, 1, 0, 0, 1)]


def test_who_trembles_on_the_line_is_counted_once() -> None:
    samples = samples_of(table(SHAKEN, side=16))
    found = line_crossings(samples, [UPWARDS])
    assert line_counts(found, [UPWARDS]).to_numpy()[0, 1:].tolist() == [7, 9, 0, 7, 9]
    raw = line_crossings(samples, [UPWARDS], margin=0)
    assert len(raw) > 16  # without the margin every tremble counts
    assert line_counts(raw, [UPWARDS]).to_numpy()[0, 1:4].tolist() == [7, 9, 0]


def test_who_comes_back_has_not_passed() -> None:
    there_and_back = np.concatenate([line(30), line(30)[::-1]])[None]
    assert counted(there_and_back, UPWARDS) == [(0, 0, 1, 1, 1)]
    assert counted(np.concatenate([there_and_back[0], line(30)])[None], UPWARDS) == [(1, 0, 0, 2, 1)]


def test_who_goes_around_the_end_does_not_cross() -> None:
    assert counted(line(30)[None], CountingLine("short", (130.5, 90), (130.5, 0))) == [(0, 0, 0, 0, 0)]
    radius = CountingLine("radius", (100, 100), (200, 100.01))  # from the centre of the circle to the right
    laps = circle(50, 0.1, frames=351, fps=10)[None] + [0, 1e-3]
    # Counter-clockwise, so from below to above at the right: from the right of the line to its left.
    assert counted(laps[:, 10:], radius) == [(0, 1, 0, 0, 3)]


def test_who_stops_on_the_line_has_not_crossed_it() -> None:
    stops = line(30)[None].copy()
    stops[0, 11:] = (131, 100)  # half a pixel beyond, in a box of 4 px
    assert counted(stops, UPWARDS) == [(0, 0, 0, 0, 0)]
    assert counted(stops, UPWARDS, margin=0.4) == [(1, 0, 0, 1, 0)]


def test_a_fast_object_and_a_gap_are_crossings_too() -> None:
    assert counted(line(900)[None], UPWARDS) == [(1, 0, 0, 1, 0)]
    holes = table(line(30)[None]).query("frame < 5 or frame > 20")
    (one,) = line_crossings(samples_of(holes), [UPWARDS]).to_dict("records")
    assert one["frame"] == 21
    assert one["seconds"] == pytest.approx(30.5 / 30)


def test_lines_are_counted_apart_and_a_bad_margin_is_refused() -> None:
    other = CountingLine("other", (110.5, 200), (110.5, 0))
    assert counted(np.stack([line(30), line(4)]), UPWARDS, other) == [(1, 0, 0, 1, 0), (2, 0, 0, 2, 0)]
    assert counted(line(30)[None]) == []
    with pytest.raises(InputError, match="margin"):
        counted(line(30)[None], UPWARDS, margin=-1)


def test_supervision_counts_the_same_unless_the_centres_of_trembling_walkers_are_told_at_once() -> None:
    supervision = pytest.importorskip("supervision")

    def theirs(paths: np.ndarray, side: float, **options: object) -> tuple[int, int]:
        """Objects that go forward and backward: LineZone's "out" is our forward on this line."""
        zone = supervision.LineZone(*(supervision.Point(*end) for end in (UPWARDS.start, UPWARDS.end)), **options)
        for _, part in table(paths, side=side).groupby("frame"):
            corners = part[["x0", "y0", "x1", "y1"]].to_numpy()
            kinds = np.zeros(len(part), int)
            zone.trigger(supervision.Detections(corners, tracker_id=part["id"].to_numpy(), class_id=kinds))
        return zone.out_count, zone.in_count

    centre = [supervision.Position.CENTER]
    steady = np.stack([line(speed) for speed in (20, 25, 30)] + [line(speed)[::-1] for speed in (22, 27)])
    assert theirs(steady, 4, triggering_anchors=centre) == counted(steady, UPWARDS)[0][:2] == (3, 2)
    # The rule of all four corners and the margin of a quarter of the size do the same.
    assert theirs(SHAKEN, 16) == counted(SHAKEN, UPWARDS, margin=4)[0][:2] == (7, 9)
    assert sum(theirs(SHAKEN, 16, triggering_anchors=centre)) > 16
    assert theirs(SHAKEN, 16, triggering_anchors=centre, minimum_crossing_threshold=2) == (7, 9)
