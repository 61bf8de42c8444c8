"""A result folder whose files follow its log, with the original files beside them."""

import csv
import io
import json
import os
import re
import shutil
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence
from pyarrow import parquet

from scalor.edits import Add, Delete, EditedFolder, Merge, Name, Split, Swap, Undo
from scalor.errors import InputError
from scalor.exports import export_source, write_clip
from scalor.files import folder_lock
from scalor.outputs import ResultFolder
from scalor.outputs.about import read_about
from scalor.outputs.mask_files import decode
from scalor.replacement import COMPLETE, MANIFEST, check_own, read_manifest
from scalor.tracks import read_tracks
from scalor.video import read_video
from scalor.viewer.chunks import from_script
from tests.edits.drawn import (
    FPS,
    FRAMES,
    MIXED,
    SIZE,
    discs,
    mixed_ids,
    tracks_of,
    true_centres,
    write_results,
    write_scene,
)
from tests.outputs.stories import contents

RIGHT = Swap(1, 2, MIXED)
"""Puts the ids of the drawn scene right."""


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_swap_puts_every_table_right(folder: Path) -> None:
    EditedFolder(folder).do(RIGHT)
    for row in rows(folder / "tracks.csv"):
        x, y = true_centres()[int(row["frame"]), int(row["id"]) - 1]
        assert (float(row["x"]), float(row["y"])) == pytest.approx((x, y), abs=1e-3)
    for row in rows(folder / "tracks_napari.csv"):
        x, y = true_centres()[int(row["t"]), int(row["track_id"]) - 1]
        assert (float(row["x"]) + 0.5, float(row["y"]) + 0.5) == pytest.approx((x, y), abs=1e-3)
    for line in (folder / "tracks_mot.txt").read_text().splitlines():
        frame, number, left, top, *_ = map(float, line.split(","))
        assert (left + 6, top + 6) == pytest.approx(true_centres()[int(frame) - 1, int(number) - 1], abs=1e-3)
    table = parquet.read_table(folder / "tracks.parquet").to_pydict()
    assert table["x"] == pytest.approx([float(row["x"]) for row in rows(folder / "tracks.csv")])
    assert [row["objects"] for row in rows(folder / "counts.csv")] == ["3"] * FRAMES


def test_masks_follow_their_boxes(folder: Path) -> None:
    edited = EditedFolder(folder)
    edited.do(RIGHT)
    edited.do(Delete(3, 5, 5))
    edited.do(Add(5, (10, 10, 20, 20)))
    document = json.loads((folder / "masks.json").read_text())
    assert len(document["annotations"]) == 3 * FRAMES
    for one in document["annotations"]:
        mask = decode(one["segmentation"]["counts"], SIZE)
        number, frame = one["track_id"], one["image_id"]
        expected = np.zeros(SIZE, bool) if number == 4 else discs()[frame, number - 1]
        assert np.array_equal(mask, expected), (frame, number)
        assert (frame, number) != (5, 3)
    pages = label_pages(folder)
    assert len(pages) == FRAMES
    for frame, page in enumerate(pages):
        for number in (1, 2, 3):
            shown = discs()[frame, number - 1] & ~discs()[frame, number % 3] & ~discs()[frame, (number + 1) % 3]
            assert set(page[shown].tolist()) == ({0} if (frame, number) == (5, 3) else {number})


def label_pages(folder: Path) -> np.ndarray:
    return np.stack([np.array(page) for page in ImageSequence.Iterator(Image.open(folder / "labels.tif"))])


def test_where_masks_overlap_the_same_object_stays_on_top(folder: Path) -> None:
    before = label_pages(folder)
    EditedFolder(folder).do(RIGHT)
    after = label_pages(folder)
    assert (discs()[MIXED, 0] & discs()[MIXED, 1]).any()
    assert np.array_equal(after[:MIXED], before[:MIXED])
    assert np.array_equal(after[MIXED:], np.array([0, 2, 1, 3])[before[MIXED:]])


