"""`scalor score` as a command: its table, its document and its refusals."""

import argparse
import json
from pathlib import Path

import pytest

from scalor.cli.score import frame_range, run
from scalor.errors import InputError

from .conftest import Say


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    path = tmp_path / "boxes.txt"
    path.write_text("".join(f"{t},1,{3 * t},0,30,40,1\n" for t in range(1, 9)))
    return path


def asked(boxes: Path, json: bool) -> argparse.Namespace:
    words = {"tracks": [str(boxes)], "truth": str(boxes), "frames": "3-6", "minimum_presence": None}
    return argparse.Namespace(**words, json=json)


def test_a_table_or_a_document(boxes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(asked(boxes, json=False), []) == 0
    shown = capsys.readouterr().out
    for word in ("MOTA", "IDF1", "HOTA", "iou .5", "iou .3", "centre", "frames 3-6"):
        assert word in shown
    assert run(asked(boxes, json=True), []) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["frames"], document["objects"]) == ([3, 6], 4)
    assert document["gates"]["centre"]["mota"] == 1


def test_what_scalor_track_wrote_is_scored(say: Say, weights: Path, videos: dict[str, Path]) -> None:
    """Against itself, so it must be perfect; in the numbers of the video although it was tracked only in part."""
    assert say("track", videos["npy"], "--weights", weights, "--start", 0.2).code == 0
    for name in ("tracks.csv", "tracks_mot.txt"):
        document = say("score", f"tracked/{name}", "--truth", "tracked/tracks_mot.txt", "--json").document
        assert document["frames"][0] == 3
        assert document["gates"]["iou .5"]["mota"] == document["gates"]["iou .5"]["idf1"] == 1
    assert "MOTA" in say("score", "tracked/tracks.csv", "--truth", "tracked/tracks_mot.txt", "--frames", "4-5").out
    words = ("score", "tracked/tracks.csv", "--truth", "tracked/tracks_mot.txt", "--minimum-presence", 1, "--json")
    assert say(*words).document["gates"]["iou .5"]["recall"] == 0


def test_several_files_are_scored_in_one_run(say: Say, boxes: Path) -> None:
    Path("few.txt").write_text("".join(boxes.read_text().splitlines(keepends=True)[:4]))
    words = ("score", boxes, "few.txt", "--truth", boxes)
    whole, few = say(*words, "--json").document
    assert (whole["gates"]["iou .5"]["recall"], few["gates"]["iou .5"]["recall"]) == (1, 0.5)
    tables = say(*words).out.split("\n\n")
    assert [table.splitlines()[0] for table in tables] == [str(boxes), "few.txt"]


def test_a_table_that_lacks_a_column(say: Say, boxes: Path) -> None:
    Path("tracks.csv").write_text("frame,seconds,id,x0,y0,x1,y1,x,y,discovered\n0,0,1,1,1,2,2,1.5,1.5,1\n")
    complaint = say("score", "tracks.csv", "--truth", boxes).complaint
    assert complaint == "tracks.csv has no column confidence: give a tracks.csv as `scalor track` writes it."


@pytest.mark.parametrize("word", ["478", "0-5", "9-3", "a-b", "-5", "1-2-3"])
def test_frames_that_make_no_sense(word: str) -> None:
    with pytest.raises(InputError) as error:
        frame_range(word)
    assert str(error.value) == (
        f"--frames is {word!r}: give the first frame and the last, from 1 on, for example 478-795."
    )


def test_a_range_of_frames() -> None:
    assert frame_range("478-795") == (478, 795)
