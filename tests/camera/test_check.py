from pathlib import Path

import numpy as np
import pytest

from scalor.camera import check_camera
from scalor.camera.check import COMPARED_FRAMES, COMPARED_PAIRS, _neighbours
from scalor.video.reading import open_video
from scalor.video.sources import Selection
from tests.camera.filming import as_video, film, pose

T = 30
SHAKE = np.random.default_rng(2).normal(size=(T, 2))


@pytest.mark.parametrize(
    "hindrance", [{"discs": 0, "noise": 0.0}, {"discs": 40}, {"noise": 8.0}, {"flicker": 0.3, "discs": 10}]
)
def test_a_camera_that_stands_still_is_judged_so(hindrance: dict[str, float], tmp_path: Path) -> None:
    check = check_camera(as_video(tmp_path, film([pose(3.3, 1.2)] * T, **hindrance)))  # type: ignore[arg-type]
    assert not check.moves
    assert check.far[1] < 0.5
    assert check.describe().startswith("the camera stands still: 0.")


@pytest.mark.parametrize(
    "poses",
    [
        [pose(x, y) for x, y in SHAKE],
        [pose(100 * np.sin(t / 4)) for t in range(T)],
        [pose(t / 5) for t in range(T)],
        [pose(zoom=1 + t / T / 2) for t in range(T)],
        [pose(degrees=t / 5) for t in range(T)],
        [pose(0 if t < T / 2 else 5) for t in range(T)],
    ],
    ids=["shake", "pan", "drift", "zoom", "turn", "bump"],
)
def test_a_camera_that_moves_is_judged_so(poses: list[np.ndarray], tmp_path: Path) -> None:
    check = check_camera(as_video(tmp_path, film(poses, discs=8)))
    assert check.moves
    assert check.describe().startswith("the camera moves: ")


def test_shifts_are_measured_in_pixels_of_the_video(tmp_path: Path) -> None:
    large = film([pose(2 * t) for t in range(20)], discs=0).repeat(3, 1).repeat(3, 2)
    check = check_camera(as_video(tmp_path, large))
    assert check.near[0] == pytest.approx(6, abs=0.5)


def test_nothing_to_hold_on_to_is_no_motion(tmp_path: Path) -> None:
    for frames in (np.full((T, 60, 80, 3), 120, np.uint8), film([pose()])):
        check = check_camera(as_video(tmp_path, frames))
        assert not check.moves
        assert check.matched == 0
        assert check.describe().startswith("nothing in the picture keeps its place")


def test_neighbours_are_next_to_each_other_and_all_over_the_selected_time(tmp_path: Path) -> None:
    frames = np.zeros((100, 8, 8, 3), np.uint8) + np.arange(100, dtype=np.uint8)[:, None, None, None]
    as_video(tmp_path, frames)
    video = open_video(tmp_path / "film.npy", Selection(start=2, end=9, stride=5))
    pairs = [(int(one[0, 0, 0]), int(other[0, 0, 0])) for one, other in _neighbours(video)]
    assert len(pairs) == COMPARED_PAIRS
    assert all(other == one + 1 for one, other in pairs)
    assert 20 <= pairs[0][0] < 30
    assert 80 <= pairs[-1][1] < 90
    assert COMPARED_FRAMES > 2 * COMPARED_PAIRS
