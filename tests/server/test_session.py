"""What the page reads after edits, and what the folder holds then."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalor.edits import EditedFolder
from scalor.edits.remake import Remake
from scalor.errors import InputError
from scalor.outputs.tables import TrackedFrame
from scalor.server.session import Session
from scalor.viewer import chunks
from scalor.viewer.chunks import from_script, unpacked
from tests.outputs.stories import contents
from tests.viewer.numbered import COUNT, FRAMES

LATER = 3600.0


def ids_at(session: Session, position: int) -> list[int]:
    rows = session.rows(position // chunks.CHUNK_FRAMES)
    assert rows is not None
    offsets, ids = unpacked(rows["offsets"], "<u4"), unpacked(rows["id"], "<i4")
    t = position - rows["start"]
    return sorted(ids[offsets[t] : offsets[t + 1]].tolist())


@pytest.mark.parametrize("frames", [512, 16])
def test_before_any_edit_it_is_what_the_report_reads(
    folder: Path, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scalor.viewer.chunks.CHUNK_FRAMES", frames)
    session = Session(folder)
    index = session.index()
    written = from_script((folder / "report_viewer" / "index.js").read_text())
    for name in ("size", "rate", "frame", "counts", "masks", "predicted"):
        expected = list(written[name]) if isinstance(written[name], list) else written[name]
        found = list(index[name]) if isinstance(index[name], tuple) else index[name]
        assert found == expected, name
    assert np.allclose(unpacked(index["seconds"], "<f8"), unpacked(written["seconds"], "<f8"), atol=1e-4)
    assert index["tracks"]["spans"] == written["tracks"]["spans"]
    rows = [session.rows(k) for k in range(len(index["starts"]))]
    whole = from_script((folder / "report_viewer" / "rows-0.js").read_text())
    box = np.concatenate([unpacked(one["box"], "<f4") for one in rows if one is not None])
    assert np.allclose(box, unpacked(whole["box"], "<f4"), atol=1e-3)
    masks = [text for k in range(len(rows)) for text in session.masks(k) or []]
    assert masks == from_script((folder / "report_viewer" / "masks-0.js").read_text())
    assert session.rows(len(rows)) is None
    assert session.masks(len(rows)) is None


def test_edits_show_in_rows_masks_names_and_log(folder: Path) -> None:
    session = Session(folder, LATER)
    masks = session.masks(0)
    assert masks is not None
    assert (
        session.edit({"op": "delete", "id": 2, "first": 10, "last": 19})["done"] == "delete 2 from frame 10 to frame 19"
    )
    assert ids_at(session, 9) == [1, 2, 3, 4]
    assert ids_at(session, 10) == [1, 3, 4]
    assert len(session.masks(0) or []) == len(masks) - 10
    session.edit({"op": "add", "frame": 12, "box": [1, 2, 30, 40]})
    assert ids_at(session, 12) == [1, 3, 4, 6]
    added = session.masks(0) or []
    assert added.count("") == 1
    assert [text for text in added if text] == [
        text for place, text in enumerate(masks) if not (10 <= place // COUNT < 20 and place % COUNT == 1)
    ]
    session.edit({"op": "name", "id": 3, "name": "<b>bee</b>"})
    index = session.index()
    assert index["names"] == {"3": "<b>bee</b>"}
    assert (index["undo"], index["redo"], len(index["edits"])) == (True, False, 3)
    assert session.edit({"op": "undo"})["done"] == "undo: name 3 '<b>bee</b>'"
    index = session.index()
    assert (index["names"], index["redo"], len(index["edits"])) == ({}, True, 2)


def test_the_files_follow_when_edits_rest(folder: Path) -> None:
    before = contents(folder)
    session = Session(folder, 0.05)
    session.edit({"op": "split", "id": 4, "frame": 50})
    for _ in range(400):
        if (folder / "tracks.csv").read_bytes() != before["tracks.csv"]:
            break
        time.sleep(0.05)
    session.close()
    assert session.problem is None
    tracks = EditedFolder(folder).tracks
    assert set(tracks.id[tracks.frame >= 50].tolist()) == {2, 3, 5, 6}
    after = contents(folder)
    changed = {name for name in before if after[name] != before[name]}
    assert {"tracks.csv", "report.html", "report_viewer/index.js", "report_viewer/rows-0.js"} <= changed
    assert not changed & {"report_viewer/video.mp4", "overlay.mp4", "results.json", "counts.csv"}
    kept = {name.removeprefix("original/"): file for name, file in after.items() if name.startswith("original/")}
    assert {name: kept[name] for name in before if name != ".scalor.json"} == {
        name: file for name, file in before.items() if name != ".scalor.json"
    }


def test_nothing_waits_for_the_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = Remake._frames

    def slow(self: Remake, *options: Any) -> Iterator[TrackedFrame]:
        for frame in frames(self, *options):
            time.sleep(0.05)
            yield frame

    session = Session(folder, 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(Remake, "_frames", slow)
        session.edit({"op": "delete", "id": 2})
        while not session._writing.locked():
            time.sleep(0.01)
        begun = time.perf_counter()
        assert session.rows(0) is not None
        session.edit({"op": "delete", "id": 3})
        assert time.perf_counter() - begun < 0.02 * FRAMES
        session.write_after = LATER
    session.close()
    assert {line.split(",")[1] for line in (folder / "tracks_mot.txt").read_text().splitlines()} == {"1", "4", "5"}


def test_masks_stay_with_their_boxes_after_the_files_follow(folder: Path) -> None:
    before = Session(folder).masks(0)
    session = Session(folder, LATER)
    session.edit({"op": "swap", "a": 2, "b": 3, "frame": 0})
    session.close()
    after = session.masks(0)
    assert before is not None
    assert after is not None
    assert after[: COUNT * FRAMES // 2 : COUNT] == before[: COUNT * FRAMES // 2 : COUNT]
    assert after[1 : COUNT * FRAMES // 2 : COUNT] == before[2 : COUNT * FRAMES // 2 : COUNT]


def test_files_that_a_killed_session_left_behind_are_made_again(folder: Path) -> None:
    Session(folder, LATER).edit({"op": "delete", "id": 2})  # and is never closed
    assert EditedFolder(folder).stale
    Session(folder, LATER).close()
    lines = (folder / "tracks_mot.txt").read_text().splitlines()
    assert {line.split(",")[1] for line in lines} == {"1", "3", "4", "5"}
    assert not EditedFolder(folder).stale


def test_the_report_plays_the_edited_tracks_too(folder: Path) -> None:
    session = Session(folder, LATER)
    session.edit({"op": "merge", "keep": 1, "other": 5})
    session.edit({"op": "name", "id": 1, "name": "one"})
    session.close()
    index = from_script((folder / "report_viewer" / "index.js").read_text())
    assert index["tracks"]["id"] == [1, 2, 3, 4]
    assert index["names"] == {"1": "one"}
    assert index["tracks"]["spans"][0] == [0, FRAMES - 1]


def test_places_to_look_at_are_in_the_order_of_the_video(folder: Path) -> None:
    session = Session(folder)
    doubts = session.places("doubts")
    assert [place["position"] for place in doubts] == sorted(place["position"] for place in doubts)
    assert any(place["ids"] == [1] and "ends inside" in place["text"] for place in doubts)
    session.edit({"op": "merge", "keep": 1, "other": 5})
    assert not any("ends inside" in place["text"] and place["ids"] == [1] for place in session.places("doubts"))
    session.close()


def test_what_is_impossible_is_said_and_changes_nothing(folder: Path) -> None:
    session = Session(folder, LATER)
    before = contents(folder)
    with pytest.raises(InputError, match="there is no track 99"):
        session.edit({"op": "split", "id": 99, "frame": 3})
    with pytest.raises(InputError, match="nothing to undo"):
        session.edit({"op": "undo"})
    session.close()
    assert contents(folder) == before
