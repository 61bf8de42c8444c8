"""Rows go in by frame and come out by object, whole and in order, however little fits into memory."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.outputs.by_object import ObjectPaths, summarise_track
from scalor.outputs.frame import TrackedFrame
from scalor.tracks import Tracks

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
