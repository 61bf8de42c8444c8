"""`Tracks`: the files to the letter, reading back what was written, choosing and grouping rows, and joining."""

import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import supervision
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scalor
from scalor.errors import InputError
from scalor.track_files import COLUMNS
from scalor.tracks import ROWS, TrackedObject, Tracks, join_tracks, read_tracks


def tracks(masks: bool = False) -> Tracks:
    """Two clips; in the first, an object stays for two frames and another joins it."""
    return Tracks(
        clip=np.array([0, 0, 0, 1]),
        frame=np.array([0, 1, 1, 0]),
        id=np.array([1, 1, 4, 1]),
        box=np.array([[1, 2, 4, 8], [1.5, 2.25, 4.5, 8.25], [-2, 0, 1, 30.0006], [5, 5, 6, 7]], dtype=np.float32),
        confidence=np.array([0.9, 0.87654, 1.0, 0.5], dtype=np.float32),
        discovered=np.array([True, False, True, True]),
        size=(32, 48),
        masks=np.arange(4 * 32 * 48).reshape(4, 32, 48) % 3 == 0 if masks else None,
    )


def assert_same(one: Tracks, other: Tracks) -> None:
    for field in fields(Tracks):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b, field.name


def test_a_csv_has_a_header_and_a_line_per_row(tmp_path: Path) -> None:
    tracks().of_clip(0).to_csv(tmp_path / "tracks.csv")
    lines = (tmp_path / "tracks.csv").read_text().splitlines()
    assert lines == [
        "frame,seconds,id,x0,y0,x1,y1,x,y,confidence,discovered",
        "0,0.0000,1,1.000,2.000,4.000,8.000,2.500,5.000,0.9000,1",
        "1,0.1000,1,1.500,2.250,4.500,8.250,3.000,5.250,0.8765,0",
        "1,0.1000,4,-2.000,0.000,1.000,30.001,-0.500,15.000,1.0000,1",
    ]
    assert lines[0] == ",".join(COLUMNS)


def test_a_batch_has_a_last_column_for_the_clip(tmp_path: Path) -> None:
    tracks().to_csv(tmp_path / "tracks.csv")
    header, *lines = (tmp_path / "tracks.csv").read_text().splitlines()
    assert header == ",".join([*COLUMNS, "clip"])
    assert [line.split(",")[-1] for line in lines] == ["0", "0", "0", "1"]
    assert_same(read_tracks(tmp_path / "tracks.csv", size=(32, 48)).of_clip(1), tracks().of_clip(1))


def test_a_mot_file_counts_frames_and_identities_from_1(tmp_path: Path) -> None:
    tracks().of_clip(0).to_mot(str(tmp_path / "tracks.txt"))
    assert (tmp_path / "tracks.txt").read_text() == (
        "1,1,1.000,2.000,3.000,6.000,0.9000,-1,-1,-1\n"
        "2,1,1.500,2.250,3.000,6.000,0.8765,-1,-1,-1\n"
        "2,4,-2.000,0.000,3.000,30.001,1.0000,-1,-1,-1\n"
    )


@pytest.mark.parametrize("call", ["to_mot", "save", "by_frame", "by_track", "to_napari"])
def test_what_is_of_one_clip_refuses_several(call: str, tmp_path: Path) -> None:
    words = [tmp_path / "tracks"] if call in ("to_mot", "save") else []
    with pytest.raises(InputError, match=rf"hold 2 clips: .*of_clip\(i\)\.{call}"):
        list(getattr(tracks(), call)(*words))
    assert not list(tmp_path.iterdir())
    getattr(tracks().of_clip(1), call)(*words)


def test_empty_tracks_make_empty_files(tmp_path: Path) -> None:
    empty = tracks().of_clip(7)
    assert len(empty) == 0
    empty.save(tmp_path)
    assert (tmp_path / "tracks.csv").read_text() == ",".join(COLUMNS) + "\n"
    assert (tmp_path / "tracks_mot.txt").read_text() == ""
    for name in ("tracks.csv", "tracks_mot.txt", "tracks.parquet"):
        assert len(read_tracks(tmp_path / name)) == 0


