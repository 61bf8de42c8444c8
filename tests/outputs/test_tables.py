"""Tables say what the tracks say, in the forms that others read."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from scalor.evaluation.score import read_boxes
from scalor.outputs import tables
from scalor.outputs.tables import ParquetTable, TrackedFrame, TrackTables, mean_counts
from scalor.track_files import COLUMNS
from scalor.tracks import join_tracks
from tests.outputs.stories import SIZE, shots


def frames() -> list[TrackedFrame]:
    return [TrackedFrame(*shot) for shot in shots(30, stride=2, first=7)]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    with TrackTables(tmp_path) as files:
        for frame in frames():
            files.add(frame)
    return tmp_path


def expected() -> dict[str, np.ndarray]:
    """The columns, from the tracks themselves."""
    video = frames()
    tracks = join_tracks([replace(frame.tracks, frame=np.full(len(frame.tracks), frame.index)) for frame in video])
    boxes = dict(zip(("x0", "y0", "x1", "y1"), tracks.box.T, strict=True))
    x, y = tracks.centre.T
    sure = {"confidence": tracks.confidence, "discovered": tracks.discovered}
    return {"frame": tracks.frame, "seconds": tracks.frame / 25, "id": tracks.id, **boxes, "x": x, "y": y, **sure}


def test_a_csv_read_back_is_the_tracks(written: Path) -> None:
    with open(written / "tracks.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == tuple(COLUMNS)
    for name, values in expected().items():
        assert np.allclose([float(row[name]) for row in rows], values, atol=5.1e-4), name
    assert {row["discovered"] for row in rows} == {"0", "1"}


def test_motchallenge_text_has_ten_columns_and_counts_from_one(written: Path) -> None:
    rows = [[float(word) for word in line.split(",")] for line in (written / "tracks_mot.txt").read_text().splitlines()]
    table, want = np.array(rows), expected()
    assert table.shape[1] == 10
    assert np.array_equal(table[:, 0], want["frame"] + 1)
    assert np.array_equal(table[:, 1], want["id"])
    assert table[:, 1].min() == 1
    corners = np.stack([want[name] for name in ("x0", "y0", "x1", "y1")], axis=1)
    assert np.allclose(table[:, 2:6], np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1), atol=6e-4)
    assert (table[:, 7:] == -1).all()
    assert np.allclose(read_boxes(written / "tracks_mot.txt").box, corners, atol=2e-3)


def test_motchallenge_text_is_that_of_the_tracks_themselves(tmp_path: Path, written: Path) -> None:
    video = frames()
    whole = join_tracks([replace(frame.tracks, frame=np.full(len(frame.tracks), frame.index)) for frame in video])
    whole.to_mot(tmp_path / "whole.txt")
    assert (tmp_path / "whole.txt").read_text() == (written / "tracks_mot.txt").read_text()


def test_counts_name_every_frame_also_those_without_objects(written: Path) -> None:
    with open(written / "counts.csv", newline="") as file:
        rows = [tuple(float(value) for value in row.values()) for row in csv.DictReader(file)]
    assert np.allclose(rows, [(frame.index, frame.seconds, len(frame.tracks)) for frame in frames()])
    assert rows[0][2] == 0


@pytest.mark.parametrize("points", [1, 7, 15, 30, 1000])
def test_mean_counts_keep_the_mean_in_few_points(points: int, written: Path) -> None:
    seconds, objects = mean_counts(written / "counts.csv", 30, points)
    assert len(seconds) == len(objects) <= points
    assert seconds == sorted(seconds)
    truth = [len(frame.tracks) for frame in frames()]
    if points == 1000:
        assert objects == truth
    if 30 % points == 0:
        assert np.mean(objects) == pytest.approx(np.mean(truth))


def test_a_parquet_file_gets_the_same_columns_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP", 16)
    with ParquetTable(tmp_path / "tracks.parquet", SIZE) as table:
        for frame in frames():
            table.add(frame)
    file = parquet.ParquetFile(tmp_path / "tracks.parquet")
    assert file.num_row_groups > 2
    read = file.read()
    assert read.column_names == list(COLUMNS)
    for name, values in expected().items():
        column = read[name].to_numpy()
        assert np.allclose(column, values, rtol=0, atol=1e-12), name
        assert column.dtype == {"frame": "int64", "id": "int64", "discovered": "int8"}.get(name, "float64")
