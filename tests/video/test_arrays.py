"""Arrays as videos: every layout and type, exactly, one frame at a time."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from scalor.errors import InputError
from scalor.video import Selection, iterate_frames, open_video

from .clips import movie


@pytest.mark.parametrize("colour_last", [True, False])
@pytest.mark.parametrize("floats", [True, False])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_are_read_exactly(tmp_path: Path, suffix: str, floats: bool, colour_last: bool) -> None:
    frames = movie(3)
    array = frames if colour_last else frames.transpose(0, 3, 1, 2)
    array = array.astype(np.float32) / 255 if floats else array
    path = tmp_path / f"a{suffix}"
    if suffix == ".npy":
        np.save(path, array)
    else:
        np.savez(path, frames=array, boxes=np.zeros(4))
    assert np.array_equal(np.stack(list(iterate_frames(path))), frames)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_archive_is_read_from_any_frame_on(
    tmp_path: Path, save: Callable[..., None], order: Literal["C", "F"]
) -> None:
    frames = movie(6)
    save(tmp_path / "a.npz", np.asarray(frames, order=order))
    video = open_video(tmp_path / "a.npz", Selection(start=0.2, stride=3))
    for _ in range(2):
        assert [frame.index for frame in video] == [2, 5]
        assert all(np.array_equal(frame.picture, frames[frame.index]) for frame in video)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_a_large_array_is_never_in_memory_as_a_whole(tmp_path: Path, name: str) -> None:
    frames = np.zeros((200, 64, 64, 3), np.uint8)
    (np.save if name == "a.npy" else np.savez)(tmp_path / name, frames)
    tracemalloc.start()
    try:
        assert sum(1 for _ in iterate_frames(tmp_path / name)) == 200
        assert tracemalloc.get_traced_memory()[1] < frames.nbytes / 4
    finally:
        tracemalloc.stop()


def test_an_array_cut_short_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", movie())
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-50])
    with pytest.raises(InputError, match=r"a\.npy cannot be decoded as a numpy array"):
        open_video(tmp_path / "a.npy")


@pytest.mark.parametrize("kind", ["uint8, colour last", "uint8, colour first", "floats", "tensor"])
def test_arrays_in_memory_are_videos(kind: str) -> None:
    frames = movie(5)
    first = frames.transpose(0, 3, 1, 2)
    given: dict[str, Any] = {
        "uint8, colour last": frames,
        "uint8, colour first": first,
        "floats": frames.astype(np.float32) / 255,
        "tensor": torch.from_numpy(first.astype(np.float32) / 255),
    }
    video = open_video(given[kind], fps=5)
    assert np.array_equal(np.stack([frame.picture for frame in video]), frames)
    assert [frame.seconds for frame in video] == [0, 0.2, 0.4, 0.6, 0.8]
    assert video.size == frames.shape[1:3]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros((2, 8, 8), np.uint8), "the array holds uint8 of shape"),
        (np.zeros((2, 8, 8, 3), np.int32), "the array holds int32"),
        (np.zeros((0, 8, 8, 3), np.uint8), "the array holds no frame"),
    ],
)
def test_arrays_in_memory_that_are_no_videos_are_refused(values: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        open_video(values)


def test_floats_in_memory_beyond_one_are_refused() -> None:
    with pytest.raises(InputError, match=r"frame 0 of the array holds values from 2 to 2: scale them to \[0, 1\]"):
        list(open_video(np.full((2, 8, 8, 3), 2.0)))


def test_an_archive_with_the_name_of_an_array_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", frames=np.zeros((2, 4, 6, 3), np.uint8))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    with pytest.raises(InputError, match=r"a.npy is an archive of arrays: rename it to .npz"):
        open_video(tmp_path / "a.npy")
