"""A video is looked at once: its camera, its background, what moves, and the scale for a tracker."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import ndimage

from scalor.config import ModelConfig, SceneConfig
from scalor.errors import InputError
from scalor.still.still_background import StillBackground
from scalor.still.survey import Survey
from scalor.tracking.video_view import (
    MAX_ASPECT,
    MAX_PIXELS,
    MIN_SIDE,
    TARGET_SIDE,
    Lens,
    VideoView,
    lens_for,
    look_at,
    resolution,
    slots_for,
    universal_contrast,
    universal_scale,
)
from scalor.tracks import Tracks
from scalor.video import open_video
from tests.model.worlds import parts

UNIVERSAL = ModelConfig(frame=(64, 64), grid=(16, 16), object_size=(18.0, 18.0), size_range=0.75, still=True)
COMPOSED = SceneConfig(kind="composed")


def found(height: float, width: float, strength: float = 0.5, objects: float = 5.0) -> Survey:
    return Survey((height, width), 1.0, objects, strength, (1.0, 1.0))


@pytest.fixture
def view(tmp_path: Path) -> VideoView:
    """Three dark blocks of 20x10 px that move over a noisy scene."""
    rng = np.random.default_rng(0)
    scene = rng.integers(120, 180, (96, 128, 3))
    frames = np.repeat(scene[None], 40, 0)
    for t in range(40):
        for n, (x, y) in enumerate(((5, 8), (40, 38), (20, 68))):
            left = (x + (2 + n) * t) % 110
            frames[t, y : y + 20, left : left + 10] = 20
    np.save(tmp_path / "blocks.npy", frames.astype(np.uint8))
    return look_at(open_video(tmp_path / "blocks.npy"))


def test_what_moves_is_measured(view: VideoView) -> None:
    assert view.found is not None
    assert view.found.object_size == pytest.approx((20, 10), rel=0.15)
    assert view.found.objects == pytest.approx(3, abs=0.6)
    assert view.motion is None
    assert view.steady is view.video


@pytest.mark.parametrize("size", [(80, 28), (28, 80), (40, 40), (400, 150), (12, 12)])
def test_universal_weights_see_objects_at_their_own_scale(size: tuple[float, float]) -> None:
    scale, stretch = universal_scale(found(*size), (576, 768))
    height, width = size[0] * scale, size[1] * scale * stretch
    assert max(height / width, width / height) <= MAX_ASPECT + 1e-3
    if max(size) > 12:
        assert np.sqrt(height * width) == pytest.approx(TARGET_SIDE, rel=1e-3)
    else:  # large enough as they are: enlarging would only cost time
        assert (height, width) == pytest.approx((12, 12))


def test_tiny_objects_are_enlarged_and_no_frame_becomes_too_large() -> None:
    scale, stretch = universal_scale(found(4, 4), (240, 320))
    assert 4 * scale == pytest.approx(MIN_SIDE)
    scale, stretch = universal_scale(found(4, 4), (2160, 3840))
    assert 2160 * scale * 3840 * scale * stretch <= MAX_PIXELS * 1.01


def test_faint_objects_are_made_stronger_but_not_without_limit() -> None:
    assert universal_contrast(found(20, 20, strength=0.5)) == 1
    assert universal_contrast(found(20, 20, strength=0.1)) == pytest.approx(3)
    assert universal_contrast(found(20, 20, strength=0.001)) == 8
    assert universal_contrast(None) == 1


def test_there_are_more_slots_than_objects_were_counted(view: VideoView) -> None:
    assert slots_for(view, UNIVERSAL, COMPOSED) == 24 + int(np.ceil(3 * view.found.objects))  # type: ignore[union-attr]
    assert slots_for(replace(view, found=found(9, 9, objects=5_000)), UNIVERSAL, COMPOSED) == 1024
    assert slots_for(view, UNIVERSAL, SceneConfig()) is None


def test_refined_weights_have_as_many_slots_as_universal_ones(view: VideoView) -> None:
    refined = SceneConfig(kind="footage", scale=0.5, object_size=(20.0, 10.0))
    assert slots_for(view, UNIVERSAL, refined) == slots_for(view, UNIVERSAL, COMPOSED)


def test_a_moving_camera_is_followed_and_boxes_come_back_to_the_frame(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = ndimage.gaussian_filter(rng.normal(size=(160, 300, 3)), (2, 2, 0))
    scene = ((noise - noise.min()) / np.ptp(noise) * 255).astype(np.uint8)
    np.save(tmp_path / "pan.npy", np.stack([scene[10:150, 2 * t : 200 + 2 * t] for t in range(40)]))
    view = look_at(open_video(tmp_path / "pan.npy"))
    assert view.camera is not None
    assert view.camera.moves
    assert view.motion is not None
    assert view.steady.size[1] > 260
    frames = list(view.video.whole_frames())
    one, box = np.zeros(1, int), np.array([[110.0, 50.0, 130.0, 90.0]])  # rests in the scene
    at = [
        view.to_frame(Tracks(one, one, one, box, np.ones(1), one > 0, view.steady.size), frame).box[0, 0]
        for frame in frames[::10]
    ]
    assert np.diff(at) == pytest.approx([-20] * 3, abs=0.5)
    inside = view.picture(frames[0])[20:-20, 20:150].astype(float)
    assert np.abs(inside - view.picture(frames[-1])[20:-20, 20:150]).mean() < 8
    fewer = view.steady.selected(stride=4)
    assert sum(1 for _ in fewer) == 10


def test_a_fitted_model_sees_the_same_camera_alike_at_any_resolution(view: VideoView) -> None:
    fitted = SceneConfig(kind="footage", scale=0.5, video_size=(192, 256))
    assert resolution(fitted, view.steady) == 2.0
    assert lens_for(view, UNIVERSAL, fitted).scale == 1.0
    other_shape = replace(fitted, video_size=(192, 192))
    assert lens_for(view, UNIVERSAL, other_shape).scale == 0.5
    assert lens_for(view, UNIVERSAL, replace(fitted, video_size=(0, 0))).scale == 0.5


def test_a_single_picture_has_nothing_that_moves(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros((1, 32, 32, 3), np.uint8))
    view = look_at(open_video(tmp_path / "one.npy"))
    assert view.background is None
    with pytest.raises(InputError, match="has 1 frame"):
        lens_for(view, UNIVERSAL, COMPOSED)


def test_a_fitted_model_has_slots_for_the_area_that_it_sees_with_fewer_objects_than_clips_have(view: VideoView) -> None:
    """A frame of 96 x 128 px has 12 times the area of a clip of 32 x 32 px, and is four times sparser."""
    model = replace(UNIVERSAL, frame=(32, 32), grid=(8, 8), slots=10)
    scene = SceneConfig(kind="footage", frame=(32, 32))
    assert slots_for(view, model, scene) == 30


def test_an_object_of_28_pixels_is_shown_half_as_large() -> None:
    assert universal_scale(found(28.0, 28.0), (480, 640)) == (0.5, 1.0)


def seen(boxes: Sequence[Sequence[float]], size: tuple[int, int], masks: np.ndarray | None = None) -> Tracks:
    rows = np.arange(len(boxes))
    box = np.array(boxes, np.float32).reshape(-1, 4)
    return Tracks(0 * rows, 0 * rows, rows, box, np.ones(len(rows)), rows == 0, size, masks)


@pytest.fixture
def picture() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (13, 22, 3)).astype(np.uint8)


def test_a_picture_of_whole_cells_stays_as_it_is(picture: np.ndarray) -> None:
    frame = Lens((13, 22)).to_frame(picture).image.numpy()
    np.testing.assert_allclose(frame, picture.transpose(2, 0, 1) / 255, atol=1e-6)


def test_the_last_row_and_column_are_repeated_up_to_whole_cells(picture: np.ndarray) -> None:
    frame = Lens((13, 22), cell=(8, 8)).to_frame(picture).image.numpy()
    expected = np.pad(picture, ((0, 3), (0, 2), (0, 0)), mode="edge").transpose(2, 0, 1) / 255
    np.testing.assert_allclose(frame, expected, atol=1e-6)


def test_only_the_region_is_seen(picture: np.ndarray) -> None:
    frame = Lens((13, 22), region=(4, 2, 14, 9), cell=(4, 5)).to_frame(picture).image.numpy()
    expected = np.pad(picture[2:9, 4:14], ((0, 1), (0, 0), (0, 0)), mode="edge").transpose(2, 0, 1) / 255
    np.testing.assert_allclose(frame, expected, atol=1e-6)


def test_boxes_and_masks_come_back_to_the_whole_picture() -> None:
    masks = np.zeros((1, 8, 12), bool)
    masks[0, 1:4, 2:5] = True
    lens = Lens((20, 30), region=(10, 5, 21, 12), cell=(4, 4))
    tracks = lens.to_original(seen([[2, 1, 5, 4]], (8, 12), masks))
    assert tracks.size == (20, 30)
    assert tracks.box.tolist() == [[12, 6, 15, 9]]
    assert tracks.masks is not None
    ys, xs = np.nonzero(tracks.masks[0])
    assert (ys.min(), ys.max() + 1, xs.min(), xs.max() + 1, len(ys)) == (6, 9, 12, 15, 9)


def test_what_is_seen_in_the_repeated_part_is_not_there() -> None:
    masks = np.ones((4, 16, 24), bool)
    boxes = [[18, 2, 25, 6], [20, 2, 25, 6], [2, 11, 6, 16], [2, 9, 6, 16]]
    tracks = Lens((13, 22), cell=(8, 8)).to_original(seen(boxes, (16, 24), masks))
    assert tracks.id.tolist() == [0, 3]
    assert tracks.masks is not None
    assert tracks.masks.shape == (2, 13, 22)


def test_where_nothing_is_repeated_an_object_may_leave_on_every_side() -> None:
    boxes = [(-9, 2, 1, 6), (14, 2, 20, 6), (2, 14, 6, 20)]
    assert len(Lens((16, 16), cell=(8, 8)).to_original(seen(boxes, (16, 16)))) == 3


def test_nothing_stays_nothing() -> None:
    tracks = Lens((5, 7), cell=(8, 8)).to_original(seen([], (8, 8), np.zeros((0, 8, 8), bool)))
    assert len(tracks) == 0
    assert tracks.masks is not None
    assert tracks.masks.shape == (0, 5, 7)


def test_a_shrunken_video_is_seen_small_and_told_large() -> None:
    lens = Lens((40, 60), region=(10, 0, 50, 40), cell=(8, 8), scale=0.5)
    bright = np.zeros((40, 60, 3), np.uint8)
    bright[10:20, 30:36] = 255
    frame = lens.to_frame(bright).image
    assert frame.shape == (3, 24, 24)
    assert (frame[0, 6:9, 11:12] > 0.9).all()
    masks = np.zeros((1, 24, 24), bool)
    masks[0, 5:10, 10:13] = True
    tracks = lens.to_original(seen([[10, 5, 13, 10]], (24, 24), masks))
    assert tracks.box.tolist() == [[30, 10, 36, 20]]
    assert tracks.masks is not None
    assert np.array_equal(tracks.masks[0], bright[..., 0] > 0)


def test_the_empty_scene_goes_with_every_frame(picture: np.ndarray) -> None:
    frame = Lens((13, 22), cell=(8, 8), background=StillBackground([255 - picture])).to_frame(picture)
    assert frame.size == (16, 24)
    image, still, ruler = parts(frame)
    np.testing.assert_allclose((image + still).numpy(), 1, atol=1e-6)
    assert torch.equal(ruler, torch.ones(16))


def test_the_ruler_goes_from_edge_to_edge_of_the_region(picture: np.ndarray) -> None:
    lens = Lens(
        (26, 22), region=(0, 13, 22, 26), cell=(8, 8), background=StillBackground([picture]), perspective=(0.5, 2.0)
    )
    _, _, ruler = parts(lens.to_frame(np.concatenate([picture, picture])))
    np.testing.assert_allclose(ruler, 0.5 + 1.5 * (np.arange(16) + 0.5) / 13, rtol=1e-5)


def test_height_and_width_may_be_scaled_apart() -> None:
    lens = Lens((40, 60), scale=0.5, stretch=3.0)
    assert lens.seen == (20, 90)
    assert lens.scales == (0.5, 1.5)
    back = lens.to_original(seen([[30, 5, 60, 15]], (20, 90)))
    assert back.box.tolist() == [[20, 10, 40, 30]]


def test_differences_from_the_background_are_amplified_by_the_contrast() -> None:
    scene = np.full((12, 20, 3), 100, np.uint8)
    picture = scene.copy()
    picture[4:8, 6:12] = 110
    background = StillBackground([scene])
    plain, strong = (Lens((12, 20), background=background, contrast=c).to_frame(picture).image for c in (1, 4))
    assert float(plain[0, 5, 8] * 255) == pytest.approx(110, abs=1)
    assert float(strong[0, 5, 8] * 255) == pytest.approx(140, abs=1)
    assert float(strong[0, 0, 0] * 255) == pytest.approx(100, abs=1)
