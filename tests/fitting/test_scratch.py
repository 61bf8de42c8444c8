"""The settings of a model, from what was found in a video."""

from pathlib import Path

import numpy as np
import pytest

from scalor.boxes import FLAT
from scalor.fitting.options import FitOptions
from scalor.fitting.scratch import (
    AREA,
    LEAST_AREA,
    LEAST_SIGMA,
    SIGMA,
    SIZE_RANGE,
    STRENGTH,
    choose,
    contrast_for,
    scale_for,
    sigma_for,
    stride_for,
)
from scalor.still.still_background import StillBackground
from scalor.still.survey import Survey, survey
from scalor.tracking.video_view import look_at
from scalor.training.guards import FIRST_WARNING_STEP, warnings
from scalor.video import open_video
from tests.still.films import walking_boxes


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


def test_what_is_chosen_fits_together_and_what_is_said_counts(tmp_path: Path) -> None:
    video = open_video(walking_boxes(tmp_path / "film.npy", (40, 20)))
    found = survey(video, StillBackground.of(video))
    config = choose(found, FitOptions(), video.size, 60, "footage.npz")
    assert np.prod(config.model.object_size) == pytest.approx(320, rel=0.15)
    assert config.scene.scale < 1
    said = choose(
        found,
        FitOptions(object_size=(10, 10), scale=1.0, stride=5, steps=60, scratch=True),
        video.size,
        60,
        "footage.npz",
    )
    assert (said.model.object_size, said.scene.scale, said.scene.stride) == ((10, 10), 1.0, 5)
    assert said.train.steps == 60


@pytest.mark.parametrize(("speed", "stride"), [(0, 1), (0.1, 8), (1, 2), (30, 1)])
def test_slow_objects_are_seen_every_so_many_frames(speed: float, stride: int) -> None:
    assert stride_for(speed, 20) == stride


@pytest.mark.parametrize(("frames", "stride"), [(80, 8), (79, 7), (20, 2), (9, 1)])
def test_a_chosen_stride_leaves_a_clip_of_a_short_video(frames: int, stride: int) -> None:
    slow = Survey((20, 20), 0.1, 3, 0.5, FLAT)
    assert choose(slow, FitOptions(), (96, 128), frames, "footage.npz").scene.stride == stride


def test_a_fit_whose_clips_hold_one_object_is_not_taken_for_a_collapse() -> None:
    config = choose(Survey((20, 20), 1, 1, 0.5, FLAT), FitOptions(), (96, 128), 60, "footage.npz")
    metrics = {"objects": 0.8, "discovered": 0.1, "turned_away": 0.0, "crowded_out": 0.0}
    assert warnings(config, FIRST_WARNING_STEP, metrics) == []


def test_sizes_vary_less_where_there_is_a_perspective() -> None:
    flat, deep = (
        choose(Survey((20, 10), 1, 3, 0.5, perspective), FitOptions(), (96, 128), 60, "footage.npz")
        for perspective in (FLAT, (0.5, 1.5))
    )
    assert deep.scene.perspective == (0.5, 1.5)
    assert deep.model.size_range < flat.model.size_range == SIZE_RANGE


def test_dots_of_a_few_pixels_are_enlarged() -> None:
    config = choose(Survey((5, 5), 0.5, 30, 0.07, FLAT), FitOptions(), (96, 128), 60, "footage.npz")
    assert np.prod(config.model.object_size) == pytest.approx(LEAST_AREA, rel=0.05)
    assert config.scene.scale > 1
    assert config.model.cell == (4, 4)


def test_a_clip_has_room_for_two_objects_above_each_other_and_four_beside(tmp_path: Path) -> None:
    view = look_at(open_video(walking_boxes(tmp_path / "film.npy", (16, 8))), (16.0, 8.0))
    assert view.found is not None
    config = choose(
        view.found,
        FitOptions(object_size=(40.0, 40.0), scale=1.0, stride=1, scratch=True),
        (400, 400),
        60,
        "footage.npz",
    )
    height, width = config.scene.frame
    assert 80 <= height < 80 + config.model.cell[0]
    assert 160 <= width < 160 + config.model.cell[1]
