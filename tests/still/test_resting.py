"""Things that rest all along, before a plain scene and before others."""

from pathlib import Path

import numpy as np
import pytest

from scalor.still.background import Background
from scalor.still.resting import surroundings

from .films import SIZE, ellipse, film, plain, street

AT_REST = ((30, 70), (90, 25))


def dish(contrast: float, moving: bool = True):  # type: ignore[no-untyped-def]
    """Two discs that rest for all of the video, and one that moves."""

    def draw(picture: np.ndarray, t: int) -> None:
        for centre in AT_REST:
            picture[ellipse(centre, 12, 12)] += contrast
        if moving:
            picture[ellipse((8 + 2.3 * t, 48), 12, 12)] += contrast

    return draw


@pytest.mark.parametrize("contrast", [80, -60])
def test_things_at_rest_are_left_out_of_a_plain_scene(contrast: float, tmp_path: Path) -> None:
    background = Background.of(film(tmp_path / "a.npy", plain(), dish(contrast)))
    assert np.abs(background.still.astype(float) - 120).max() < 10


def test_what_is_not_like_things_that_move_stays(tmp_path: Path) -> None:
    """A bright wall, dark stains among bright things, and a patch ten times as large as they are."""
    scene = plain()
    scene[:, 100:104], scene[60:70, 60:72], scene[5:40, 20:60] = 200, 60, 190

    def draw(picture: np.ndarray, t: int) -> None:
        picture[ellipse((8 + 2.3 * t, 80), 12, 12)] = 220

    background = Background.of(film(tmp_path / "a.npy", scene, draw))
    assert (np.abs(background.still.astype(float) - scene).max(-1) > 10).mean() < 0.005


def test_other_scenes_stay_as_they_are(tmp_path: Path) -> None:
    background = Background.of(film(tmp_path / "a.npy", street(), dish(80)))
    for centre in AT_REST:
        inside = ellipse(centre, 10, 10)
        assert (background.still.astype(float) - street())[inside].mean() == pytest.approx(80, abs=8)


def test_surroundings_are_the_scene_without_anything_small() -> None:
    column = np.linspace(80, 160, SIZE[1])[None, :, None]
    scene = np.broadcast_to(column, (*SIZE, 3)).copy()
    spotted = scene.copy()
    spotted[ellipse((60, 50), 12, 12)] = 250
    ground = surroundings(spotted.astype(np.uint8))
    assert np.abs(ground.astype(float) - scene)[:, 20:-20].max() < 8
