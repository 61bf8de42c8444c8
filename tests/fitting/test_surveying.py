"""What a video says of itself: made with objects of a known size, speed and number."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scalor.data.footage import Frames
from scalor.errors import InputError
from scalor.fitting import keeping
from scalor.fitting.choosing import (
    AREA,
    LEAST_AREA,
    LEAST_SIGMA,
    SIGMA,
    SIZE_RANGE,
    STRENGTH,
    Choice,
    choose,
    contrast_for,
    scale_for,
    sigma_for,
    stride_for,
)
from scalor.fitting.keeping import keep
from scalor.fitting.surveying import Survey, empty_scene, find_blobs, large_enough, survey
from scalor.perspective import FLAT
from scalor.training.guards import PATIENCE, warnings
from scalor.video import Video, open_video


def film(path: Path, size: tuple[int, int] = (16, 8), speed: float = 2, objects: int = 3, frames: int = 60) -> Path:
    """Bright boxes that walk to the right over a noisy grey scene and come back in on the left."""
    random = np.random.default_rng(0)
    scene = random.integers(60, 140, (96, 128, 3))
    pictures = np.repeat(scene[None], frames, 0) + random.integers(-3, 4, (frames, 96, 128, 3))
    for number in range(objects):
        top = 8 + number * 28
        for t in range(frames):
            left = round((37 * number + speed * t) % 160) - 16
            x0, x1 = max(left, 0), max(left + size[1], 0)
            pictures[t, top : top + size[0], x0:x1] = (250, 30 * number, 20)
    np.save(path, pictures.clip(0, 255).astype(np.uint8))
    return path


def test_the_median_of_the_frames_is_the_empty_scene(tmp_path: Path) -> None:
    with_objects = open_video(film(tmp_path / "a.npy"))
    without = open_video(film(tmp_path / "b.npy", objects=0))
    apart = np.abs(empty_scene(with_objects).astype(int) - empty_scene(without))
    assert np.mean(apart > 8) < 0.01


@pytest.mark.parametrize("size", [(16, 8), (10, 10), (8, 20)])
@pytest.mark.parametrize("speed", [0.2, 0.5, 1, 3])
def test_size_speed_and_number_are_found(size: tuple[int, int], speed: float, tmp_path: Path) -> None:
    video = open_video(film(tmp_path / "film.npy", size, speed, frames=max(60, round(60 / speed))))
    found = survey(video, empty_scene(video))
    assert found.object_size == pytest.approx(size, abs=2.5)
    assert found.speed == pytest.approx(speed, rel=0.3)  # boxes are drawn at whole pixels
    assert found.objects == pytest.approx(2.4, abs=0.7)  # now and then one is out of view


@pytest.mark.parametrize("slope", [0.0, 0.15])
def test_a_perspective_is_found_where_there_is_one(slope: float, tmp_path: Path) -> None:
    """Boxes whose height and width grow with the row that they walk along; some are pieces, some pairs."""
    random = np.random.default_rng(0)
    pictures = np.repeat(random.integers(60, 140, (1, 160, 200, 3)), 60, 0)
    for number, middle in enumerate((24, 50, 76, 102, 132)):
        tall = 18 + slope * (middle - 80)
        for t in range(60):
            left = round((41 * number + 3 * t) % 190)
            wide = round(tall / 2) * (2 if (t + number) % 9 == 0 else 1)
            top, bottom = round(middle - tall / 2), round(middle + (0 if (t + number) % 7 == 0 else tall / 2))
            pictures[t, top:bottom, left : left + wide] = (250, 30, 20)
    np.save(tmp_path / "film.npy", pictures.astype(np.uint8))
    video = open_video(tmp_path / "film.npy")
    found = survey(video, empty_scene(video))
    config = choose(found, Choice(), video.size, 60, "footage.npz")
    assert config.scene.perspective == found.perspective
    if slope == 0:
        assert found.perspective == FLAT
        assert config.model.size_range == SIZE_RANGE
    else:
        # In sizes of the object in the middle of the rows that things were seen at.
        (top, bottom), middle = found.perspective, 18 + slope * (76 - 80)
        assert top == pytest.approx((18 - 80 * slope) / middle, abs=0.25)
        assert bottom == pytest.approx((18 + 80 * slope) / middle, abs=0.3)
        assert found.object_size == pytest.approx((middle, middle / 2), abs=3.5)
        assert config.model.size_range < SIZE_RANGE


def test_faint_objects_are_found_and_made_stronger(tmp_path: Path) -> None:
    pictures = np.load(film(tmp_path / "film.npy", (10, 10)))
    scene = empty_scene(open_video(tmp_path / "film.npy"))
    faint = scene + 0.1 * (pictures.astype(float) - scene)
    np.save(tmp_path / "faint.npy", faint.round().astype(np.uint8))
    video = open_video(tmp_path / "faint.npy")
    found = survey(video, empty_scene(video))
    assert found.object_size == pytest.approx((10, 10), abs=2.5)
    config = choose(found, Choice(scale=1.0), video.size, 60, "footage.npz")
    assert 4 < config.scene.contrast <= 10
    kept = keep(video, empty_scene(video), config, found.strength)
    apart = np.abs(kept.frames.astype(int) - kept.stills).max(1)
    assert np.percentile(apart, 99.5) > 60


def test_faint_dots_of_a_few_pixels_are_counted_and_enlarged(tmp_path: Path) -> None:
    """Dots some five pixels wide, at most 18 of 255 darker than a noisy scene, that tremble and drift."""
    random = np.random.default_rng(0)
    row, column = np.mgrid[:96, :128]
    pictures = 130 + random.normal(0, 4, (60, 96, 128, 3))
    start, drift = random.uniform(0, 128, (30, 2)), random.normal(0, 0.7, (30, 2))
    for t in range(60):
        x, y = ((start + t * drift) % (128, 96)).T[:, :, None, None]
        pictures[t] -= (18 * np.exp(-((column - x) ** 2 + (row - y) ** 2) / 6)).sum(0)[..., None]
    np.save(tmp_path / "film.npy", pictures.round().astype(np.uint8))
    video = open_video(tmp_path / "film.npy")
    found = survey(video, empty_scene(video))
    assert 15 <= found.objects <= 30  # some touch, some are cut by the edge
    assert found.object_size == pytest.approx((5, 5), abs=2)
    config = choose(found, Choice(), video.size, 60, "footage.npz")
    assert np.prod(config.model.object_size) == pytest.approx(LEAST_AREA, rel=0.05)
    assert config.scene.scale > 1
    assert config.model.cell == (4, 4)
    kept = keep(video, empty_scene(video), config, found.strength)
    assert len(kept.spots) > 60 * 15


def test_large_objects_are_shrunken_small_ones_enlarged_and_others_left_as_they_are() -> None:
    areas = np.geomspace(1, 1e5, 50)
    scales = np.array([scale_for(area) for area in areas])
    assert (np.diff(scales) <= 0).all()
    seen = areas * scales**2
    assert seen[areas > AREA] == pytest.approx(AREA, rel=0.02)
    assert seen[areas < LEAST_AREA] == pytest.approx(LEAST_AREA, rel=0.02)
    assert (scales[(areas >= LEAST_AREA) & (areas <= AREA)] == 1).all()


def test_small_objects_are_made_stronger_than_large_ones() -> None:
    assert contrast_for(0.1, AREA) == contrast_for(0.1, 2 * AREA) == 4
    assert contrast_for(0.1, AREA / 2) == pytest.approx(4 * 2**0.5, abs=0.1)
    assert contrast_for(0.1, 1) == 7
    assert contrast_for(0.01, AREA) == 10
    assert contrast_for(0.9, 1) == contrast_for(0.0, AREA) == 1


def test_the_less_there_is_of_an_object_the_less_noise_is_expected() -> None:
    strengths, areas = np.geomspace(0.01, 1, 9), np.geomspace(1, 2 * AREA, 9)
    sigma = np.array([[sigma_for(strength, area) for area in areas] for strength in strengths])
    assert (np.diff(sigma, axis=0) >= 0).all()
    assert (np.diff(sigma, axis=1) >= 0).all()
    assert (sigma.min(), sigma.max()) == (LEAST_SIGMA, SIGMA)
    assert sigma_for(STRENGTH, AREA) == SIGMA


def test_a_still_video_is_told(tmp_path: Path) -> None:
    video = open_video(film(tmp_path / "film.npy", objects=0))
    with pytest.raises(InputError, match="shows nothing that moves"):
        survey(video, empty_scene(video))


def test_one_frame_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 1 frame"):
        empty_scene(open_video(film(tmp_path / "film.npy", frames=1)))


def test_blobs_are_the_pieces_that_hang_together() -> None:
    changed = np.zeros((20, 30), bool)
    changed[2:8, 3:7] = changed[10:20, 20:28] = changed[0, 29] = True
    blobs = find_blobs(changed)
    assert blobs.centre.tolist() == [[5, 5], [24, 15]]
    assert blobs.size.tolist() == [[6, 4], [10, 8]]
    assert blobs.area.tolist() == [24, 80]
    assert blobs.whole.tolist() == [True, False]


def test_the_nearer_a_blob_the_larger_it_must_be_for_an_object() -> None:
    changed = np.zeros((100, 60), bool)
    changed[2:8, 3:9] = changed[80:86, 3:9] = changed[80:98, 20:38] = True
    blobs = find_blobs(changed)
    assert large_enough(blobs, (20, 10), 100, FLAT).tolist() == [True, True, True]
    assert large_enough(blobs, (20, 10), 100, (0.5, 2.0)).tolist() == [True, False, True]


def test_what_is_chosen_fits_together_and_what_is_said_counts(tmp_path: Path) -> None:
    video = open_video(film(tmp_path / "film.npy", (40, 20)))
    still = empty_scene(video)
    found = survey(video, still)
    config = choose(found, Choice(), video.size, 60, "footage.npz")
    assert np.prod(config.model.object_size) == pytest.approx(320, rel=0.15)
    assert config.scene.scale < 1
    said = choose(found, Choice((10, 10), 1.0, 5, steps=60), video.size, 60, "footage.npz")
    assert (said.model.object_size, said.scene.scale, said.scene.stride) == ((10, 10), 1.0, 5)
    assert said.train.steps == 60


@pytest.mark.parametrize(("speed", "stride"), [(0, 1), (0.1, 8), (1, 2), (30, 1)])
def test_slow_objects_are_seen_every_so_many_frames(speed: float, stride: int) -> None:
    assert stride_for(speed, 20) == stride


@pytest.mark.parametrize(("frames", "stride"), [(80, 8), (79, 7), (20, 2), (9, 1)])
def test_a_chosen_stride_leaves_a_clip_of_a_short_video(frames: int, stride: int) -> None:
    slow = Survey((20, 20), 0.1, 3, 0.5, FLAT)
    assert choose(slow, Choice(), (96, 128), frames, "footage.npz").scene.stride == stride


def test_a_fit_whose_clips_hold_one_object_is_not_taken_for_a_collapse() -> None:
    config = choose(Survey((20, 20), 1, 1, 0.5, FLAT), Choice(), (96, 128), 60, "footage.npz")
    metrics = {"objects": 0.8, "discovered": 0.1, "turned_away": 0.0, "crowded_out": 0.0}
    assert warnings(config, PATIENCE, metrics) == []


def test_spots_in_a_perspective_are_large_for_where_they_are(tmp_path: Path) -> None:
    video = open_video(film(tmp_path / "film.npy", (10, 10)))
    still = empty_scene(video)
    config = choose(survey(video, still), Choice((20, 10), 1.0), video.size, 60, "footage.npz")
    near = replace(config, scene=replace(config.scene, perspective=(0.1, 3.0)))
    rows = {row // 28 for row in keep(video, still, config, strength=0.5).spots[:, 1]}
    assert rows == {0, 1, 2}
    assert {row // 28 for row in keep(video, still, near, strength=0.5).spots[:, 1]} == {0, 1}


def test_no_more_is_kept_of_a_long_video_whether_or_not_its_length_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = open_video(film(tmp_path / "film.npy", frames=200))
    still = empty_scene(video)
    config = choose(survey(video, still), Choice((16, 8), 0.5, 1), video.size, 200, "footage.npz")
    monkeypatch.setattr(keeping, "MOST_BYTES", 0)

    def kept() -> Frames:
        return keep(video, still, config, strength=0.5)

    known = kept()
    monkeypatch.setattr(Video, "frames", None)
    assert len(kept().frames) == len(known.frames) == 80
    assert kept().starts.tolist() == known.starts.tolist() == [0, 40]


def test_all_frames_are_kept_with_the_spots_where_objects_are(tmp_path: Path) -> None:
    video = open_video(film(tmp_path / "film.npy"))
    still = empty_scene(video)
    config = choose(survey(video, still), Choice((16, 8), 0.5, 1), video.size, 60, "footage.npz")
    kept = keep(video, still, config, strength=0.5)
    assert kept.frames.shape == (60, 3, 48, 64)
    assert kept.starts.tolist() == [0]
    assert 100 < len(kept.spots) < 200
    assert set(kept.spots[:, 1] // 14) == {0, 1, 2}  # the three rows that objects walk in
