"""What is read from the files and the words of `scalor track`."""

from pathlib import Path

import pytest

from benchmarks.spoiling import write_truth
from benchmarks.track_command import Tracked, finished, gate_figures, words_for

from .walking_boxes import perfect, truth


def test_weights_are_named_only_when_asked_for() -> None:
    assert "--weights" not in words_for(Path("a.mp4"), Path("out"), None)
    words = words_for(Path("a.mp4"), Path("out"), "pets")
    assert words[words.index("--weights") + 1] == "pets"
    assert "--json" in words


@pytest.mark.parametrize(
    ("document", "verdict"), [({}, "-"), ({"health": {"verdict": "poor"}}, "poor"), ({"health": None}, "-")]
)
def test_a_verdict_is_told_where_there_is_one(document: dict[str, object], verdict: str) -> None:
    assert Tracked(Path(), "", 1.0, document, None).verdict == verdict


def test_a_command_that_fails_is_told_by_its_last_line() -> None:
    failed = finished(Path(), ["track", "a b.mp4"], 1.0, 2, "", "a warning\nscalor: no such file\n")
    assert (failed.verdict, failed.error, failed.command) == (
        "failed",
        "scalor: no such file",
        "scalor track 'a b.mp4'",
    )
    assert failed.score(Path("gt.txt")) is None


def test_a_tracker_that_knows_the_truth_scores_one(tmp_path: Path) -> None:
    write_truth(tmp_path / "gt.txt", truth())
    tracked = perfect(tmp_path, truth())
    assert gate_figures(tracked.score(tmp_path / "gt.txt"), "iou .5") == {"mota": 1, "idf1": 1, "hota": 1}
    assert tracked.score(None) is None
    assert gate_figures(None, "iou .5") == {"mota": None, "idf1": None, "hota": None}