@pytest.mark.parametrize("masks", [False, True])
def test_selecting_keeps_the_chosen_rows_whole(masks: bool) -> None:
    whole = tracks(masks)
    for rows in (np.array([True, False, False, True]), np.array([0, 3])):
        chosen = whole.select(rows)
        assert len(chosen) == 2
        for name in ROWS:
            assert np.array_equal(getattr(chosen, name), getattr(whole, name)[[0, 3]]), name
        assert chosen.size == whole.size
        if whole.masks is None:
            assert chosen.masks is None
        else:
            assert chosen.masks is not None
            assert np.array_equal(chosen.masks, whole.masks[[0, 3]])
    assert_same(whole.select(np.ones(4, bool)), whole)
    assert_same(whole.of_clip(0), whole.select(np.array([True, True, True, False])))


@pytest.mark.parametrize("masks", [False, True])
def test_joining_the_parts_gives_the_whole(masks: bool) -> None:
    whole = tracks(masks)
    assert_same(join_tracks([whole.of_clip(clip) for clip in (0, 1)]), whole)
    assert_same(join_tracks([whole]), whole)
    assert_same(join_tracks([whole.of_clip(9), whole]), whole)


def test_the_centre_is_the_middle_of_the_box() -> None:
    assert tracks().centre.tolist()[:2] == [[2.5, 5.0], [3.0, 5.25]]


def test_columns_of_different_lengths_are_no_tracks() -> None:
    for name in ROWS:
        with pytest.raises(InputError, match=r"tracks have [34] ids and [34] of \w+: give one each a row\."):
            replace(tracks(), **{name: getattr(tracks(), name)[:-1]})
    with pytest.raises(InputError, match=r"box has shape \[4, 3\]: give x0, y0, x1, y1 for each row, \[4, 4\]\."):
        replace(tracks(), box=tracks().box[:, :3])


def test_rows_are_objects_in_a_frame() -> None:
    rows = list(tracks())
    assert rows[3] == TrackedObject(0, 0.0, 1, (5.0, 5.0, 6.0, 7.0), 0.5, True)
    assert [row.id for row in rows] == [1, 1, 4, 1]


def test_times_follow_from_the_frames_unless_they_are_told() -> None:
    assert tracks().seconds.tolist() == [0, 0.1, 0.1, 0]
    told = tracks().of_clip(1).at(7, 3.5)
    assert (told.frame.tolist(), told.seconds.tolist()) == ([7], [3.5])


def test_the_model_calls_the_confidence_presence() -> None:
    assert np.array_equal(tracks().presence, tracks().confidence)


@st.composite
def some_tracks(draw: st.DrawFn, clips: int = 1) -> Tracks:
    """Any tracks of a video or of a batch: no row twice, boxes of any size, also outside the picture."""
    key = st.tuples(st.integers(0, clips - 1), st.integers(0, 40), st.integers(1, 9))
    keys = np.array(sorted(draw(st.sets(key, max_size=30))), int).reshape(-1, 3)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    corner, side = rng.uniform(-50, 2000, (len(keys), 2)), rng.uniform(0, 500, (len(keys), 2))
    seen: set[tuple[int, int]] = set()
    first = []
    for clip, _, number in keys.tolist():
        first.append((clip, number) not in seen)
        seen.add((clip, number))
    return Tracks(
        clip=keys[:, 0],
        frame=keys[:, 1],
        id=keys[:, 2],
        box=np.concatenate([corner, corner + side], 1),
        confidence=rng.uniform(0, 1, len(keys)),
        discovered=np.array(first, bool),
        size=(480, 640),
        seconds=keys[:, 1] / 25,
    )


