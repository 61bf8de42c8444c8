"""The frames that a model learns from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scalor.config import Config
from scalor.data.footage import Frames
from scalor.fitting import keeping
from scalor.fitting.choosing import ScratchOptions, choose
from scalor.fitting.keeping import keep
from scalor.still.background import Background
from scalor.tracking.view import VideoView, look_at
from scalor.video import Video, open_video
from tests.still.films import walking_boxes


def prepared(
    path: Path, choice: ScratchOptions, size: tuple[int, int] = (16, 8), frames: int = 60
) -> tuple[VideoView, Config]:
    view = look_at(open_video(walking_boxes(path / "film.npy", size, frames=frames)), choice.object_size)
    assert view.found is not None
    return view, choose(view.found, choice, view.video.size, frames, "footage.npz")


def test_all_frames_are_kept_with_the_spots_where_objects_are(tmp_path: Path) -> None:
    kept = keep(*prepared(tmp_path, ScratchOptions((16, 8), 0.5, 1)))
    assert kept.frames.shape == (60, 3, 48, 64)
    assert kept.starts.tolist() == [0]
    assert 100 < len(kept.spots) < 200
    assert set(kept.spots[:, 1] // 14) == {0, 1, 2}  # the three rows that objects walk in


def test_no_more_is_kept_of_a_long_video_whether_or_not_its_length_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, config = prepared(tmp_path, ScratchOptions((16, 8), 0.5, 1), frames=200)
    monkeypatch.setattr(keeping, "MAX_BYTES", 0)

    def kept() -> Frames:
        return keep(view, config)

    known = kept()
    monkeypatch.setattr(Video, "frames", None)
    assert len(kept().frames) == len(known.frames) == 80
    assert kept().starts.tolist() == known.starts.tolist() == [0, 40]


def test_spots_in_a_perspective_are_large_for_where_they_are(tmp_path: Path) -> None:
    view, config = prepared(tmp_path, ScratchOptions((20, 10), 1.0), (10, 10))
    assert view.found is not None
    rows = {row // 28 for row in keep(view, config).spots[:, 1]}
    assert rows == {0, 1, 2}
    near = replace(view, found=replace(view.found, perspective=(0.1, 3.0)))
    assert {row // 28 for row in keep(near, config).spots[:, 1]} == {0, 1}


def test_faint_objects_are_made_stronger(tmp_path: Path) -> None:
    pictures = np.load(walking_boxes(tmp_path / "film.npy", (10, 10)))
    scene = Background.of(open_video(tmp_path / "film.npy")).still
    faint = scene + 0.1 * (pictures.astype(float) - scene)
    np.save(tmp_path / "faint.npy", faint.round().astype(np.uint8))
    view = look_at(open_video(tmp_path / "faint.npy"))
    assert view.found is not None
    config = choose(view.found, ScratchOptions(scale=1.0), view.video.size, 60, "footage.npz")
    assert 4 < config.scene.contrast <= 10
    kept = keep(view, config)
    apart = np.abs(kept.frames.astype(int) - kept.stills).max(1)
    assert np.percentile(apart, 99.5) > 60
