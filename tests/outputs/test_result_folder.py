"""All results of a video through one door: complete or not there, in memory that does not grow."""

import csv
import importlib.util
import json
import os
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence
from pyarrow import parquet

from scalor.errors import InputError
from scalor.outputs import FILES, ResultFolder
from scalor.outputs.result_folder import Summary
from scalor.replacement import MANIFEST
from scalor.video import iterate_frames
from tests.outputs.stories import SIZE, contents, shots

MASKS = {"masks.json", "labels.tif", "labels.mp4"}
ALWAYS = set(FILES) - MASKS - {"tracks.parquet"}


@pytest.fixture(autouse=True)
def _without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "pyarrow")


def hide(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """As if the packages were not installed."""
    find = importlib.util.find_spec

    def found(name: str, *rest: Any) -> ModuleSpec | None:
        return None if name in packages else find(name, *rest)

    for room in ("result_folder", "tables"):
        monkeypatch.setattr(f"scalor.outputs.{room}.find_spec", found)


def write(folder: Path, count: int = 30, masks: bool = False, stride: int = 1, **options: Any) -> Summary:
    with ResultFolder(folder, SIZE, 24, masks=masks, stride=stride, **options) as results:
        for shot in shots(count, masks=masks, stride=stride):
            results.add(*shot)
    return results.summary


def top(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("masks", [False, True])
def test_everything_promised_is_there_and_nothing_else(masks: bool, tmp_path: Path) -> None:
    summary = write(tmp_path / "out", masks=masks, facts={"video": "ants.mp4"})
    assert {path.name for path in summary.files} == ALWAYS | (MASKS if masks else set())
    assert top(tmp_path / "out") == {path.name for path in summary.files} | {MANIFEST}
    ids = [shot.tracks.id for shot in shots(30)]
    assert (summary.frames, summary.rows) == (30, sum(map(len, ids)))
    assert summary.objects == len(np.unique(np.concatenate(ids)))
    report = (tmp_path / "out" / "report.html").read_text()
    assert all(f'href="{path.name}"' in report for path in summary.files)


def test_with_pyarrow_the_folder_has_the_table_as_parquet_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # pyarrow is installed
    summary = write(tmp_path / "out")
    assert tmp_path / "out" / "tracks.parquet" in summary.files
    table = parquet.read_table(tmp_path / "out" / "tracks.parquet")
    with open(tmp_path / "out" / "tracks.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert table["id"].to_pylist() == [int(row["id"]) for row in rows]
    np.testing.assert_allclose(table["x0"].to_numpy(), [float(row["x0"]) for row in rows], atol=1e-3)


def test_napari_gets_rows_sorted_by_object_and_time_at_the_middles_of_pixels(tmp_path: Path) -> None:
    write(tmp_path, stride=3)
    with open(tmp_path / "tracks_napari.csv", newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["track_id", "t", "y", "x"]
    table = np.array(rows, float)
    assert np.array_equal(np.lexsort((table[:, 1], table[:, 0])), np.arange(len(table)))
    expected = [
        (number, shot.index, y - 0.5, x - 0.5)
        for shot in shots(30, stride=3)
        for number, (x, y) in zip(shot.tracks.id, shot.tracks.centre, strict=True)
    ]
    assert np.allclose(table, sorted(expected), atol=6e-4)


def test_videos_have_a_picture_for_every_frame_at_the_pace_of_the_original(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    write(tmp_path, masks=True, stride=4)
    for name in ("overlay.mp4", "labels.mp4"):
        with av.open(tmp_path / name) as container:
            assert container.streams.video[0].average_rate == 6
        pictures = list(iterate_frames(tmp_path / name))
        assert len(pictures) == 30
        assert pictures[0].shape == (*SIZE, 3)


def test_label_pages_and_masks_agree_with_the_tracks(tmp_path: Path) -> None:
    write(tmp_path, masks=True)
    with Image.open(tmp_path / "labels.tif") as file:
        pages = [np.array(page) for page in ImageSequence.Iterator(file)]
    for page, shot in zip(pages, shots(30, masks=True), strict=True):
        assert shot.tracks.masks is not None
        labels = np.zeros(SIZE, int)
        for number, mask in zip(shot.tracks.id, shot.tracks.masks, strict=True):
            labels[mask] = number
        assert np.array_equal(page, labels)
    document = json.loads((tmp_path / "masks.json").read_text())
    assert len(document["images"]) == 30


def test_a_scene_may_be_given_to_draw_paths_on(tmp_path: Path) -> None:
    write(tmp_path / "white", scene=np.full((*SIZE, 3), 255, np.uint8))
    write(tmp_path / "black", scene=np.zeros((*SIZE, 3), np.uint8))
    white, black = (np.array(Image.open(tmp_path / name / "trajectories.png")) for name in ("white", "black"))
    assert np.median(white) > 100 > np.median(black) == 0


class Broken(BaseException):
    pass


@pytest.mark.parametrize("failure", [KeyboardInterrupt, Broken, ValueError])
@pytest.mark.parametrize("before", [True, False])
def test_an_interrupted_run_leaves_what_was_there(before: bool, failure: type[BaseException], tmp_path: Path) -> None:
    if before:
        write(tmp_path, masks=True)
    (tmp_path / "mine.txt").write_text("not a result")
    kept = contents(tmp_path)

    def interrupted() -> None:
        with ResultFolder(tmp_path, SIZE, 24, masks=True) as results:
            for shot in shots(9, masks=True, seed=1):
                results.add(*shot)
            assert any(path.parent.name == ".partial" for path in tmp_path.rglob("*"))
            raise failure

    with pytest.raises(failure):
        interrupted()
    assert contents(tmp_path) == kept


def test_a_failure_in_the_very_last_step_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    kept = contents(tmp_path)

    def fail(self: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scalor.outputs.result_folder.HtmlReport.to_html", fail)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, 12)
    assert contents(tmp_path) == kept


def test_a_new_run_replaces_all_of_an_earlier_one_and_leaves_other_files(tmp_path: Path) -> None:
    write(tmp_path, masks=True)
    (tmp_path / "mine.txt").write_text("not a result")
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial" / "tracks.csv").write_text("left by a run that was killed")
    write(tmp_path, 12)
    assert top(tmp_path) == ALWAYS | {"mine.txt", MANIFEST}
    assert {path.name for path in (tmp_path / "report_viewer").iterdir()} == {"index.js", "rows-0.js", "video.mp4"}
    assert (tmp_path / "counts.csv").read_text().count("\n") == 13


def test_a_folder_of_someone_else_with_the_name_of_the_players_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "report_viewer").mkdir()
    (tmp_path / "report_viewer" / "thesis.txt").write_text("not a result")
    with pytest.raises(InputError, match=r"report_viewer .it is a folder.: move it away"):
        write(tmp_path)
    assert set(contents(tmp_path)) == {"report_viewer", "report_viewer/thesis.txt"}


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_told_at_once(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file, not a folder")
    with pytest.raises(InputError, match=r"cannot be written \(.+\): choose another with --out"):
        ResultFolder(tmp_path / where, SIZE, 24)


def test_without_matplotlib_only_the_plot_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "matplotlib", "pyarrow")
    with pytest.warns(UserWarning, match=r"counts\.png is left out: it needs the package matplotlib; run pip install"):
        summary = write(tmp_path)
    assert {path.name for path in summary.files} == ALWAYS - {"counts.png"}
    assert "counts.png is left out" in (tmp_path / "report.html").read_text()


def test_a_video_in_which_nothing_is_found_has_results_too(tmp_path: Path) -> None:
    summary = write(tmp_path, 1, masks=True)
    assert (summary.frames, summary.objects, summary.rows) == (1, 0, 0)
    assert "Nothing was found" in (tmp_path / "report.html").read_text()


def test_what_cannot_be_added_is_said_in_a_sentence(tmp_path: Path) -> None:
    *_, shot = shots(9)
    tracks = shot.tracks
    with ResultFolder(tmp_path, SIZE, 24) as results:
        results.add(*shot)
        with pytest.raises(InputError, match=r"index is 8 after 8: add frames in the order of the video"):
            results.add(*shot)
        with pytest.raises(InputError, match=r"picture 9 is uint8 of shape \[5, 400, 3\]: give uint8 \[10, 400, 3\]"):
            results.add(shot.picture[:5], 1, 9, tracks)
        with pytest.raises(InputError, match=r"tracks\.size is 64 x 64 and the video has 10 x 400 pixels"):
            results.add(shot.picture, 1, 9, replace(tracks, size=(64, 64)))
        with pytest.raises(InputError, match=r"tracks at frame 9 hold the ids \[0, 0\]: give one frame of one clip"):
            results.add(shot.picture, 1, 9, replace(tracks, id=tracks.id * 0))
        results.masks = True
        with pytest.raises(InputError, match=r"masks is true but the tracks at frame 9 hold none: ask for masks"):
            results.add(shot.picture, 1, 9, tracks)


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no frame was added .*: add at least one"), ResultFolder(tmp_path, SIZE, 24):
        pass
    assert contents(tmp_path) == {}
    for options in ({"fps": 0}, {"fps": float("nan")}, {"fps": 24, "stride": 0}):
        with pytest.raises(InputError, match=r"fps is .* and stride is .*: give a rate above 0"):
            ResultFolder(tmp_path, SIZE, **options)
    with pytest.raises(InputError, match=r"scene has shape \[2, 2, 3\]"):
        ResultFolder(tmp_path, SIZE, 24, scene=np.zeros((2, 2, 3), np.uint8))


def test_names_that_are_no_unicode_are_shown_with_their_bytes(tmp_path: Path) -> None:
    folder, odd = tmp_path / os.fsdecode(b"out \xff"), os.fsdecode(b"ants \xff.mp4")
    write(folder, masks=True, facts={"video": odd, "command": f"scalor track {odd}"})
    assert "Objects in ants \\udcff.mp4" in (folder / "report.html").read_text("utf-8")
    assert (folder / "overlay.mp4").stat().st_size > 500
    assert (folder / "masks.json").read_bytes().isascii()
