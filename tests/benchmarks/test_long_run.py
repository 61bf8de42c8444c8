"""The long film plays to and fro, its truth goes with it, and memory is watched while the real command runs."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import long_run
from benchmarks.long_run import frames_written, long_truth, to_and_fro, write_long
from scalor.video import open_video

from .walking_boxes import FRAMES, pictures, truth, write_data


def test_no_step_of_the_long_film_jumps_and_no_end_is_shown_twice() -> None:
    order = to_and_fro(FRAMES, 100)
    assert order[0] == 0
    assert set(np.abs(np.diff(order))) == {1}
    assert set(order) == set(range(FRAMES))
    assert to_and_fro(1, 3).tolist() == [0, 0, 0]


def test_the_long_film_shows_the_frames_in_that_order(tmp_path: Path) -> None:
    count = 3 * FRAMES + 5  # more than one round, so that bytes are repeated
    assert write_long(tmp_path / "long.mp4", pictures(), 10, count) == FRAMES
    frames = list(open_video(tmp_path / "long.mp4"))
    assert len(frames) == count
    original = np.stack(pictures()).astype(int)
    for frame, source in zip(frames, to_and_fro(FRAMES, count), strict=True):
        off = np.abs(original - frame.picture).mean((1, 2, 3))
        assert off.argmin() == source, frame.index
    np.testing.assert_allclose([frame.seconds for frame in frames], np.arange(count) / 10, atol=1e-3)


def test_truth_follows_the_film_and_whoever_comes_back_is_new() -> None:
    rows = long_truth(truth(), FRAMES, 3 * FRAMES)
    order = to_and_fro(FRAMES, 3 * FRAMES)
    for number, source in enumerate(order, 1):
        np.testing.assert_array_equal(rows.within(number, number).box, truth().within(source + 1, source + 1).box)
    # Both boxes are in view at the end, where the film first turns: they stay who they are.
    assert rows.within(FRAMES, FRAMES).id.tolist() == rows.within(FRAMES + 1, FRAMES + 1).id.tolist() == [1, 2]
    # At the beginning, where it turns again, the second box is out of view: who comes then is a third one.
    assert rows.within(2 * FRAMES, 2 * FRAMES).id.tolist() == [1]
    assert rows.within(2 * FRAMES + 3, 2 * FRAMES + 3).id.tolist() == [1, 3]


def test_progress_is_read_from_the_last_whole_line_that_is_new(tmp_path: Path) -> None:
    assert frames_written(tmp_path, 0) == 0
    (tmp_path / ".partial").mkdir()
    table = tmp_path / ".partial" / "tracks.csv"
    table.write_text("")
    assert frames_written(tmp_path, 0) == 0
    table.write_text("frame,seconds,id\n")
    assert frames_written(tmp_path, 0) == 0
    table.write_text("frame,seconds,id\n0,0.0,1\n41,0.1,1\n42,0")
    assert frames_written(tmp_path, 0) == 42
    assert frames_written(tmp_path, table.stat().st_mtime + 1) == 0


def test_the_real_command_is_watched_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, figures = write_data(tmp_path / "data"), tmp_path / "figures.json"
    words = ["--data", str(data), "--frames", "30", "--piece", "12", "--weights", "shapes-md"]
    assert long_run.main([*words, "--out", str(tmp_path / "out"), "--json", str(figures)]) == 0
    found = json.loads(figures.read_text())
    assert {"command", "commit", "hardware", "date", "seed"} <= set(found)
    assert found["error"] is None
    assert [row["frames"] for row in found["rows"]] == ["1-12", "13-24", "25-30"]
    assert all(row["MOTA"] is not None for row in found["rows"])
    assert found["rows"][-1]["mib"] > 50
    assert "1-12" in capsys.readouterr().out
