"""Levels, sentences and remedies from counts."""

import json
from dataclasses import replace
from typing import Any

import pytest

from scalor.health import judge_frames
from scalor.health.facts import Facts
from scalor.health.rules import judge
from scalor.health.verdict import Health, Limits, Measure, verdict_of

WELL = Facts(
    frames=300,
    seconds=30.0,
    rows=1500,
    moving_frames=300,
    unseen_frames=0,
    foreground=0.03,
    most_foreground=0.05,
    explained=0.9,
    empty=0.02,
    fill=0.5,
    pairs=500,
    fitting=0.95,
    doubles=0.02,
    object_size=(80.0, 28.0),
    box_size=(80.0, 28.0),
    blob_size=(76.0, 30.0),
    size_limits=None,
    ids=20,
    entered=18,
    appeared=1,
    replaced=1,
    jumps=0,
    steps=1400,
    life=8.0,
    crossing=20.0,
    light_steps=0,
    dropped=0,
    dropping_frames=0,
)
"""A run with nothing to complain of."""


def level(facts: Facts, name: str) -> str:
    return judge(facts)[name].level


def test_a_run_without_fault_is_good_and_has_no_remedies() -> None:
    health = judge(WELL, promised_frames=300, camera="still", motion=0.0)
    assert health.verdict == "good"
    assert all(one.level == "ok" and one.remedy == "" for one in health.measures)
    assert health.lines() == ["health: good"]


@pytest.mark.parametrize(
    ("name", "warn", "bad"),
    [
        ("explained", {"explained": 0.5}, {"explained": 0.1}),
        ("on_nothing", {"empty": 0.3}, {"empty": 0.9}),
        ("fit", {"fitting": 0.5}, {"fitting": 0.1}),
        ("fill", {"fill": 0.15}, {"fill": 0.05}),
        ("size", {"box_size": (160.0, 56.0)}, {"box_size": (320.0, 112.0)}),
        ("size", {"object_size": (40.0, 14.0)}, {"object_size": (20.0, 7.0)}),
        ("doubles", {"doubles": 0.4}, {"doubles": 0.9}),
        ("jumps", {"jumps": 50}, {"jumps": 900}),
        ("life", {"life": 1.0}, {"life": 0.1}),
        ("foreground", {"foreground": 0.4}, {"foreground": 0.7}),
        ("slots", {"dropped": 100, "dropping_frames": 50}, {"dropped": 9000, "dropping_frames": 300}),
        ("found", {"unseen_frames": 180}, {"unseen_frames": 290, "rows": 10}),
    ],
)
def test_each_fault_alone_is_noticed_by_its_own_measure(name: str, warn: dict[str, Any], bad: dict[str, Any]) -> None:
    assert level(WELL, name) == "ok"
    doubtful, useless = judge(replace(WELL, **warn)), judge(replace(WELL, **bad))
    assert (doubtful[name].level, doubtful.verdict) == ("warn", "doubtful")
    assert (useless[name].level, useless.verdict) == ("bad", "not to be trusted")
    assert doubtful[name].remedy
    assert useless[name].remedy


def test_too_many_ids_make_a_run_doubtful_and_no_worse() -> None:
    assert judge(replace(WELL, appeared=60)).verdict == "doubtful"
    assert judge(replace(WELL, replaced=900)).verdict == "doubtful"


def test_a_fit_of_few_boxes_never_makes_a_run_good() -> None:
    few = judge(replace(WELL, pairs=50))
    assert few.verdict == "doubtful"
    assert "Only 50 boxes" in few["fit"].sentence
    assert level(replace(WELL, pairs=50, fitting=0.1), "fit") == "bad"
    assert level(replace(WELL, pairs=5, fitting=0.1), "fit") == "warn"


@pytest.mark.parametrize(("read", "expected"), [(300, "ok"), (299, "ok"), (250, "warn"), (100, "bad")])
def test_missing_frames_are_told_with_their_number(read: int, expected: str) -> None:
    found = judge(replace(WELL, frames=read), promised_frames=300)["frames"]
    assert found.level == expected
    assert f"at least 300 frames, and {read} were read" in found.sentence


def test_nothing_found_although_something_moves_is_not_to_be_trusted() -> None:
    nothing = replace(WELL, rows=0, unseen_frames=300, explained=0.0, empty=None, fill=None, pairs=0, fitting=None)
    nothing = replace(
        nothing, doubles=None, box_size=None, ids=0, entered=0, appeared=0, replaced=0, life=None, steps=0
    )
    health = judge(nothing)
    assert health.verdict == "not to be trusted"
    assert health["found"].level == health["explained"].level == "bad"


