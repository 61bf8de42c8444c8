from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from scalor.camera import estimate_motion
from scalor.camera.align import Landmarks, Match, identity
from scalor.camera.estimate import MAX_KEYS, Key, MotionEstimator
from scalor.video.reading import open_video
from scalor.video.sources import Selection
from tests.camera.filming import HEIGHT, WIDTH, as_video, errors, film, pose

T = 24
WAVE = np.sin(np.linspace(0, 2 * np.pi, T))
SHAKE = np.random.default_rng(1).normal(size=(T, 2))
CAMERAS = {
    "still": [pose() for _ in range(T)],
    "pan": [pose(100 * step) for step in WAVE],
    "shake": [pose(8 * x, 8 * y) for x, y in SHAKE],
    "zoom": [pose(zoom=1.3 + 0.3 * step) for step in WAVE],
    "turn": [pose(degrees=10 * step) for step in WAVE],
    "all": [
        pose(40 * step + x, 20 * step + y, 5 * step, 1 + 0.2 * step)
        for step, (x, y) in zip(WAVE, 3 * SHAKE, strict=True)
    ],
}


@pytest.mark.parametrize("name", CAMERAS)
def test_every_frame_is_placed_within_half_a_pixel(name: str, tmp_path: Path) -> None:
    poses = CAMERAS[name]
    motion = estimate_motion(as_video(tmp_path, film(poses, discs=8, flicker=0.1)))
    off = errors(motion, poses)
    assert off.mean() < 0.25
    assert off.max() < 0.5
    assert motion.reliable


def test_a_camera_that_comes_back_comes_back_to_the_same_transform(tmp_path: Path) -> None:
    there = [pose(x, degrees=x / 20) for x in np.linspace(-110, 110, 12)]
    poses = (there + there[::-1]) * 3
    motion = estimate_motion(as_video(tmp_path, film(poses)))
    spots = motion.transforms @ np.array([WIDTH / 2, HEIGHT / 2, 1])
    round_trips = spots.reshape(3, 24, 2)
    assert np.abs(round_trips[2] - round_trips[0]).max() < 0.3
    assert np.abs(round_trips[2, :12] - round_trips[2, :11:-1]).max() < 0.3


def test_frames_that_show_nothing_lie_between_their_neighbours(tmp_path: Path) -> None:
    poses = [pose(2 * t) for t in range(20)]
    frames = film(poses)
    frames[[0, 8, 9]] = 0
    motion = estimate_motion(as_video(tmp_path, frames))
    assert np.flatnonzero(motion.failed).tolist() == [0, 8, 9]
    off = errors(motion, poses)[1:]
    np.testing.assert_allclose(off, off[0], atol=0.5)


def test_after_a_cut_the_new_scene_is_followed(tmp_path: Path) -> None:
    poses = [pose(3 * t) for t in range(20)] + [pose(2 * t) for t in range(40)]
    frames = np.concatenate([film(poses[:20], seed=0), film(poses[20:], seed=5)])
    motion = estimate_motion(as_video(tmp_path, frames))
    assert motion.failed[20:].any()
    assert not motion.failed[-10:].any()
    steps = np.diff(motion.transforms[-10:] @ np.array([WIDTH / 2, HEIGHT / 2, 1]), axis=0)
    np.testing.assert_allclose(steps / motion.scales[-1], np.tile([2, 0], (9, 1)), atol=0.3)


def test_footage_without_anything_in_it_stays_where_it_is(tmp_path: Path) -> None:
    motion = estimate_motion(as_video(tmp_path, np.full((5, 40, 60, 3), 77, np.uint8)))
    assert motion.failed.all()
    assert not motion.reliable
    assert motion.view_size == (40, 60)
    np.testing.assert_array_equal(motion.transforms, np.tile(np.eye(2, 3), (5, 1, 1)))


def test_large_frames_are_placed_in_their_own_pixels(tmp_path: Path) -> None:
    small = film(CAMERAS["pan"][:8], discs=0)
    motion = estimate_motion(as_video(tmp_path, small.repeat(3, 1).repeat(3, 2)[:, :-1]))
    steps = np.diff(motion.transforms[:, 0, 2])
    np.testing.assert_allclose(steps, 3 * np.diff(100 * WAVE[:8]), atol=0.6)


def test_indices_are_those_of_the_selected_frames_and_each_is_reported(tmp_path: Path) -> None:
    as_video(tmp_path, film(CAMERAS["pan"]))
    calls: list[int] = []
    selection = Selection(region=(20, 10, 220, 170), start=0.5, stride=3)
    motion = estimate_motion(open_video(tmp_path / "film.npy", selection), calls.append)
    assert motion.indices.tolist() == list(range(5, T, 3))
    assert calls == [1] * len(motion.indices)
    assert motion.frame_size == (160, 200)


def test_the_same_film_gives_the_same_motion(tmp_path: Path) -> None:
    video = as_video(tmp_path, film(CAMERAS["all"]))
    np.testing.assert_array_equal(estimate_motion(video).transforms, estimate_motion(video).transforms)


def test_no_more_key_frames_are_kept_than_allowed() -> None:
    estimator = MotionEstimator()
    rng = np.random.default_rng(0)
    for _ in range(3):
        estimator.step(rng.integers(0, 255, (60, 80), np.uint8))
    assert estimator.before is not None
    for _ in range(2 * MAX_KEYS):
        estimator._add_key(estimator.before)
    assert len(estimator.keys) == MAX_KEYS


def texture(shift: int = 0) -> np.ndarray:
    """Return a view, 240 pixels wide, of a wide picture of smooth noise."""
    noise = ndimage.gaussian_filter(np.random.default_rng(3).normal(size=(180, 640)), 2)
    grey = np.clip(128 + 400 * noise, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(grey[:, shift : shift + 240])


def test_a_point_that_is_often_out_of_place_is_not_trusted_until_it_is_in_place_again() -> None:
    key = Key(Landmarks(texture()), identity(), 0)
    everywhere = np.ones(len(key.landmarks.corners), bool)
    wrong = everywhere.copy()
    wrong[0] = False
    for _ in range(10):
        key.learn(Match(identity(), everywhere, wrong, 0.1))
    assert not key.trusted[0]
    assert key.trusted[1:].all()
    for _ in range(3):
        key.learn(Match(identity(), everywhere, everywhere, 0.1))
    assert key.trusted.all()


def test_a_frame_becomes_a_key_frame_when_less_than_six_tenths_of_it_are_known() -> None:
    estimator = MotionEstimator()
    keys = []
    for shift in range(0, 121, 12):
        place = estimator.step(texture(shift))
        assert place is not None
        assert place[0, 2] == pytest.approx(shift, abs=0.5)
        keys.append(len(estimator.keys))
    assert keys[7] == 1  # a shift of 84 of 240 pixels: 65 % are known
    assert keys[9] == 2  # 108 of 240: 55 %
