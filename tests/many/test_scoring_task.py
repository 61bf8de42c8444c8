"""Scores of many videos: each against its own truth, and all together by the sums of their counts."""

import json
from pathlib import Path

import pytest

import scalor

from .conftest import Say

HEADER = "frame,seconds,id,x0,y0,x1,y1,x,y,confidence,discovered\n"


def boxes(count: int, shift: float = 0.0) -> str:
    """Tracks of one object."""
    return HEADER + "".join(f"{t},0,1,{3 * t + shift},0,{3 * t + shift + 20},30,0,0,1,0\n" for t in range(count))


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: None) -> Path:
    """Results of four videos, and the truths of three of them."""
    monkeypatch.chdir(tmp_path)
    for name, shift in (("exact", 0), ("off", 100), ("damaged", 0), ("new", 0)):
        Path("results/tracked", name).mkdir(parents=True)
        Path("results/tracked", name, "tracks.csv").write_text(boxes(8, shift))
        Path("results/tracked", name, "report.html").touch()
    Path("truths/off/gt").mkdir(parents=True)
    Path("truths/exact.csv").write_text(boxes(8))
    Path("truths/off/gt/gt.txt").write_text("".join(f"{t + 1},1,{3 * t},0,20,30,1\n" for t in range(24)))
    Path("truths/damaged.txt").write_text("this is no truth\n")
    Path("truths/other.csv").write_text(boxes(3))
    return Path("results")


def test_each_video_is_scored_against_its_truth(results: Path, say: Say) -> None:
    said = say("score", "results", "--truth", "truths")
    assert said.code == 1
    lines = {line.split()[0]: line.split() for line in said.out.splitlines()}
    assert lines["exact"][1:] == ["1.000", "1.000", "1.000", "1.000", "1.000", "0"]
    assert lines["off"][1:5] == ["-0.333", "0.000", "0.000", "0.000"]
    assert lines["all"][2] == "0.000"  # 8 matches, 24 misses and 8 false boxes of 32
    assert "failed: damaged: " in said.out
    assert "1 have no truth: new" in said.out
    assert "1 were not tracked: other" in said.out
    document = json.loads(Path("results/scores.json").read_text())
    assert document["together"]["iou .5"]["recall"] == 8 / 32
    assert document["videos"]["exact"]["iou .5"]["hota"] == 1
    alone = scalor.score("results/tracked/off/tracks.csv", "truths/off/gt/gt.txt").gates["centre"]
    assert document["videos"]["off"]["centre"] == alone.to_dict()


def test_scores_are_kept_until_something_changes(results: Path) -> None:
    from scalor.many.scoring_task import score_many

    def states() -> dict[str, str]:
        return {one.name: one.state for one in score_many("results", "truths", quiet=True).outcomes}

    Path("truths/damaged.txt").unlink()
    assert states() == {"exact": "done", "off": "done"}
    assert states() == {"exact": "kept", "off": "kept"}
    Path("results/tracked/off/tracks.csv").write_text(boxes(9))
    assert states() == {"exact": "kept", "off": "done"}
    Path("truths/exact.csv").write_text(boxes(9))
    assert states() == {"exact": "done", "off": "kept"}


def test_folders_that_do_not_fit_are_refused(results: Path, say: Say) -> None:
    assert "give one folder of results" in say("score", "a.csv", "--truth", "truths").complaint
    Path("empty").mkdir()
    assert (
        "no video of results has a truth in empty: name the truths"
        in say("score", "results", "--truth", "empty").complaint
    )
