"""Paths come out by object, in however many pieces, and are drawn through their points."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.outputs.tables import TrackedFrame
from scalor.outputs.trajectories import ROW, ObjectPaths, TrackSummary, Trajectories, summarise_track
from scalor.tracks import Tracks
from scalor.visual import colors_of

EMPTY = np.zeros((4, 4, 3), np.uint8)


def frame(index: int, ids: list[int]) -> TrackedFrame:
    """Object i is at x = i + frame / 100, y = frame."""
    x0 = np.array(ids) + index / 100
    box = np.stack([x0 - 1, np.full(len(ids), index - 2.0), x0 + 1, np.full(len(ids), index + 2.0)], axis=1)
    none = np.zeros(len(ids), int)
    tracks = Tracks(none, none, np.array(ids, int), box.reshape(-1, 4), none + 1.0, none > 0, (4, 4))
    return TrackedFrame(EMPTY, index / 10, index, tracks)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.integers(1, 9), max_size=6).map(sorted), max_size=30), st.integers(1, 40))
def test_objects_come_out_as_from_a_plain_sort(video: list[list[int]], block: int) -> None:
    with TemporaryDirectory() as folder:
        paths = ObjectPaths(Path(folder) / "rows", block)
        for index, ids in enumerate(video):
            paths.add(frame(index, ids))
        found = [
            (number, int(row["id"]), int(row["frame"]), float(row["x"]), float(row["y"]), float(row["seconds"]))
            for number, pieces in paths.objects()
            for rows in pieces
            for row in rows
        ]
    expected = sorted((i, i, t, i + t / 100, float(t), t / 10) for t, ids in enumerate(video) for i in ids)
    assert len(found) == paths.rows
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    assert np.allclose([row[3:] for row in found], [row[3:] for row in expected])


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_a_life_is_the_same_in_however_many_pieces_it_comes(block: int, tmp_path: Path) -> None:
    paths = ObjectPaths(tmp_path / "rows", block)
    for index in (3, 4, 9, 20):
        paths.add(frame(index, [2, 5]))
    lives = [summarise_track(number, pieces) for number, pieces in paths.objects()]
    assert [life.id for life in lives] == [2, 5]
    for life in lives:
        assert (life.first, life.last, life.frames) == (0.3, 2.0, 4)
        assert life.seconds == pytest.approx(1.7)
        assert life.length == pytest.approx(np.hypot(17, 0.17))
        assert life.end == pytest.approx((life.id + 0.2, 20))


def test_no_more_than_a_block_is_held_in_memory(tmp_path: Path) -> None:
    paths = ObjectPaths(tmp_path / "rows", block=10)
    for index in range(100):
        paths.add(frame(index, [1, 2, 3]))
    assert (tmp_path / "rows").stat().st_size == 300 * 40
    assert max(len(rows) for _, pieces in paths.objects() for rows in pieces) <= 10


def rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    path = np.zeros(len(x), ROW)
    path["x"], path["y"] = x, y
    return path


def near(picture: np.ndarray, number: int) -> np.ndarray:
    close: np.ndarray = np.abs(picture.astype(int) - colors_of(np.array(number))).max(axis=-1) < 40
    return close


@pytest.mark.parametrize("size", [(48, 64), (540, 960), (1500, 3000)])
def test_a_path_is_drawn_through_its_points_in_however_many_pieces(size: tuple[int, int]) -> None:
    height, width = size
    x = np.linspace(0.1, 0.9, 50) * width
    path = rows(x, np.full(50, height / 2))
    drawn = []
    for pieces in ([path], [path[:20], path[20:21], path[21:]]):
        trajectories = Trajectories(np.full((*size, 3), 90, np.uint8))
        assert sum(len(piece) for piece in trajectories.add(4, pieces)) == 50
        drawn.append(trajectories.picture())
    first, second = drawn
    assert np.abs(first.astype(int) - second).max() < 60  # joints may differ by a shade
    assert 960 <= max(first.shape) <= 1920
    painted = near(first, 4)
    columns = np.flatnonzero(painted[first.shape[0] // 2 - 2 : first.shape[0] // 2 + 2].any(axis=0)) / first.shape[1]
    assert columns[0] == pytest.approx(0.1, abs=0.01)
    assert columns[-1] == pytest.approx(0.9, abs=0.02)
    assert len(columns) > 0.75 * first.shape[1]
    far = np.abs(np.arange(first.shape[0]) - first.shape[0] / 2) > 20
    assert not painted[far].any()


def test_an_object_seen_once_is_a_dot_and_ids_stay_in_the_picture() -> None:
    trajectories = Trajectories(np.zeros((60, 80, 3), np.uint8))
    assert len(list(trajectories.add(7, [rows(np.array([79.9]), np.array([59.9]))]))) == 1
    assert near(trajectories.picture(), 7).any()
    before = near(trajectories.picture(), 7).sum()
    trajectories.label([TrackSummary(7, 0, 0, 1, 0, (79.9, 59.9))])
    assert near(trajectories.picture(), 7).sum() > before + 20
