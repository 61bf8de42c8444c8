"""The benchmark of many kinds of videos, with a tracker that knows the truth in place of the real one."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import any_video
from benchmarks.any_video import SHEET_COLUMNS, SHEET_ROWS, SHEET_WIDTH, Subject, contact_sheet, row_of, side_by_side
from benchmarks.track_command import CLASSICAL, Tracked

from .walking_boxes import DIM, FRAMES, perfect, truth, write_data


def test_both_trackers_stand_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half_blind(video: Path, folder: Path, weights: str | None) -> Tracked:
        rows = truth()
        return perfect(folder, rows.select(rows.id == 4) if weights == CLASSICAL else rows, {"verdict": "good"})

    monkeypatch.setattr(any_video, "track", half_blind)
    monkeypatch.setitem(any_video.SUBJECTS, "pets", replace(any_video.SUBJECTS["pets"], scored=(3, FRAMES)))
    data, figures = write_data(tmp_path / "data"), tmp_path / "figures.json"
    out = tmp_path / "out"
    assert any_video.main(["--data", str(data), "--only", "pets", "--out", str(out), "--json", str(figures)]) == 0
    printed = capsys.readouterr().out
    assert "default / classical-motion" in printed
    head, _, line = printed.splitlines()[5:8]
    assert head.startswith("video  MOTA     IDF1")
    assert line.startswith("pets   1 / 0.5  1 / 0.6667")
    assert "good / good" in line
    found = json.loads(figures.read_text())
    assert {"command", "commit", "hardware", "date", "seed"} <= set(found)
    assert [row["ids"] for row in found["rows"]] == [2, 1]
    assert [row["tracker"] for row in found["rows"]] == ["default", CLASSICAL]
    assert {"pets-default.png", "pets-classical-motion.png"} <= {path.name for path in out.iterdir()}


def test_counts_are_compared_with_the_known_number(tmp_path: Path) -> None:
    row, _ = row_of("fish", Subject("fish.avi", number=2), perfect(tmp_path, truth()), tmp_path)
    assert row.right_count == pytest.approx(10 / 12, abs=1e-3)  # the second box comes in the third frame
    assert row.mean_count == pytest.approx(22 / 12, abs=0.01)
    assert (row.median_count, row.ids, row.median_length, row.MOTA) == (2, 2, 11, None)


def test_a_failed_run_has_no_figures(tmp_path: Path) -> None:
    failed = Tracked(tmp_path, "scalor track", 1.0, {}, "no luck today")
    row, document = row_of("fish", Subject("fish.avi", number=2), failed, tmp_path)
    assert row.verdict == "failed"
    assert document["error"] == "no luck today"
    assert side_by_side([row], [row]).splitlines()[2] == "fish   failed / failed"


def test_a_contact_sheet_shows_boxes_in_six_frames(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    contact_sheet(data / "pets" / "vtest.avi", truth(), tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    height = SHEET_WIDTH * 48 // 64
    assert sheet.shape == (SHEET_ROWS * height, SHEET_COLUMNS * SHEET_WIDTH, 3)
    scale = SHEET_WIDTH / 64
    coloured = np.ptp(sheet.astype(int), axis=2) > 40  # boxes alone are not grey
    x0, y0, x1, y1 = (scale * truth().within(FRAMES, FRAMES).box[0]).astype(int)
    last = coloured[-height:, -SHEET_WIDTH:]
    assert last[y0 : y0 + 2, x0:x1].mean() > 0.9
    assert last[(y0 + y1) // 2, x0 + 4 : x1 - 4].mean() < 0.1
    assert abs(int(sheet[2, 2, 0]) - DIM) < 6
