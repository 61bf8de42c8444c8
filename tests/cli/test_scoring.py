"""`scalor score` as a command: its table, its document and its refusals."""

import argparse
import json
from pathlib import Path

import pytest

from scalor.cli.scoring import frame_range, score
from scalor.errors import InputError


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    path = tmp_path / "boxes.txt"
    path.write_text("".join(f"{t},1,{3 * t},0,30,40,1\n" for t in range(1, 9)))
    return path


def asked(boxes: Path, json: bool) -> argparse.Namespace:
    words = {"tracks": str(boxes), "truth": str(boxes), "frames": "3-6", "minimum_presence": None}
    return argparse.Namespace(**words, json=json)


def test_a_table_or_a_document(boxes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(asked(boxes, json=False)) == 0
    shown = capsys.readouterr().out
    for word in ("MOTA", "IDF1", "HOTA", "iou .5", "iou .3", "centre", "frames 3-6"):
        assert word in shown
    assert score(asked(boxes, json=True)) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["frames"], document["objects"]) == ([3, 6], 4)
    assert document["gates"]["centre"]["mota"] == 1


@pytest.mark.parametrize("word", ["478", "0-5", "9-3", "a-b", "-5", "1-2-3"])
def test_frames_that_make_no_sense(word: str) -> None:
    with pytest.raises(InputError) as error:
        frame_range(word)
    assert str(error.value) == (
        f"--frames is {word!r}: give the first frame and the last, from 1 on, for example 478-795."
    )


def test_a_range_of_frames() -> None:
    assert frame_range("478-795") == (478, 795)
