"""A whole video as scenes: its own frames, in their order, training before tests."""

from pathlib import Path

import numpy as np
import pytest
import torch

from scalor.config import SceneConfig
from scalor.data.scenes import Scenes
from scalor.errors import InputError


@pytest.fixture
def video(tmp_path: Path) -> str:
    """Fifty frames, each of one grey value."""
    path = tmp_path / "film.npy"
    np.save(path, np.broadcast_to(np.arange(50, dtype=np.uint8)[:, None, None, None], (50, 16, 24, 3)))
    return str(path)


def test_clips_are_frames_in_their_order_and_the_splits_share_none(video: str) -> None:
    config = SceneConfig(kind="video", frame=(8, 8), length=4, footage=video, objects=(0, 4))
    seen = {}
    for split in ("train", "test"):
        clip = Scenes(config, 0, split).clips(0, 64)
        grey = (clip.frames * 255).round().long()
        assert clip.frames.shape == (64, 4, 3, 8, 8)
        assert (grey == grey[:, :, :1, :1, :1]).all()
        first = grey[:, :, 0, 0, 0]
        assert (first[:, 1:] - first[:, :-1] == 1).all()
        assert clip.truth.id.shape == (64, 4, 0)
        seen[split] = set(first.flatten().tolist())
    assert max(seen["train"]) < 30 <= min(seen["test"])
    again = Scenes(config, 0, "train").clips(torch.tensor([7]), length=2)
    assert torch.equal(again.frames, Scenes(config, 0, "train").clips(7).frames[:, :2])


def test_a_stride_leaves_out_frames(video: str) -> None:
    config = SceneConfig(kind="video", frame=(8, 8), length=2, footage=video, stride=5, objects=(0, 4))
    first = (Scenes(config, 0).clips(3).frames * 255).round()[0, :, 0, 0, 0]
    assert float(first[1] - first[0]) == 5


@pytest.mark.parametrize(("changes", "name"), [({"footage": ""}, "footage"), ({"length": 31}, "length")])
def test_what_is_missing_is_said_in_a_sentence(video: str, changes: dict[str, object], name: str) -> None:
    given = {"kind": "video", "frame": (8, 8), "footage": video, "objects": (0, 4), **changes}
    with pytest.raises(InputError, match=f"scene.{name} is"):
        Scenes(SceneConfig(**given), 0)  # type: ignore[arg-type]