@pytest.mark.parametrize("look", [EditedFolder, read_tracks, read_about])
def test_a_move_that_was_interrupted_is_finished_before_results_are_read(
    folder: Path, look: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    EditedFolder(folder).do(Name(3, "queen"))  # there is a folder of the originals now, so files move one by one
    replace, left = os.replace, 3

    def stop(source: Path, target: Path) -> None:
        nonlocal left
        left -= Path(source).parent.name == COMPLETE
        if left < 0:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            EditedFolder(folder).do(RIGHT)
    assert (folder / COMPLETE).exists()
    look(folder)
    assert not (folder / COMPLETE).exists()
    files = read_manifest(folder)
    assert "tracks_mot.txt" in files
    check_own(folder, files)


def test_the_originals_stay_and_an_undo_brings_every_byte_back(folder: Path) -> None:
    before = contents(folder)
    edited = EditedFolder(folder)
    edited.do(RIGHT)
    assert contents(folder / "original") == {name: data for name, data in before.items() if name != MANIFEST}
    edited.do(Name(3, "queen"))
    assert rows(folder / "names.csv") == [{"id": "3", "name": "queen"}]
    edited.write(films=True)
    assert (folder / "overlay.mp4").read_bytes() != before["overlay.mp4"]
    edited.undo()
    edited.undo()
    after = {name: file for name, file in contents(folder).items() if not name.startswith("original")}
    assert after.keys() == before.keys() | {"edits.jsonl", "edited.json"}
    assert all(after[name] == before[name] for name in before if name != MANIFEST)
    edited.redo()
    assert edited.edits == [RIGHT]


def test_replaying_the_log_gives_the_same_files(folder: Path) -> None:
    edited = EditedFolder(folder)
    for step in (RIGHT, Split(3, 10), Delete(1, 2, 4), Undo(), Merge(3, 4), Name(2, "left"), Add(0, (1, 1, 9, 9))):
        edited.do(step)
    made = contents(folder)
    EditedFolder(folder).write()
    assert contents(folder) == made
    assert EditedFolder(folder).names == {2: "left"}


def test_edits_without_files_are_written_together(folder: Path) -> None:
    before = contents(folder)
    edited = EditedFolder(folder)
    edited.do(RIGHT, write=False)
    edited.do(Name(1, "right"), write=False)
    now = contents(folder)
    assert all(now[name] == before[name] for name in before)
    assert EditedFolder(folder).names == {1: "right"}
    assert edited.stale
    edited.write()
    assert (folder / "names.csv").exists()
    assert not EditedFolder(folder).stale


def test_files_that_were_tracked_again_lag_behind_the_log(own: Path) -> None:
    for step in (Name(1, "right"), RIGHT):
        assert not EditedFolder(own).stale
        EditedFolder(own).do(step)
    write_results(own, own.parent / "discs.mp4")
    assert EditedFolder(own).stale
    for _ in range(2):
        EditedFolder(own).undo()
        assert not EditedFolder(own).stale


def test_the_log_records_the_ids_that_were_given(folder: Path) -> None:
    edited = EditedFolder(folder)
    assert edited.do(Split(3, 10)).step == Split(3, 10, new=4)
    edited.undo()
    assert edited.do(Add(0, (1, 1, 9, 9))).step == Add(0, (1, 1, 9, 9), id=5)
    assert edited.tracks.frame[edited.tracks.id == 5].tolist() == [0]


def test_what_is_impossible_changes_nothing(folder: Path) -> None:
    edited = EditedFolder(folder)
    before = contents(folder)
    for step in (Swap(1, 9, 0), Merge(1, 2), Undo(), Delete(3, 99), Add(FRAMES, (1, 1, 2, 2)), Swap(1, 1, 0)):
        for write in (True, False):
            with pytest.raises(InputError):
                edited.do(step, write)
    assert contents(folder) == before
    with folder_lock(folder), pytest.raises(InputError, match="being written by another run"):
        edited.do(RIGHT)
    assert contents(folder) == before


def test_two_users_of_one_folder_see_each_other(folder: Path) -> None:
    one, two = EditedFolder(folder), EditedFolder(folder)
    one.do(RIGHT)
    two.do(Name(1, "right"))
    one.do(Undo())
    assert one.edits == two.edits == [RIGHT]


def test_films_are_drawn_again_from_the_video(own: Path, tmp_path: Path) -> None:
    edited = EditedFolder(own)
    edited.do(RIGHT)
    assert "draws it again" in (own / "report.html").read_text()
    shutil.move(tmp_path / "discs.mp4", tmp_path / "elsewhere.mp4")
    with pytest.raises(InputError, match="discs"):
        edited.write(films=True)
    edited.write(tmp_path / "elsewhere.mp4", films=True)
    report = (own / "report.html").read_text()
    assert "draws it again" not in report
    assert report.count("data:image/jpeg") == 7  # six stills and the paths
    assert "in edits.jsonl" in report
    assert edited.stale_films == []
    edited.do(Name(1, "one"))
    assert edited.stale_films == []
    edited.do(Delete(1))
    assert edited.stale_films == ["overlay.mp4", "labels.mp4"]
    assert "draws it again" in (own / "report.html").read_text()
    edited.undo()
    assert edited.stale_films == []


def test_the_pictures_of_the_report_show_the_tracks_after_edits(folder: Path) -> None:
    edited = EditedFolder(folder)
    for number in (1, 2, 3):
        edited.do(Delete(number), write=number == 3)
    pictures = re.findall('data:image/jpeg;base64,([^"]*)', (folder / "report.html").read_text())
    assert len(pictures) == 7
    for text in pictures[:6]:
        picture = np.array(Image.open(io.BytesIO(b64decode(text)))).astype(int)
        assert np.abs(picture - 40).max() < 30  # the blank scene, without boxes


def test_edits_of_a_prediction_keep_its_imagined_frames_marked(tmp_path: Path) -> None:
    tracks, blank = tracks_of(true_centres(), mixed_ids()), np.full((*SIZE, 3), 40, np.uint8)
    write_scene(tmp_path / "discs.mp4")
    with ResultFolder(tmp_path / "ahead", SIZE, FPS, facts={"video": str(tmp_path / "discs.mp4")}) as results:
        for t in range(10):
            results.add(blank, t / FPS, t, tracks.select(tracks.frame == t), predicted=t >= 6)
    edited = EditedFolder(tmp_path / "ahead")
    edited.do(Delete(3))
    report = (tmp_path / "ahead" / "report.html").read_text()
    assert "observed the first 6 of these 10 frames and imagined the other 4: from 0:00.6 on" in report
    assert "draws it again" in report
    assert "0:00.9, imagined" in report
    assert edited.stale_films == ["overlay.mp4"]
    index = from_script((tmp_path / "ahead" / "report_viewer" / "index.js").read_text())
    assert index["predicted"] == 6
    edited.write(films=True)
    assert edited.stale_films == []
    border = read_video(tmp_path / "ahead" / "overlay.mp4")[:, :, 1].mean(axis=2)
    assert (border[:, 0] > border[:, 1] + 0.3).tolist() == [False] * 6 + [True] * 4
    with pytest.raises(InputError, match="does not hold the imagined frames of track 1"):
        write_clip(tmp_path / "clip.mp4", export_source(edited), 1)


def test_a_video_that_is_another_is_refused(folder: Path, tmp_path: Path) -> None:
    edited = EditedFolder(folder)
    edited.do(RIGHT)
    for frames in (np.zeros((FRAMES, 20, 20, 3), np.uint8), np.zeros((FRAMES - 1, *SIZE, 3), np.uint8)):
        np.save(tmp_path / "other.npy", frames)
        with pytest.raises(InputError, match=r"other\.npy"):
            edited.write(tmp_path / "other.npy", films=True)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tracks.csv", None, "holds no tracks.csv"),
        ("results.json", None, "has no results.json"),
        ("results.json", "{}", "results.json is damaged"),
        ("results.json", "[]", "results.json is damaged"),
        ("edits.jsonl", "none\n", "edits.jsonl, line 1 is damaged"),
        ("edits.jsonl", '{"scalor_edits": 1, "tracks_sha256": "0"}\n', "belongs to other tracks"),
    ],
)
def test_a_folder_that_is_none_is_refused(name: str, text: str | None, said: str, folder: Path) -> None:
    (folder / name).unlink(missing_ok=True)
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises(InputError, match=said):
        EditedFolder(folder)


