"""The benchmark of sabotages from end to end, with a tracker that knows the truth in place of the real one."""

import json
from pathlib import Path

import pytest

from benchmarks import sabotage
from benchmarks.track_command import CLASSICAL, Tracked

from .walking_boxes import PART, perfect_from, write_data

PART_WORDS = ["--frames", "1-12", "--scored", "3-12"]


def knows_the_truth(video: Path, folder: Path, weights: str | None) -> Tracked:
    if weights == CLASSICAL:
        return Tracked(folder, f"scalor track {video}", 0.5, {}, "no luck today")
    return perfect_from(video.with_suffix(".txt"), folder)


def test_a_table_and_a_json_say_how_each_tracker_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sabotage, "track", knows_the_truth)
    data = write_data(tmp_path / "data")
    words = ["--data", str(data), "--only", "none", "pan", "--classical", "--out", str(tmp_path / "out")]
    words += ["--json", str(tmp_path / "figures.json"), "--seed", "3", *PART_WORDS]
    assert sabotage.main(words) == 0
    printed = capsys.readouterr().out
    assert "name  tracker           MOTA  IDF1  HOTA  ids  true ids  verdict  seconds" in printed
    assert "none  default              1     1     1    2         2  -            1.5" in printed
    assert "pan   classical-motion     -     -     -    -         -  failed       0.5" in printed
    assert "no luck today" in printed
    found = json.loads((tmp_path / "figures.json").read_text())
    assert {"command", "commit", "hardware", "date", "seed"} <= set(found)
    assert found["command"].startswith("python -m benchmarks.sabotage --data")
    assert found["seed"] == 3
    assert [(row["name"], row["tracker"]) for row in found["rows"]] == [
        (name, tracker) for name in ("none", "pan") for tracker in ("default", CLASSICAL)
    ]
    assert found["rows"][2]["scores"]["gates"]["centre"]["mota"] == 1


def test_a_film_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    first = sabotage.film("noise", data, PART, 0, tmp_path)
    made = first.video.stat().st_mtime_ns
    assert sabotage.film("noise", data, PART, 0, tmp_path) == first
    assert first.video.stat().st_mtime_ns == made
    assert sabotage.film("noise", data, PART, 1, tmp_path).video != first.video


def test_scored_frames_must_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sabotage.main(["--data", str(tmp_path), "--frames", "5-12", "--scored", "3-12"]) == 2
    assert "--scored is 3-12" in capsys.readouterr().err
