"""Whole runs: bodies that walk, tracked well and in many bad ways."""

import time
from typing import Any

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.health import HealthMonitor

from .stories import BODY, FPS, HEIGHT, WIDTH, Rows, Spoil, foreground, tracks_of, walks, watched


def moved(share: float) -> Spoil:
    way = share * BODY[1]
    return lambda number, rows: [(id, x0 + way, y0, x1 + way, y1) for id, x0, y0, x1, y1 in rows]


def grown(share: float) -> Spoil:
    def spoil(number: int, rows: Rows) -> Rows:
        dx, dy = share * BODY[1] / 2, share * BODY[0] / 2
        return [(id, x0 - dx, y0 - dy, x1 + dx, y1 + dy) for id, x0, y0, x1, y1 in rows]

    return spoil


def with_others(number: int, rows: Rows) -> Rows:
    """As many boxes again where nothing is."""
    return rows + [(1000 + id, x0, 36, x1, 42) for id, x0, y0, x1, y1 in rows]


def twice(number: int, rows: Rows) -> Rows:
    return rows + [(1000 + id, x0 + 1, y0 + 1, x1 + 1, y1 + 1) for id, x0, y0, x1, y1 in rows]


def test_the_truth_is_good() -> None:
    health = watched().report(promised_frames=200)
    assert health.verdict == "good", health.lines()


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (lambda number, rows: [], "found"),
        (lambda number, rows: [row for row in rows if row[0] % 6 == 0], "explained"),
        (moved(0.8), "fit"),
        (grown(2.0), "fit"),
        (grown(-0.6), "fit"),
        (with_others, "on_nothing"),
        (twice, "doubles"),
        (lambda number, rows: [(10 * number + id, *box) for id, *box in rows], "life"),
    ],
)
def test_bad_tracks_are_not_to_be_trusted_and_the_reason_is_named(spoil: Spoil, name: str) -> None:
    health = watched(spoil).report()
    assert health.verdict == "not to be trusted"
    assert health[name].level == "bad", health.lines()


def test_ids_that_change_places_are_doubtful_for_their_jumps() -> None:
    def swapped(number: int, rows: Rows) -> Rows:
        turn = number // 8 % max(1, len(rows))
        return sorted((rows[(n + turn) % len(rows)][0], *row[1:]) for n, row in enumerate(rows))

    health = watched(swapped).report()
    assert health.verdict == "doubtful"
    assert health["jumps"].level == "warn"


def test_an_id_that_is_lost_and_found_in_the_middle_counts_as_new() -> None:
    def renamed(number: int, rows: Rows) -> Rows:
        return [(100 * (number // 10) + row[0], *row[1:]) for row in rows]

    facts = watched(renamed).facts()
    assert facts.replaced > 40
    assert facts.appeared == 0
    assert watched(renamed).report()["ids"].level == "warn"


def test_a_region_moves_the_origin_of_masks_and_borders() -> None:
    whole, part = watched(frames=100), HealthMonitor((200, 300), FPS, BODY, region=(40, 60, 40 + WIDTH, 60 + HEIGHT))
    for number, rows in walks(100):
        there = [(id, x0 + 40, y0 + 60, x1 + 40, y1 + 60) for id, x0, y0, x1, y1 in rows]
        part.step(number, foreground(rows), tracks_of(number, there))
    assert part.facts() == whole.facts()


def test_light_and_dropped_detections_are_counted() -> None:
    monitor = HealthMonitor((HEIGHT, WIDTH), FPS, BODY)
    for number, rows in walks(50):
        light = 0.2 if number == 20 else 0.001
        monitor.step(number, foreground(rows), tracks_of(number, rows), light, dropped=3 * (number % 2))
    facts = monitor.facts()
    assert (facts.light_steps, facts.dropped, facts.dropping_frames) == (1, 75, 25)
    assert "75 detections in 25 frames" in monitor.report()["slots"].sentence


def test_a_run_of_no_frames_has_a_report() -> None:
    health = HealthMonitor((10, 10), 25).report()
    assert health.verdict == "not to be trusted"


def test_tracks_of_nothing_over_noise_have_a_report() -> None:
    random, monitor = np.random.default_rng(0), HealthMonitor((HEIGHT, WIDTH), FPS)
    for number in range(20):
        monitor.step(number, random.random((HEIGHT, WIDTH)) < 0.7, tracks_of(number, []))
    assert monitor.report()["foreground"].level == "bad"


def test_memory_does_not_grow_with_the_length_of_a_video() -> None:
    short, long = watched(frames=60), watched(frames=600)
    assert len(long.lifetimes.alive) <= len(short.lifetimes.alive) + 6
    assert long.coverage.fill.weight.shape == short.coverage.fill.weight.shape


def test_a_frame_takes_a_few_milliseconds_at_most() -> None:
    monitor, mask = HealthMonitor((576, 768), 10, (80, 28)), np.zeros((288, 384), bool)
    rows = [(id, 90.0 * id, 100.0, 90.0 * id + 28, 180.0) for id in range(8)]
    for _, x0, y0, x1, y1 in rows:
        mask[int(y0 / 2) : int(y1 / 2), int(x0 / 2) : int(x1 / 2)] = True
    times = []
    for number in range(30):
        start = time.perf_counter()
        monitor.step(number, mask, tracks_of(number, rows))
        times.append(time.perf_counter() - start)
    assert min(times) < 0.004  # about 1 ms; twice the promise, as machines differ


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"frame_size": (0, 10), "fps": 10}, "frame_size is 0 x 10"),
        ({"frame_size": (10, 10), "fps": float("nan")}, "fps is nan"),
        ({"frame_size": (10, 10), "fps": 10, "object_size": (-1, 5)}, "object_size is -1 x 5"),
        ({"frame_size": (10, 10), "fps": 10, "region": (5, 0, 5, 9)}, "region's height and width is 9 x 0"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        HealthMonitor(**settings)


def test_an_unknown_word_for_the_camera_is_refused() -> None:
    with pytest.raises(InputError, match="camera is 'drone': choose from still, shaking, moving"):
        HealthMonitor((10, 10), 25).report(camera="drone")
