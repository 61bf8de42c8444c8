"""An Excel workbook, read back by openpyxl and pandas."""

from dataclasses import replace
from pathlib import Path

import pandas
import pytest

from scalor.errors import InputError
from scalor.exports import ExportSource, workbook, write_workbook
from scalor.measures import per_track, samples_of

openpyxl = pytest.importorskip("openpyxl")


def test_the_sheets_hold_the_tracks_and_their_measures(source: ExportSource, tmp_path: Path) -> None:
    write_workbook(tmp_path / "out.xlsx", replace(source, names={1: "=1+1", 3: "dancer"}))
    sheets = pandas.read_excel(tmp_path / "out.xlsx", sheet_name=None)
    assert list(sheets) == ["tracks", "per_track", "per_frame", "about"]
    assert len(sheets["tracks"]) == len(source.tracks)
    assert sheets["tracks"].loc[sheets["tracks"]["id"] == 3, "name"].unique().tolist() == ["dancer"]
    assert sheets["tracks"]["speed_mm_per_s"].isna().sum() == 3
    expected = per_track(samples_of(source.tracks, source.calibration))
    assert sheets["per_track"]["path_mm"].tolist() == pytest.approx(expected["path_mm"].tolist())
    assert sheets["per_track"]["name"][0] == "'=1+1"
    assert sheets["per_frame"]["objects"].sum() == len(source.tracks)
    about = dict(zip(sheets["about"]["what"], sheets["about"]["value"], strict=True))
    assert (about["command"], about["mm per pixel"]) == ("drawn", 0.5)
    assert openpyxl.load_workbook(tmp_path / "out.xlsx")["tracks"].freeze_panes == "A2"


def test_too_many_rows_are_refused(source: ExportSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "MOST_ROWS", 100)
    with pytest.raises(InputError, match="118 rows and a sheet of Excel 100"):
        write_workbook(tmp_path / "out.xlsx", source)
    assert not (tmp_path / "out.xlsx").exists()