LAW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@LAW
@given(some_tracks(clips=3))
def test_a_parquet_table_holds_the_tracks_exactly(tmp_path: Path, whole: Tracks) -> None:
    whole.to_parquet(tmp_path / "tracks.parquet")
    assert_same(read_tracks(tmp_path / "tracks.parquet"), whole)


@LAW
@given(some_tracks(clips=3))
def test_a_csv_table_holds_the_tracks_to_a_thousandth_of_a_pixel(tmp_path: Path, whole: Tracks) -> None:
    whole.to_csv(tmp_path / "tracks.csv")
    _assert_close(read_tracks(tmp_path / "tracks.csv", size=whole.size), whole, box=5.1e-4)


@LAW
@given(some_tracks())
def test_a_mot_file_holds_the_tracks_to_a_thousandth_of_a_pixel(tmp_path: Path, whole: Tracks) -> None:
    whole.to_mot(tmp_path / "tracks.txt")
    _assert_close(read_tracks(tmp_path / "tracks.txt", size=whole.size, fps=25), whole, box=1.1e-3)


def _assert_close(read: Tracks, whole: Tracks, box: float) -> None:
    for name in ("clip", "frame", "id", "discovered"):
        assert getattr(read, name).tolist() == getattr(whole, name).tolist(), name
    assert abs(read.box - whole.box).max(initial=0) < box
    assert abs(read.confidence - whole.confidence).max(initial=0) < 5.1e-5
    assert abs(read.seconds - whole.seconds).max(initial=0) < 5.1e-5
    assert read.size == whole.size


@LAW
@given(some_tracks())
def test_groups_are_a_partition_of_the_rows(whole: Tracks) -> None:
    for groups, name in ((list(whole.by_frame()), "frame"), (list(whole.by_track()), "id")):
        keys = [key for key, _ in groups]
        assert keys == sorted(set(getattr(whole, name).tolist()))
        for key, part in groups:
            assert len(part) > 0
            assert (getattr(part, name) == key).all()
        if groups:
            assert_same(join_tracks([part for _, part in groups]), whole)


@LAW
@given(some_tracks())
def test_saved_tables_say_the_same(tmp_path: Path, whole: Tracks) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert whole.save(tmp_path / "tracked") == tmp_path / "tracked"
    assert sorted(path.name for path in (tmp_path / "tracked").iterdir()) == [
        "tracks.csv",
        "tracks.parquet",
        "tracks_mot.txt",
        "tracks_napari.csv",
    ]
    read = [read_tracks(tmp_path / "tracked" / name, fps=25) for name in ("tracks.csv", "tracks_mot.txt")]
    assert read[0].id.tolist() == read[1].id.tolist() == whole.id.tolist()
    napari = pd.read_csv(tmp_path / "tracked" / "tracks_napari.csv")
    assert list(napari) == ["track_id", "t", "y", "x"]
    assert np.allclose(napari.to_numpy(float).reshape(-1, 4), whole.to_napari(), atol=5.1e-4)


def test_a_result_folder_is_read_by_its_most_precise_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"holds no tracks\.csv: give a result folder of `scalor track`"):
        read_tracks(tmp_path)
    whole = tracks().of_clip(0)
    whole.save(tmp_path)
    assert_same(read_tracks(tmp_path), whole)
    monkeypatch.setattr("scalor.tracks.find_spec", lambda name: None)  # without pyarrow
    _assert_close(read_tracks(tmp_path, size=whole.size), whole, box=5.1e-4)
    with pytest.raises(InputError, match=r"tracks_napari\.csv, line 1 is .track_id,t,y,x.: it needs 7 numbers"):
        read_tracks(tmp_path / "tracks_napari.csv")


