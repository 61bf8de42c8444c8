"""`Tracks` as others read it: the files to the letter, choosing rows, and joining."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.tracks import Tracks, join_tracks


def tracks(masks: bool = False) -> Tracks:
    """Two clips; in the first, an object stays for two frames and another joins it."""
    return Tracks(
        clip=np.array([0, 0, 0, 1]),
        frame=np.array([0, 1, 1, 0]),
        id=np.array([0, 0, 3, 0]),
        box=np.array([[1, 2, 4, 8], [1.5, 2.25, 4.5, 8.25], [-2, 0, 1, 30.0006], [5, 5, 6, 7]], dtype=np.float32),
        presence=np.array([0.9, 0.87654, 1.0, 0.5], dtype=np.float32),
        discovered=np.array([True, False, True, True]),
        size=(32, 48),
        masks=np.arange(4 * 32 * 48).reshape(4, 32, 48) % 3 == 0 if masks else None,
    )


def assert_same(one: Tracks, other: Tracks) -> None:
    for field in fields(Tracks):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b, field.name


def test_a_csv_has_a_header_and_a_line_per_row(tmp_path: Path) -> None:
    tracks().to_csv(tmp_path / "tracks.csv")
    assert (tmp_path / "tracks.csv").read_text().splitlines() == [
        "clip,frame,id,x0,y0,x1,y1,presence,discovered",
        "0,0,0,1.000,2.000,4.000,8.000,0.9000,1",
        "0,1,0,1.500,2.250,4.500,8.250,0.8765,0",
        "0,1,3,-2.000,0.000,1.000,30.001,1.0000,1",
        "1,0,0,5.000,5.000,6.000,7.000,0.5000,1",
    ]


def test_a_mot_file_counts_frames_and_identities_from_1(tmp_path: Path) -> None:
    tracks().of_clip(0).to_mot(str(tmp_path / "tracks.txt"))
    assert (tmp_path / "tracks.txt").read_text() == (
        "1,1,1.000,2.000,3.000,6.000,0.9000,-1,-1,-1\n"
        "2,1,1.500,2.250,3.000,6.000,0.8765,-1,-1,-1\n"
        "2,4,-2.000,0.000,3.000,30.001,1.0000,-1,-1,-1\n"
    )


def test_a_mot_file_of_several_clips_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"hold 2 clips .* of_clip\(i\)|hold 2 clips .*of_clip"):
        tracks().to_mot(tmp_path / "tracks.txt")
    assert not (tmp_path / "tracks.txt").exists()
    tracks().of_clip(1).to_mot(tmp_path / "tracks.txt")
    assert (tmp_path / "tracks.txt").read_text() == "1,1,5.000,5.000,1.000,2.000,0.5000,-1,-1,-1\n"


def test_empty_tracks_make_empty_files(tmp_path: Path) -> None:
    empty = tracks().of_clip(7)
    assert len(empty) == 0
    empty.to_csv(tmp_path / "tracks.csv")
    empty.to_mot(tmp_path / "tracks.txt")
    assert (tmp_path / "tracks.csv").read_text().splitlines() == ["clip,frame,id,x0,y0,x1,y1,presence,discovered"]
    assert (tmp_path / "tracks.txt").read_text() == ""


@pytest.mark.parametrize("masks", [False, True])
def test_selecting_keeps_the_chosen_rows_whole(masks: bool) -> None:
    whole = tracks(masks)
    rows = np.array([True, False, False, True])
    chosen = whole.select(rows)
    assert len(chosen) == 2
    for name in ("clip", "frame", "id", "box", "presence", "discovered"):
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
    for name in ("clip", "frame", "id", "box", "presence", "discovered"):
        with pytest.raises(AssertionError):
            replace(tracks(), **{name: getattr(tracks(), name)[:-1]})
