"""The scene without objects, in the light of each frame."""

import time
from pathlib import Path

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.still.epochs import MAX_EPOCHS
from scalor.still.resting import surroundings
from scalor.still.still_background import StillBackground

from .films import SIZE, ellipse, film, plain, street


def walk(picture: np.ndarray, t: int) -> None:
    """Two discs that cross the picture."""
    picture[ellipse((4 + 2.5 * t, 30), 20, 14)] = (230, 40, 60)
    picture[ellipse((126 - 2.5 * t, 70), 20, 14)] = (30, 30, 40)


def off(background: np.ndarray, scene: np.ndarray) -> float:
    """Share of the pixels that are clearly wrong."""
    return float((np.abs(background.astype(float) - scene.clip(0, 255)).max(-1) > 8).mean())


def test_things_that_pass_are_not_in_the_background(tmp_path: Path) -> None:
    background = StillBackground.of(film(tmp_path / "a.npy", street(), walk))
    assert len(background.epochs) == 1
    assert off(background.still, street()) < 0.002


@pytest.mark.parametrize(
    "light",
    [
        lambda t: 1 if t < 24 else 1.35,
        lambda t: 1 if t < 24 else 0.6,
        lambda t: 0.7 + 0.6 * t / 48,
        lambda t: 1 + 0.15 * np.sin(2.1 * t),
    ],
    ids=["a step up", "a step down", "a drift", "flicker"],
)
def test_the_background_is_in_the_light_of_each_frame(light, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    video = film(tmp_path / "a.npy", street(), walk, light)
    background = StillBackground.of(video)
    for t, frame in enumerate(video):
        assert off(background.at(frame.picture), light(t) * street()) < 0.01


def test_a_step_of_the_light_is_told_once(tmp_path: Path) -> None:
    video = film(tmp_path / "a.npy", street(), walk, lambda t: 1 if t < 24 else 1.35)
    assert StillBackground.of(video).light is None
    background = StillBackground.of(video)
    brightness = []
    for frame in video:
        background.at(frame.picture)
        assert background.light is not None
        assert background.light.light.agreeing > 0.7
        brightness.append(background.light.brightness)
    assert np.flatnonzero(np.abs(np.diff(brightness)) > 0.06).tolist() == [23]


def test_what_a_brighter_light_clips_is_known_from_the_darker_one(tmp_path: Path) -> None:
    scene = street() + 70
    video = film(tmp_path / "a.npy", scene, walk, lambda t: 1 if t < 24 else 1.6)
    background = StillBackground.of(video)
    first, *_, last = video
    assert off(background.at(first.picture), scene) < 0.02
    assert off(background.at(last.picture), 1.6 * scene) < 0.02


def test_a_lamp_that_lights_a_half_makes_an_epoch(tmp_path: Path) -> None:
    scene = street()
    lamp = np.where(np.arange(SIZE[1]) < 70, 1.5, 1)[None, :, None]

    def switched(picture: np.ndarray, t: int) -> None:
        picture *= lamp if t % 48 >= 24 else 1
        walk(picture, t)

    video = film(tmp_path / "a.npy", scene, switched)
    background = StillBackground.of(video)
    assert len(background.epochs) == 2
    for t, frame in enumerate(video):
        assert off(background.at(frame.picture), scene * (lamp if t >= 24 else 1)) < 0.02


@pytest.mark.parametrize("kind", ["grey", "a street"])
def test_a_crowd_of_different_things_does_not_hide_the_scene(kind: str, tmp_path: Path) -> None:
    """One pixel shows the scene in two of five frames only, and each time something else in the others."""
    random, scene = np.random.default_rng(3), street() if kind == "a street" else plain()

    def crowd(picture: np.ndarray, t: int) -> None:
        if t % 5 > 1:
            picture[30:60, 40:80] = random.uniform(0, 255, 1 if kind == "grey" else 3)

    background = StillBackground.of(film(tmp_path / "a.npy", scene, crowd, frames=60))
    assert off(background.still, scene) < 0.02


@pytest.mark.parametrize("frames", [2, 3, 5])
def test_a_few_frames_are_enough(frames: int, tmp_path: Path) -> None:
    background = StillBackground.of(film(tmp_path / "a.npy", street(), lambda picture, t: None, frames=frames))
    assert off(background.still, street()) < 0.01


def test_one_frame_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 1 frame"):
        StillBackground.of(film(tmp_path / "a.npy", street(), walk, frames=1))
    with pytest.raises(InputError, match="epochs is empty"):
        StillBackground([])


def test_noise_alone_makes_no_epochs(tmp_path: Path) -> None:
    video = film(tmp_path / "a.npy", street(), lambda picture, t: None, noise=12)
    assert len(StillBackground.of(video).epochs) == 1 < MAX_EPOCHS


def test_a_shrunken_background_is_the_background_of_shrunken_pictures(tmp_path: Path) -> None:
    background = StillBackground.of(film(tmp_path / "a.npy", street(), walk))
    small = background.resized((48, 64))
    assert small.at(small.still).shape == (48, 64, 3)
    pairs = background.sampled_pairs()
    assert len(pairs) == 48
    assert np.mean([np.median(np.abs(picture.astype(int) - empty)) for picture, empty in pairs]) < 3


def test_the_usual_light_costs_no_copy(tmp_path: Path) -> None:
    background = StillBackground.of(film(tmp_path / "a.npy", street(), walk))
    assert background.at(background.still) is background.still


def test_a_frame_is_followed_quickly() -> None:
    scene = street(size=(576, 768)).round().astype(np.uint8)
    background, picture = StillBackground([scene]), (0.9 * scene).astype(np.uint8)
    background.at(picture)
    start = time.process_time()
    for _ in range(10):
        background.at(picture)
    assert (time.process_time() - start) / 10 < 0.02  # a few milliseconds where nothing else runs


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
    background = StillBackground.of(film(tmp_path / "a.npy", plain(), dish(contrast)))
    assert np.abs(background.still.astype(float) - 120).max() < 10


def test_what_is_not_like_things_that_move_stays(tmp_path: Path) -> None:
    """A bright wall, dark stains among bright things, and a patch ten times as large as they are."""
    scene = plain()
    scene[:, 100:104], scene[60:70, 60:72], scene[5:40, 20:60] = 200, 60, 190

    def draw(picture: np.ndarray, t: int) -> None:
        picture[ellipse((8 + 2.3 * t, 80), 12, 12)] = 220

    background = StillBackground.of(film(tmp_path / "a.npy", scene, draw))
    assert (np.abs(background.still.astype(float) - scene).max(-1) > 10).mean() < 0.005


def test_other_scenes_stay_as_they_are(tmp_path: Path) -> None:
    background = StillBackground.of(film(tmp_path / "a.npy", street(), dish(80)))
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