def test_tracks_made_again_are_not_edited_by_an_older_log(folder: Path) -> None:
    EditedFolder(folder).do(Delete(1))
    text = (folder / "results.json").read_text()
    (folder / "results.json").write_text(text.replace("drawn", "drawn again"))
    with pytest.raises(InputError, match="was tracked again"):
        EditedFolder(folder)


def test_everything_may_be_deleted(folder: Path) -> None:
    edited = EditedFolder(folder)
    for number in np.unique(mixed_ids()).tolist():
        edited.do(Delete(number))
    assert len(edited.tracks) == 0
    assert rows(folder / "tracks.csv") == []
    assert "Nothing was found" in (folder / "report.html").read_text()


def test_a_table_of_times_that_was_cut_short_is_a_sentence(folder: Path) -> None:
    EditedFolder(folder).do(RIGHT)
    path = folder / "original" / "counts.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    with pytest.raises(InputError, match=r"counts\.csv lacks frame 2, which has tracks"):
        EditedFolder(folder).undo()


def test_a_log_that_was_cut_short_is_not_followed_in_silence(folder: Path) -> None:
    EditedFolder(folder).do(RIGHT)
    before = contents(folder)
    (folder / "edits.jsonl").write_bytes(b"")
    with pytest.raises(InputError, match="0 of 1 entries: it is cut short"):
        EditedFolder(folder)
    after = contents(folder)
    assert {**after, "edits.jsonl": before["edits.jsonl"]} == before
    (folder / "edited.json").unlink()
    assert EditedFolder(folder).edits == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"entries": "x"}', "[" * 100_000, '{"entries": 1e999, "tracks_sha256": 3}']
)
def test_a_damaged_state_makes_the_files_again(text: str, folder: Path) -> None:
    EditedFolder(folder).do(RIGHT)
    (folder / "edited.json").write_text(text)
    assert EditedFolder(folder).stale
