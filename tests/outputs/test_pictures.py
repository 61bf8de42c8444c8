"""Paths lie where the objects went, in their colours."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalor.outputs.by_object import ROW, TrackSummary
from scalor.outputs.pictures import Trajectories, draw_counts
from scalor.visual import colors_of


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


def test_counts_are_plotted(tmp_path: Path) -> None:
    draw_counts(tmp_path / "counts.png", [0.0, 0.5, 1.0], [3, 4, 2])
    with Image.open(tmp_path / "counts.png") as picture:
        assert picture.width > 900
