"""What is drawn lands where it should, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from scalor.errors import InputError
from scalor.tracks import Tracks
from scalor.visual import colors_of, overlay
from tests.visual.scenes import Row, tracks_of

GREY = np.full((1, 3, 64, 64), 0.5, np.float32)
BOX: Row = (0, 3, (20.25, 30.0, 40.0, 44.5))


def is_color(picture: np.ndarray, number: int) -> np.ndarray:
    same: np.ndarray = (picture == colors_of(np.array(number))).all(axis=-1)
    return same


def test_frames_without_objects_are_only_enlarged() -> None:
    frames = np.random.default_rng(0).random((2, 3, 5, 7), np.float32)
    pictures = overlay(frames, tracks_of([], (5, 7)), scale=3)
    expected = np.floor(frames * 255 + 0.5).astype(np.uint8).transpose(0, 2, 3, 1)
    assert np.array_equal(pictures, expected.repeat(3, axis=1).repeat(3, axis=2))


@pytest.mark.parametrize("scale", [1, 2, 4, 8])
def test_the_outline_has_the_box_as_its_outer_edge(scale: int) -> None:
    picture = overlay(GREY, tracks_of([BOX], (64, 64)), scale=scale, labels=False)[0]
    y, x = np.nonzero(is_color(picture, 3))
    x0, y0, x1, y1 = (round(v * scale) for v in BOX[2])
    assert (x.min(), y.min(), x.max() + 1, y.max() + 1) == (x0, y0, x1, y1)
    thickness = 2 if scale == 8 else 1
    inner = picture[y0 + thickness : y1 - thickness, x0 + thickness : x1 - thickness]
    assert (inner == 128).all()


def test_pixels_away_from_the_object_stay_untouched() -> None:
    tracks = tracks_of([BOX], (64, 64), discovered=(0,))
    picture = overlay(GREY, tracks, scale=8, masks=True)[0]
    near = np.zeros((512, 512), bool)
    near[220:360, 160:324] = True
    assert (picture[~near] == 128).all()
    assert (picture[near] != 128).any()


@pytest.mark.parametrize(
    "box", [(-9, -9, 5, 5), (60, 60, 80, 90), (-20, -20, -1, -1), (70, 10, 80, 20), (10, 70, 20, 80)]
)
def test_boxes_that_leave_the_picture_are_cut_off(box: tuple[float, float, float, float]) -> None:
    picture = overlay(GREY, tracks_of([(0, 1, box)], (64, 64), discovered=(0,)), scale=4)[0]
    x0, y0, x1, y1 = box
    in_view = x1 > 0 and y1 > 0 and x0 < 64 and y0 < 64
    assert is_color(picture, 1).any() == in_view
    assert (picture != 128).any() == in_view


def label_of(tracks: Tracks) -> tuple[np.ndarray, tuple[int, int, int, int]]:
    """Return the picture of one object at eight times its size, and x0, y0, x1, y1 of its label."""
    drawn, plain = (overlay(GREY, tracks, scale=8, labels=labels)[0] for labels in (True, False))
    y, x = np.nonzero((drawn != plain).any(axis=-1))
    return drawn, (int(x.min()), int(y.min()), int(x.max()) + 1, int(y.max()) + 1)


def test_the_label_sits_on_the_box_and_shows_the_id() -> None:
    picture, (x0, y0, x1, y1) = label_of(tracks_of([(0, 42, (20, 30, 40, 44))], (64, 64)))
    assert (x0, y1) == (160, 240)
    label = picture[y0:y1, x0:x1]
    assert is_color(label, 42).mean() > 0.4
    assert 0.1 < (label.max(axis=-1) < 150).mean() < 0.6
    other, place = label_of(tracks_of([(0, 24, (20, 30, 40, 44))], (64, 64)))
    assert place == (x0, y0, x1, y1)
    assert (other[y0:y1, x0:x1].max(axis=-1) != label.max(axis=-1)).any()


def test_an_object_smaller_than_its_label_has_none() -> None:
    small = tracks_of([(0, 3, (30.0, 30.0, 36.0, 34.0))], (64, 64))
    with_labels, without = (overlay(GREY, small, scale=1, labels=labels) for labels in (True, False))
    assert (with_labels == without).all()


def test_the_label_of_a_box_at_the_upper_right_corner_stays_in_view() -> None:
    _, (x0, y0, x1, y1) = label_of(tracks_of([(0, 42, (62, 0, 70, 9))], (64, 64)))
    assert (y0, x1) == (0, 512)
    assert x0 > 470
    assert y1 < 30


def test_only_discovered_objects_carry_the_white_mark() -> None:
    rows: list[Row] = [(0, 0, (4, 20, 20, 36)), (0, 1, (40, 20, 56, 36))]
    picture = overlay(GREY, tracks_of(rows, (64, 64), discovered=(1,)), scale=8)[0]
    y, x = np.nonzero((picture == 255).all(axis=-1))
    assert (x.mean(), y.mean()) == (48 * 8, 28 * 8)
    assert 30 < len(x) < 100


def test_trails_follow_the_centres_and_fade() -> None:
    rows: list[Row] = [(t, 2, (4.0 + 8 * t, 20, 12.0 + 8 * t, 28)) for t in range(5)]
    tracks = tracks_of(rows, (64, 64))
    frames = GREY.repeat(5, axis=0)
    picture = overlay(frames, tracks, scale=4, trails=3, labels=False)[4]
    color = colors_of(np.array(2)).astype(float)
    along = np.abs(picture[24 * 4, :, :] - color).sum(axis=-1)  # distance from full colour on the line of centres
    age0, age1, age2, older = along[35 * 4], along[28 * 4], along[20 * 4], along[12 * 4]
    assert age0 < age1 < age2 < older
    assert (picture[24 * 4, : 15 * 4] == 128).all()
    without = overlay(frames, tracks, scale=4, trails=0, labels=False)[4]
    assert (without[24 * 4, : 36 * 4] == 128).all()


def test_masks_tint_their_pixels_only() -> None:
    tracks = tracks_of([(0, 5, (20, 30, 40, 44))], (64, 64))
    picture = overlay(GREY, tracks, scale=1, labels=False, masks=True)[0]
    expected = (colors_of(np.array(5)).astype(float) + 127.5) / 2
    assert np.abs(picture[35, 30] - expected).max() <= 1
    assert (picture[50, 30] == 128).all()


def test_a_video_drawn_piece_by_piece_is_the_video_drawn_at_once() -> None:
    rows: list[Row] = [(t, i, (4.0 + t * i, 8 * i, 12.0 + t * i, 8 * i + 9)) for t in range(6) for i in range(4)]
    tracks = tracks_of(rows, (32, 48), discovered=(0, 1, 2, 3))
    frames = np.random.default_rng(0).random((6, 3, 32, 48), np.float32)
    pieces = [overlay(frames[:2], tracks), overlay(frames[2:], tracks, first=2)]
    assert np.array_equal(np.concatenate(pieces), overlay(frames, tracks))


def test_tensors_and_arrays_give_the_same_picture_and_stay_as_they_were() -> None:
    tracks = tracks_of([BOX], (64, 64))
    before = GREY.copy()
    tensor = torch.from_numpy(GREY.copy()).requires_grad_()
    assert np.array_equal(overlay(tensor, tracks, masks=True), overlay(GREY, tracks, masks=True))
    assert np.array_equal(GREY, before)


@pytest.mark.parametrize(("size", "longer"), [((64, 64), 512), ((96, 128), 512), ((576, 768), 768)])
def test_small_frames_are_enlarged_and_large_ones_kept(size: tuple[int, int], longer: int) -> None:
    assert max(overlay(np.zeros((1, 3, *size), np.float32), tracks_of([], size)).shape) == longer


def test_what_cannot_be_drawn_is_said_in_a_sentence() -> None:
    tracks = tracks_of([BOX, (0, 4, BOX[2])], (64, 64))
    with pytest.raises(InputError, match=r"frames hold values from 127\.5 to 127\.5: scale them to \[0, 1\]"):
        overlay(GREY * 255, tracks)
    with pytest.raises(InputError, match=r"frames hold values from nan"):
        overlay(GREY * np.float32("nan"), tracks)
    with pytest.raises(InputError, match=r"frames are 32 x 64 pixels and tracks\.size is 64 x 64: draw the tracks"):
        overlay(GREY[:, :, :32], tracks)
    with pytest.raises(InputError, match=r"tracks hold 2 clips: draw one at a time with tracks\.of_clip"):
        overlay(GREY, replace(tracks, clip=np.array([0, 1])))
    with pytest.raises(InputError, match=r"scale is 0: give a whole number from 1"):
        overlay(GREY, tracks, scale=0)
    with pytest.raises(InputError, match=r"trails is -1: give a number of frames from 0"):
        overlay(GREY, tracks, trails=-1)
    with pytest.raises(InputError, match=r"these tracks hold no masks: ask for masks when tracking"):
        overlay(GREY, replace(tracks, masks=None), masks=True)
    with pytest.raises(InputError, match=r"frames are uint8 of shape \[1, 3, 64, 64\]"):
        overlay((GREY * 255).astype(np.uint8), tracks)
