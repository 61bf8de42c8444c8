"""A clip of one object: it stays in the middle, while the picture passes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.exports import ExportSource, write_clip
from scalor.exports.object_clip import cropped, enlarged, steady
from scalor.video import open_video
from tests.edits.drawn import COLORS


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_object_stays_in_the_middle(number: int, source: ExportSource, tmp_path: Path) -> None:
    assert write_clip(tmp_path / "clip.mp4", source, number) == 40
    frames = [frame.picture for frame in open_video(tmp_path / "clip.mp4")]
    assert [frame.shape for frame in frames] == [(264, 264, 3)] * 40  # 24 px, eleven times as large
    for t, frame in enumerate(frames):
        if number == 1 and 18 <= t <= 22:
            continue  # behind disc 2
        near = np.abs(frame.astype(int) - COLORS[number - 1]).max(axis=2) < 60
        y, x = np.argwhere(near).mean(axis=0)
        assert (x, y) == pytest.approx((131.5, 131.5), abs=25)


def test_a_square_that_leaves_the_picture_is_black_there() -> None:
    picture = np.arange(1, 31, dtype=np.uint8).reshape(5, 6)[..., None].repeat(3, axis=2)
    assert np.array_equal(cropped(picture, np.array([3.0, 2.0]), 4), picture[0:4, 1:5])
    corner = cropped(picture, np.array([0.0, 0.0]), 4)
    assert np.array_equal(corner[2:, 2:], picture[:2, :2])
    assert not corner[:2].any()
    assert not corner[:, :2].any()
    assert not cropped(picture, np.array([50.0, -50.0]), 4).any()
    assert enlarged(picture[:4, :4]).shape == (256, 256, 3)


def test_the_square_does_not_tremble_with_the_boxes() -> None:
    walk = np.stack([np.arange(60.0), 2 * np.arange(60.0)], axis=1)
    assert steady(walk, 6) == pytest.approx(walk)
    trembling = walk + np.random.default_rng(0).normal(0, 1, walk.shape)
    assert np.abs(steady(trembling, 16) - walk)[8:-8].std() < 0.25
    assert steady(trembling, 1) == pytest.approx(trembling)


def test_the_square_is_steadied_over_the_time_that_is_told(source: ExportSource, tmp_path: Path) -> None:
    """Boxes that tremble by 3 px do not move a disc of the clip, whose true path is straight, by more than one."""
    box = source.tracks.box + 3.0 * (-1) ** source.tracks.frame[:, None]
    write_clip(tmp_path / "clip.mp4", replace(source, tracks=replace(source.tracks, box=box)), 3)
    places = []
    for frame in open_video(tmp_path / "clip.mp4"):
        near = np.abs(frame.picture.astype(int) - COLORS[2]).max(axis=2) < 60
        places.append(np.argwhere(near).mean(axis=0) / 11)
    moved = np.abs(np.diff(places, axis=0))[4:-4]
    assert moved.max() < 2.5  # 6 if the square followed the boxes


def test_a_clip_of_no_track_or_of_another_video_is_refused(source: ExportSource, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no track 9"):
        write_clip(tmp_path / "clip.mp4", source, 9)
    for around in (0.5, float("nan")):
        with pytest.raises(InputError, match="around"):
            write_clip(tmp_path / "clip.mp4", source, 1, around)
    for shape, said in (((40, 20, 20, 3), "160 x 120"), ((30, 120, 160, 3), "lacks 10 frames")):
        np.save(tmp_path / "other.npy", np.zeros(shape, np.uint8))
        with pytest.raises(InputError, match=said):
            write_clip(tmp_path / "clip.mp4", replace(source, video=tmp_path / "other.npy"), 1)
    assert not (tmp_path / "clip.mp4").exists()