def test_nothing_that_moves_and_nothing_found_is_doubtful() -> None:
    still = replace(WELL, rows=0, moving_frames=0, foreground=0.0, explained=None, empty=None, fill=None, fitting=None)
    still = replace(still, doubles=None, box_size=None, blob_size=None, ids=0, entered=0, life=None, steps=0)
    health = judge(still)
    assert health.verdict == "doubtful"
    assert "Nothing moves" in health["found"].sentence
    assert judge(replace(still, light_steps=1)).verdict == "not to be trusted"  # as the light may hide what moves


def test_no_frame_at_all_is_not_to_be_trusted() -> None:
    assert judge(replace(WELL, frames=0, rows=0)).verdict == "not to be trusted"


@pytest.mark.parametrize(
    ("camera", "motion", "expected"),
    [("still", None, "ok"), ("shaking", 1.0, "warn"), ("moving", 0.1, "bad"), (None, 0.1, "ok"), (None, 5.0, "bad")],
)
def test_a_moving_camera_is_told(camera: str | None, motion: float | None, expected: str) -> None:
    assert judge(WELL, camera=camera, motion=motion)["camera"].level == expected


def test_sizes_at_the_limit_of_the_tracker_are_a_warning() -> None:
    assert level(replace(WELL, size_limits=(20.0, 200.0)), "size") == "ok"
    assert level(replace(WELL, size_limits=(20.0, 82.0)), "size") == "warn"


def test_a_step_of_light_is_a_warning() -> None:
    assert judge(replace(WELL, light_steps=1)).verdict == "doubtful"


def test_limits_count_from_either_side() -> None:
    assert [Limits(0.2, 0.5).level(value) for value in (0.1, 0.2, 0.5)] == ["ok", "warn", "bad"]
    assert [Limits(0.5, 0.2).level(value) for value in (0.6, 0.5, 0.2)] == ["ok", "warn", "bad"]


def test_the_verdict_is_that_of_the_worst_measure_in_any_order() -> None:
    ok, warn, bad = (Measure("", 0, "", level, "", "") for level in ("ok", "warn", "bad"))
    assert verdict_of(()) == verdict_of((ok,)) == "good"
    assert verdict_of((warn, ok)) == verdict_of((ok, warn)) == "doubtful"
    assert verdict_of((bad, warn, ok)) == verdict_of((ok, warn, bad)) == "not to be trusted"


def test_lines_begin_with_the_worst() -> None:
    lines = judge(replace(WELL, light_steps=2, explained=0.1)).lines()
    assert lines[0] == "health: not to be trusted"
    assert lines[1].startswith("  bad: Boxes cover 10 %")
    assert lines[2].startswith("  warning: The light")
    assert len(lines) == 3
    assert len(judge(WELL).lines(everything=True)) == 1 + len(judge(WELL).measures)


def test_a_report_is_json_and_comes_back_whole() -> None:
    health = judge(WELL, promised_frames=301)
    back = json.loads(json.dumps(health.to_dict()))
    assert Health(back["verdict"], tuple(Measure(**one) for one in back["measures"])) == health


def test_two_missing_frames_are_a_warning_in_a_video_of_any_length() -> None:
    long = replace(WELL, frames=99_998)
    assert judge(long, promised_frames=99_999)["frames"].level == "ok"
    assert judge(long, promised_frames=100_000)["frames"].level == "warn"


def test_without_a_foreground_missing_frames_are_all_that_is_told() -> None:
    assert judge_frames(20, None) is None
    assert judge_frames(20, 20) is None
    assert judge_frames(19, 20) is None, "files count loosely"
    health = judge_frames(12, 20)
    assert health is not None
    assert health.verdict != "good"
    assert [one.sentence for one in health.measures] == ["The file promises at least 20 frames, and 12 were read."]


def test_a_file_that_is_cut_short_is_told_although_it_promises_no_number_of_frames() -> None:
    found = judge_frames(20, None, "its header promises 9 bytes and it has 8")
    assert found is not None
    assert found["frames"].level == "warn"
    assert "not complete (its header promises 9 bytes and it has 8); 20 frames were read" in found["frames"].sentence
    assert judge_frames(20, 20) is None
    many = judge_frames(20, 40, "its header promises 9 bytes and it has 8")
    assert many is not None
    assert "at least 40 frames" in many["frames"].sentence
