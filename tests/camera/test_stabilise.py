from pathlib import Path

import cv2
import numpy as np
import pytest

from scalor.camera import estimate_motion
from scalor.camera.stabilise import CameraMotion, in_common_view, mosaic_of, move_boxes, stabilise
from scalor.errors import InputError
from scalor.video import open_video
from tests.camera.filming import HEIGHT, WIDTH, film, pose

BOXES = np.array([[20.0, 30, 50, 90], [100, 60, 130, 80]])
POSES = [pose(), pose(30, -10), pose(0, 0, 5), pose(0, 0, 0, 1.3), pose(-20, 5, -4, 1.1)]
TURNED = (2, 4)


def motion_of(poses: list[np.ndarray]) -> CameraMotion:
    return in_common_view(
        np.stack(poses), np.arange(len(poses)) * 3, (HEIGHT, WIDTH), np.arange(len(poses)) == len(poses) - 1
    )


MOTION = motion_of(POSES)


def test_boxes_come_back_from_the_view_exactly_unless_turned() -> None:
    for place, number in enumerate(MOTION.indices.tolist()):
        back = MOTION.boxes_to_frame(number, move_boxes(MOTION.transform(number), BOXES))
        np.testing.assert_allclose(back, BOXES, atol=0.6 if place in TURNED else 1e-9)


def test_the_box_of_a_turned_disc_does_not_grow() -> None:
    square = np.array([[100.0, 50, 140, 90]])
    moved = move_boxes(motion_of([pose(), pose(degrees=30)]).transform(3), square)
    np.testing.assert_allclose(moved[:, 2:] - moved[:, :2], 40)


def test_a_quarter_turn_swaps_height_and_width() -> None:
    moved = move_boxes(motion_of([pose(), pose(degrees=90)]).transform(3), np.array([[100.0, 50, 140, 70]]))
    np.testing.assert_allclose(moved[:, 2:] - moved[:, :2], [[20, 40]])


def test_the_view_holds_every_frame_and_shows_the_scene_in_one_place() -> None:
    frames = film(POSES, discs=0, noise=0)
    drawn = [MOTION.to_view(number, frame) for number, frame in zip(MOTION.indices.tolist(), frames, strict=True)]
    for place, (view, valid) in enumerate(drawn):
        assert view.shape[:2] == valid.shape == MOTION.view_size
        area = HEIGHT * WIDTH * MOTION.scales[place] ** 2
        assert 0.96 * area < valid.sum() <= area
        beyond = cv2.dilate(valid.astype(np.uint8), np.ones((5, 5), np.uint8)) == 0
        assert beyond.any()
        assert not view[beyond].any()
    first, at_first = drawn[0]
    for view, valid in drawn[1:]:
        both = valid & at_first
        assert both.sum() > 5000
        assert np.abs(view[both].astype(float) - first[both]).mean() < 2


def test_masks_go_where_their_boxes_go() -> None:
    number = 12
    masks = np.zeros((2, *MOTION.view_size), bool)
    masks[0, 60:100, 80:120], masks[1, 90:120, 150:160] = True, True
    moved = MOTION.masks_to_frame(number, masks)
    assert moved.shape == (2, HEIGHT, WIDTH)
    boxes = MOTION.boxes_to_frame(number, np.array([[80.0, 60, 120, 100], [150, 90, 160, 120]]))
    areas = np.array([1600, 300]) / MOTION.scales[4] ** 2
    for mask, box, area in zip(moved, boxes, areas, strict=True):
        y, x = np.nonzero(mask)
        np.testing.assert_allclose([x.mean() + 0.5, y.mean() + 0.5], (box[:2] + box[2:]) / 2, atol=0.5)
        assert mask.sum() == pytest.approx(area, rel=0.08)


def test_a_still_camera_gets_its_own_frames_as_the_view() -> None:
    still = motion_of([pose(10, 5)] * 3)
    frame = film([pose()])[0]
    view, valid = still.to_view(3, frame)
    assert still.view_size == (HEIGHT, WIDTH)
    assert valid.all()
    np.testing.assert_array_equal(view, frame)


def test_a_view_that_would_be_too_large_is_scaled_down() -> None:
    motion = motion_of([pose(x) for x in range(0, 2000, 100)])
    assert motion.view_size[1] == 2 * WIDTH
    assert motion.scales.max() < 0.25
    assert motion.shift[0] == pytest.approx(1900)
    view, valid = motion.to_view(0, film([pose()])[0])
    assert 0 < valid.sum() < 0.1 * HEIGHT * WIDTH
    assert view[valid].std() > 5


def test_figures_tell_the_motion() -> None:
    motion = motion_of([pose(), pose(30), pose(30, 12, 6), pose(0, 0, -2, 1.25)])
    assert motion.shift == pytest.approx((30, 12))
    assert motion.rotation == pytest.approx(8)
    assert motion.zoom == pytest.approx(1.25)
    assert not motion.reliable  # one frame of four was not placed
    assert motion.describe() == (
        "the camera moves: up to 30 px sideways and 12 px up or down, 8.0 degrees, zoom 1.00 to 1.25; "
        "25% of the frames could not be placed"
    )


def test_a_frame_or_a_size_that_it_does_not_know_is_refused() -> None:
    for number in (-1, 1, 13):
        with pytest.raises(InputError, match=f"frame is {number}: .* frames 0 to 12"):
            MOTION.transform(number)
    with pytest.raises(InputError, match="picture is 10 x 20 pixels: give a whole frame of 240 x 180"):
        MOTION.to_view(0, np.zeros((20, 10, 3), np.uint8))


def panned(tmp_path: Path) -> tuple[np.ndarray, Path]:
    """A scene of smooth random patches, over which a window moves to the right by 2 px a frame."""
    from scipy import ndimage

    noise = np.random.default_rng(0).normal(size=(140, 260, 3))
    smooth = ndimage.gaussian_filter(noise, (2, 2, 0))
    scene = ((smooth - smooth.min()) / np.ptp(smooth) * 255).astype(np.uint8)
    frames = np.stack([scene[10:130, 10 + 2 * t : 170 + 2 * t] for t in range(30)])
    np.save(tmp_path / "pan.npy", frames)
    return scene, tmp_path / "pan.npy"


def test_the_scene_stands_still_in_the_common_view(tmp_path: Path) -> None:
    _, path = panned(tmp_path)
    video = open_video(path)
    motion = estimate_motion(video)
    steady = stabilise(video, motion)
    pictures = np.stack([frame.picture for frame in steady]).astype(float)
    assert pictures.shape[1:3] == motion.view_size
    assert motion.view_size[1] > 160 + 50  # all that any frame shows
    inner = pictures[:, 5:-5, 5:-5]
    assert np.abs(inner - np.median(inner, 0)).mean() < 4
    still = np.stack([frame.picture for frame in video]).astype(float)
    assert np.abs(still - np.median(still, 0)).mean() > 12


def test_what_no_frame_shows_of_the_view_is_filled_by_other_frames(tmp_path: Path) -> None:
    scene, path = panned(tmp_path)
    video = open_video(path)
    motion = estimate_motion(video)
    mosaic = mosaic_of(video, motion).astype(float)
    # The view begins with the first frame's corner: the mosaic is the scene from there on.
    height, width = mosaic.shape[:2]
    expected = scene[10 : 10 + height, 10 : 10 + width].astype(float)
    rows, columns = min(height, len(expected)) - 4, min(width, expected.shape[1]) - 4
    assert np.abs(mosaic[4:rows, 4:columns] - expected[4:rows, 4:columns]).mean() < 12
