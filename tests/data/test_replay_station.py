"""Grand Central itself: the places, the frames and the split of the paper."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from scalor.data.replay import PLACES, SHOWN, STRIDE
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.presets import get_preset

KEPT = 20
SCENE = replace(get_preset("grand-central-video").scene, frame=(24, 24), length=2)


@pytest.fixture
def station(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pictures that tell their number by red, their columns by green and their rows by blue."""
    folder = tmp_path / "grand_central" / "frames"
    folder.mkdir(parents=True)
    rows, columns = np.mgrid[: SHOWN[0], : SHOWN[1]]
    for number in range(STRIDE * KEPT):
        picture = np.stack([np.full(SHOWN, number), columns // 3, rows // 2], -1).astype(np.uint8)
        Image.fromarray(picture).save(folder / f"{number:04}.png", compress_level=1)
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))
    return tmp_path / "grand_central"


@pytest.mark.parametrize(("split", "moments"), [("train", range(18)), ("test", range(18, KEPT))])
def test_clips_are_squares_of_every_eighth_frame_of_their_part_of_the_time(
    station: Path, split: str, moments: range
) -> None:
    clip = Scenes(SCENE, 0, split).clips(0, 200)
    assert clip.frames.shape == (200, 2, 3, 24, 24)
    red, green, blue = (clip.frames * 255).mean((3, 4)).round().unbind(2)  # [B, T] each
    assert set((red / STRIDE).flatten().tolist()) == set(moments)
    assert torch.equal(red[:, 1], red[:, 0] + STRIDE)
    corners = {
        (round(float(x) * 3 - 120), round(float(y) * 2 - 120)) for x, y in zip(green[:, 0], blue[:, 0], strict=True)
    }
    assert len(corners) == len(PLACES)
    for corner, place in zip(sorted(corners), sorted(PLACES), strict=True):
        assert np.abs(np.subtract(corner, place)).max() <= 4
    assert clip.truth.id.shape == (200, 2, 0)


def test_squares_are_cut_out_once(station: Path) -> None:
    first = Scenes(SCENE, 0, "train").clips(5, 3).frames
    for picture in (station / "frames").iterdir():
        picture.unlink()
    again = Scenes(SCENE, 0, "train").clips(torch.tensor([5, 6, 7]), length=1).frames
    assert torch.equal(first[:, :1], again)
    with pytest.raises(InputError, match="holds no images"):
        Scenes(replace(SCENE, frame=(16, 16)), 0, "train")


def test_what_is_missing_or_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALOR_DATA", raising=False)
    with pytest.raises(InputError, match=r"SCALOR_DATA is not set: the station reads grandcentral\.avi"):
        Scenes(SCENE, 0)
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"neither grand_central/grandcentral\.avi nor a folder grand_central/frames"):
        Scenes(SCENE, 0)
    folder = tmp_path / "grand_central" / "frames"
    folder.mkdir(parents=True)
    Image.new("RGB", (64, 48)).save(folder / "0.png")
    with pytest.raises(InputError, match="is 64x48: give a video of 720x480 pixels"):
        Scenes(SCENE, 0)
    assert [path.name for path in folder.parent.iterdir()] == ["frames"]


def test_a_split_shorter_than_a_clip_is_refused(station: Path) -> None:
    with pytest.raises(InputError, match=r"scene\.length is 3: the test split has only 2 frames"):
        Scenes(replace(SCENE, length=3), 0, "test")