def test_older_tables_are_read(tmp_path: Path) -> None:
    """Before the formats were one, tables of `to_csv` counted ids from 0 and called the confidence presence."""
    path = tmp_path / "tracks.csv"
    path.write_text("clip,frame,id,x0,y0,x1,y1,presence,discovered\n0,0,0,1,2,4,8,0.9,1\n0,1,0,2,2,5,8,0.8,0\n")
    read = read_tracks(path)
    assert (read.id.tolist(), read.confidence.tolist(), read.seconds.tolist()) == ([1, 1], [0.9, 0.8], [0, 0.1])
    assert read.discovered.tolist() == [True, False]
    assert read.size == (0, 0)


def test_a_data_frame_has_the_columns_of_the_file(tmp_path: Path) -> None:
    whole = tracks().of_clip(0)
    table = whole.to_dataframe()
    whole.to_csv(tmp_path / "tracks.csv")
    written = pd.read_csv(tmp_path / "tracks.csv")
    assert list(table) == list(written) == list(COLUMNS)
    assert np.allclose(table.to_numpy(float), written.to_numpy(float), atol=1e-3)
    assert table.groupby("frame").id.count().tolist() == [1, 2]


def test_napari_gets_the_paths_by_id_with_whole_numbers_in_the_centres_of_pixels() -> None:
    assert tracks().of_clip(0).to_napari().tolist() == [
        [1, 0, 4.5, 2.0],
        [1, 1, 4.75, 2.5],
        [4, 1, pytest.approx(14.5003), -1.0],
    ]


@pytest.mark.parametrize("masks", [False, True])
def test_detections_hold_the_boxes_masks_and_ids_of_a_frame(masks: bool) -> None:
    for _, here in tracks(masks).of_clip(0).by_frame():
        detections = here.to_supervision()
        assert isinstance(detections, supervision.Detections)
        assert detections.confidence is not None
        assert detections.tracker_id is not None
        assert detections.class_id is not None
        assert np.allclose(detections.xyxy, here.box)
        assert np.allclose(detections.confidence, here.confidence)
        assert np.array_equal(detections.tracker_id, here.id)
        assert detections.class_id.tolist() == [0] * len(here)
        assert (detections.mask is None) == (not masks)
        if here.masks is not None:
            assert np.array_equal(np.asarray(detections.mask), here.masks)
    with pytest.raises(InputError, match=r"tracks hold 2 frames of 2 clips.* select a frame"):
        tracks().to_supervision()


def test_supervision_draws_the_detections_where_the_objects_are() -> None:
    here = tracks().of_clip(1)
    blank = np.zeros((*here.size, 3), np.uint8)
    drawn = supervision.BoxAnnotator(thickness=1).annotate(blank, here.to_supervision())
    lit = np.flatnonzero(drawn.any((0, 2)))
    assert (lit.min(), lit.max()) == (5, 6)


@pytest.mark.parametrize(
    ("call", "package"), [("to_supervision", "supervision"), ("to_dataframe", "pandas"), ("to_parquet", "pyarrow")]
)
def test_without_a_package_the_error_says_how_to_get_it(
    call: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    words = [tmp_path / "tracks.parquet"] if call == "to_parquet" else []
    with pytest.raises(InputError, match=f"need.* the package {package}: run pip install {package}"):
        getattr(tracks().of_clip(1), call)(*words)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tracks.parquet"
    path.write_text("frame,id\n")
    with pytest.raises(InputError, match="cannot be read as a parquet table"):
        scalor.read_tracks(path)
    path = tmp_path / "tracks.csv"
    path.write_text("frame,id,x0,y0,x1,y1,confidence\n-1,1,0,0,1,1,1\n")
    with pytest.raises(InputError, match="has a frame -1: tables count frames from 0"):
        scalor.read_tracks(path)


def test_boxes_of_whole_numbers_become_boxes_of_real_numbers() -> None:
    whole = replace(tracks(), box=np.rint(tracks().box).astype(int))
    assert whole.box.dtype == float
    assert np.array_equal(whole.box, np.rint(tracks().box))
