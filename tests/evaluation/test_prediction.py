"""Forecasts: pixel errors, centre errors, and what standing still or going straight on would give."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from scalor.errors import InputError
from scalor.evaluation.prediction import (
    centre_errors,
    constant_velocity,
    copy_last_boxes,
    copy_last_frame,
    frame_errors,
)
from scalor.tracks import Tracks

from .stories import tracks_of, truth_of

FRAMES, OBSERVE = 8, 3


def walk(velocity: tuple[float, float] = (2.0, 1.0), frames: int = FRAMES) -> np.ndarray:
    """Two objects in one clip, the second standing still: [1, T, 2, 2]."""
    steps = np.arange(frames)[:, None] * np.array([velocity])
    return np.stack([10 + steps, np.full((frames, 2), 50.0)], axis=1)[None]


def observed(centre: np.ndarray) -> Tracks:
    tracks = tracks_of(centre)
    return tracks.select(tracks.frame < OBSERVE)


def test_pixel_errors_are_per_step() -> None:
    true = torch.zeros(2, 3, 3, 4, 5)
    guess = true.clone()
    guess[:, 1] = 0.5
    guess[0, 2] = 1.0
    np.testing.assert_allclose(frame_errors(guess, true), [0, 0.25, 0.5])


def test_the_copied_frame_is_the_last_observed_one() -> None:
    frames = torch.arange(5.0).view(1, 5, 1, 1, 1).expand(2, 5, 3, 2, 2)
    copied = copy_last_frame(frames, observe=2)
    assert copied.shape == (2, 3, 3, 2, 2)
    assert (copied == 1).all()


def test_constant_velocity_is_right_about_straight_walkers_and_copying_is_not() -> None:
    centre = walk()
    straight = centre_errors(constant_velocity(observed(centre), OBSERVE, FRAMES), truth_of(centre), 4.0, OBSERVE)
    still = centre_errors(copy_last_boxes(observed(centre), OBSERVE, FRAMES), truth_of(centre), 4.0, OBSERVE)
    np.testing.assert_allclose(straight.mean, 0, atol=1e-9)
    np.testing.assert_allclose(still.mean, np.arange(1, 6) * np.sqrt(5) / 2)  # one of two walks
    assert straight.followed.tolist() == still.followed.tolist() == [2] * 5


def test_the_baselines_use_observed_frames_only() -> None:
    centre = walk()
    whole = tracks_of(centre)
    for baseline in (constant_velocity, copy_last_boxes):
        a, b = baseline(observed(centre), OBSERVE, FRAMES), baseline(whole, OBSERVE, FRAMES)
        np.testing.assert_array_equal(a.box, b.box)
        assert a.frame.tolist() == b.frame.tolist() == np.repeat(np.arange(FRAMES), 2).tolist()


def test_an_object_first_found_in_the_last_observed_frame_stands_still() -> None:
    present = np.zeros((1, OBSERVE, 2), dtype=bool)
    present[:, -1] = True
    forecast = constant_velocity(tracks_of(walk(frames=OBSERVE), present), OBSERVE, FRAMES)
    moving = forecast.select(forecast.id == 0)
    np.testing.assert_allclose(moving.centre, np.broadcast_to(moving.centre[0], (6, 2)))


def test_the_correspondence_is_frozen_at_the_last_observed_frame() -> None:
    centre = walk()
    swapped = centre.copy()
    swapped[:, OBSERVE:] = centre[:, OBSERVE:, ::-1]  # the forecasts change places
    errors = centre_errors(tracks_of(swapped), truth_of(centre), 4.0, OBSERVE)
    apart = np.linalg.norm(centre[0, OBSERVE:, 0] - centre[0, OBSERVE:, 1], axis=-1)
    np.testing.assert_allclose(errors.mean, apart)


def test_forecasts_that_end_are_lost_and_objects_that_left_are_not_measured() -> None:
    centre = walk()
    gone, ended = np.ones((1, FRAMES, 2), dtype=bool), np.ones((1, FRAMES, 2), dtype=bool)
    gone[0, 6:, 0] = False
    ended[0, 5:, 1] = False
    errors = centre_errors(tracks_of(centre, ended), truth_of(centre, gone), 4.0, OBSERVE)
    assert errors.followed.tolist() == [2, 2, 1, 0, 0]
    assert errors.lost.tolist() == [0, 0, 1, 1, 1]
    np.testing.assert_allclose(errors.mean, [0, 0, 0, np.nan, np.nan])
    assert (errors + errors).followed.tolist() == [4, 4, 2, 0, 0]


def test_a_forecast_that_runs_out_of_the_view_is_wrong_rather_than_lost() -> None:
    centre = walk()
    astray = centre.copy()
    astray[0, OBSERVE:, 0] = (500.0, 10.0)
    errors = centre_errors(tracks_of(astray), truth_of(centre), 4.0, OBSERVE)
    assert errors.lost.sum() == 0
    assert errors.mean.min() > 200


def test_only_objects_matched_in_the_strict_gate_are_measured() -> None:
    centre = walk()
    off = centre + np.array([[2.1, 0.0], [0.0, 0.0]])  # half of size 4 is 2
    errors = centre_errors(tracks_of(off), truth_of(centre), 4.0, OBSERVE)
    assert errors.followed.tolist() == [1] * 5


def test_unsure_forecasts_are_lost() -> None:
    tracks = tracks_of(walk())
    faded = replace(tracks, confidence=np.where(tracks.frame >= OBSERVE, 0.5, 1.0))
    assert centre_errors(faded, truth_of(walk()), 4.0, OBSERVE).lost.tolist() == [2] * 5


@pytest.mark.parametrize("observe", [0, FRAMES])
def test_something_must_be_observed_and_something_left(observe: int) -> None:
    with pytest.raises(InputError, match=f"observe is {observe}"):
        centre_errors(tracks_of(walk()), truth_of(walk()), 4.0, observe)
