"""Pictures become frames, and boxes and masks find their way back."""

import numpy as np
import pytest

from scalor.boxes import RULER_SCALE
from scalor.still.background import Background
from scalor.tracking.lens import Lens
from scalor.tracks import Tracks


def seen(boxes: list[list[float]], size: tuple[int, int], masks: np.ndarray | None = None) -> Tracks:
    rows = np.arange(len(boxes))
    box = np.array(boxes, np.float32).reshape(-1, 4)
    return Tracks(0 * rows, 0 * rows, rows, box, np.ones(len(rows)), rows == 0, size, masks)


@pytest.fixture
def picture() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (13, 22, 3)).astype(np.uint8)


def test_a_picture_of_whole_cells_stays_as_it_is(picture: np.ndarray) -> None:
    frame = Lens((13, 22)).to_frame(picture).numpy()
    np.testing.assert_allclose(frame, picture.transpose(2, 0, 1) / 255, atol=1e-6)


def test_the_last_row_and_column_are_repeated_up_to_whole_cells(picture: np.ndarray) -> None:
    frame = Lens((13, 22), cell=(8, 8)).to_frame(picture).numpy()
    expected = np.pad(picture, ((0, 3), (0, 2), (0, 0)), mode="edge").transpose(2, 0, 1) / 255
    np.testing.assert_allclose(frame, expected, atol=1e-6)


def test_only_the_region_is_seen(picture: np.ndarray) -> None:
    frame = Lens((13, 22), region=(4, 2, 14, 9), cell=(4, 5)).to_frame(picture).numpy()
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
    boxes = [[-9.0, 2, 1, 6], [14, 2, 20, 6], [2, 14, 6, 20]]
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
    frame = lens.to_frame(bright)
    assert frame.shape == (3, 24, 24)
    assert (frame[0, 6:9, 11:12] > 0.9).all()
    masks = np.zeros((1, 24, 24), bool)
    masks[0, 5:10, 10:13] = True
    tracks = lens.to_original(seen([[10, 5, 13, 10]], (24, 24), masks))
    assert tracks.box.tolist() == [[30, 10, 36, 20]]
    assert tracks.masks is not None
    assert np.array_equal(tracks.masks[0], bright[..., 0] > 0)


def test_the_empty_scene_goes_with_every_frame(picture: np.ndarray) -> None:
    frame = Lens((13, 22), cell=(8, 8), background=Background([255 - picture])).to_frame(picture)
    assert frame.shape == (7, 16, 24)
    np.testing.assert_allclose((frame[:3] + frame[3:6]).numpy(), 1, atol=1e-6)
    assert (frame[6] == 1 / RULER_SCALE).all()


def test_the_ruler_goes_from_edge_to_edge_of_the_region(picture: np.ndarray) -> None:
    lens = Lens((26, 22), region=(0, 13, 22, 26), cell=(8, 8), background=Background([picture]), perspective=(0.5, 2.0))
    ruler = lens.to_frame(np.concatenate([picture, picture]))[6].numpy() * RULER_SCALE
    assert np.ptp(ruler, axis=1).max() == 0
    np.testing.assert_allclose(ruler[:, 0], 0.5 + 1.5 * (np.arange(16) + 0.5) / 13, rtol=1e-5)


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
    background = Background([scene])
    plain, strong = (Lens((12, 20), background=background, contrast=contrast).to_frame(picture) for contrast in (1, 4))
    assert float(plain[0, 5, 8] * 255) == pytest.approx(110, abs=1)
    assert float(strong[0, 5, 8] * 255) == pytest.approx(140, abs=1)
    assert float(strong[0, 0, 0] * 255) == pytest.approx(100, abs=1)
