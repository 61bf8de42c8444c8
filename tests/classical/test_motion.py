"""Moving objects before a still camera: shadows, ghosts, pieces and crowds."""

import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from scalor.classical.motion import MotionDetector, apart, centred, ghosts, whole
from scalor.classical.tracker import ClassicalTracker
from scalor.evaluation.score import score
from scalor.still.foreground import ForegroundTest
from scalor.still.still_background import StillBackground
from scalor.tracks import join_tracks
from scalor.video import iterate_frames

SIZE = (20.0, 8.0)
NOBODY = np.zeros((0, 4))
DARK = np.array([0.1, 0.1, 0.3])[:, None, None]


def street(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.45, 0.55, (3, 60, 80)).astype(np.float32)


def walker(frame: np.ndarray, x: int, y: int = 20) -> np.ndarray:
    frame = frame.copy()
    frame[:, y : y + 20, x : x + 8] = DARK
    return frame


def filled(box: tuple[int, int, int, int]) -> np.ndarray:
    labels = np.zeros((60, 80), dtype=int)
    labels[box[1] : box[3], box[0] : box[2]] = 1
    return labels


def test_a_walker_is_found_with_its_box() -> None:
    detector, empty = MotionDetector(SIZE), street()
    for _ in range(6):
        assert len(detector(empty, NOBODY).box) == 0
    np.testing.assert_allclose(detector(walker(empty, 30), NOBODY).box, [(30, 20, 38, 40)], atol=1)


@pytest.mark.parametrize("gain", [0.6, 1.0, 1.5])
def test_with_the_scene_of_the_whole_video_the_first_frame_tells_in_any_light(gain: float) -> None:
    scene = StillBackground([(street() * 255).round().astype(np.uint8).transpose(1, 2, 0)])
    detector = MotionDetector(SIZE, scene)
    found = detector(np.clip(gain * walker(street(), 30), 0, 1), NOBODY)
    np.testing.assert_allclose(found.box, [(30, 20, 38, 40)], atol=1)


def test_a_grey_thing_is_no_shadow_where_colour_tells_nothing() -> None:
    empty = np.full((3, 60, 80), 0.6, np.float32)
    scene = StillBackground([np.full((60, 80, 3), 153, np.uint8)])
    frame = empty.copy()
    frame[:, 20:40, 30:38] = 0.4
    assert len(MotionDetector(SIZE, scene)(frame, NOBODY).box) == 0
    found = MotionDetector(SIZE, scene, ForegroundTest(colourful=False))(frame, NOBODY)
    np.testing.assert_allclose(found.box, [(30, 20, 38, 40)], atol=1)


def test_large_objects_are_found_in_a_coarser_picture() -> None:
    detector = MotionDetector((60.0, 24.0))
    assert (detector.coarse, detector.size) == (2, (30, 12))
    for _ in range(5):
        detector(street(), NOBODY)
    frame = street()
    frame[:, :60, 20:44] = DARK
    np.testing.assert_allclose(detector(frame, NOBODY).box, [(20, 0, 44, 60)], atol=2)


def test_who_has_left_a_learnt_background_is_a_ghost() -> None:
    labels = np.zeros((60, 80), dtype=int)
    labels[20:40, 30:38] = 1
    empty, there = np.full((3, 60, 80), 0.5), walker(np.full((3, 60, 80), 0.5), 30)
    assert ghosts(labels, empty, there).tolist() == [True]
    assert ghosts(labels, there, empty).tolist() == [False]


def test_pieces_that_fit_one_object_are_one() -> None:
    labels = np.zeros((60, 80), dtype=int)
    labels[10:18, 30:38], labels[20:30, 31:37], labels[20:30, 60:66] = 1, 2, 3
    joined = whole(labels, SIZE)
    assert len(np.unique(joined)) == 3
    assert joined[12, 32] == joined[25, 32] != joined[25, 62]


@pytest.mark.parametrize(
    ("blob", "count"), [((10, 10, 18, 30), 1), ((10, 10, 22, 30), 1), ((10, 10, 26, 30), 2), ((10, 10, 18, 50), 2)]
)
def test_a_blob_too_large_for_one_is_cut(blob: tuple[int, int, int, int], count: int) -> None:
    parts, source = apart(filled(blob), NOBODY, SIZE)
    assert (len(parts), source.tolist()) == (count, [0] * count)
    assert (parts[:, :2].min(0).tolist(), parts[:, 2:].max(0).tolist()) == (list(blob[:2]), list(blob[2:]))


def test_a_blob_is_what_is_expected_in_it() -> None:
    """They touch: each goes on as expected, but not beyond the blob, in the middle of the pixels about it."""
    expected = np.array([(9.0, 10, 17, 30), (19, 12, 27, 32)])
    parts, source = apart(filled((10, 10, 26, 31)), expected, SIZE)
    np.testing.assert_allclose(parts, [[10, 10, 18, 30], [18, 11, 26, 31]], atol=0.3)
    assert source.tolist() == [0, 0]
    twice = np.concatenate([expected, expected + 1])  # the same two once more
    assert len(apart(filled((10, 10, 26, 31)), twice, SIZE)[0]) == 2


def test_those_in_a_blob_stand_where_its_pixels_are() -> None:
    inside = np.zeros((60, 80), dtype=bool)
    inside[10:30, 10:18] = inside[10:30, 24:32] = True
    moved = centred(np.array([(8.0, 10, 16, 30), (25, 14, 33, 34)]), inside, SIZE)
    np.testing.assert_allclose(moved, [(10, 10, 18, 30), (24, 14, 32, 34)])


def test_one_who_hides_another_is_one() -> None:
    expected = np.array([(10.0, 10, 18, 30), (11.0, 10, 19, 30)])
    assert apart(filled((10, 10, 19, 30)), expected, SIZE)[0].tolist() == [[10, 10, 19, 30]]


@pytest.mark.slow
@pytest.mark.skipif("SCALOR_DATA" not in os.environ, reason="SCALOR_DATA is not set: no PETS video to track")
def test_walkers_of_a_real_video_are_followed(tmp_path: Path) -> None:
    """The first 200 frames of those that the numbers were chosen on."""
    data = Path(os.environ["SCALOR_DATA"]) / "pets"
    pictures = islice(iterate_frames(data / "vtest.avi"), 200)
    frames = (picture.transpose(2, 0, 1).astype(np.float32) / 255 for picture in pictures)
    join_tracks(list(ClassicalTracker((80, 28), "motion").stream(frames))).to_csv(tmp_path / "tracks.csv")
    gates = score(tmp_path / "tracks.csv", data / "gt.txt", frames=(1, 200)).gates
    assert gates["centre"].clear.recall > 0.95
    assert gates["iou .3"].clear.mota > 0.7
