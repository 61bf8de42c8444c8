"""Whatever goes wrong in a decoder becomes one sentence that names the file, and no frame takes unbounded memory."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tifffile import imwrite

from scalor.errors import InputError
from scalor.video import open_video, write_video
from scalor.video.decoding import MAX_FRAME_PIXELS, check_frame_size, decoding, reason_of

from .clips import movie, write_container

Make = Callable[[Path], object]


def save_png_file(path: Path) -> None:
    Image.fromarray(movie(1)[0]).save(path)


def save_gif(path: Path) -> None:
    write_video(path, movie(8), fps=10)


KINDS: dict[str, Make] = {
    "a.mp4": lambda path: write_container(path, movie(8)),
    "a.mkv": lambda path: write_container(path, movie(8)),
    "a.avi": lambda path: write_container(path, movie(8)),
    "a.gif": save_gif,
    "a.png": save_png_file,
    "a.jpg": save_png_file,
    "a.bmp": save_png_file,
    "a.webp": save_png_file,
    "a.ppm": save_png_file,
    "a.tif": lambda path: imwrite(path, movie(8)),
    "b.tif": lambda path: imwrite(path, movie(8), compression="zlib"),
    "a.npy": lambda path: np.save(path, movie(8)),
    "a.npz": lambda path: np.savez_compressed(path, movie(8)),
}


def read(path: Path) -> int:
    return sum(1 for _ in open_video(path))


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_read_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    path, random = tmp_path / name, np.random.default_rng(0)
    KINDS[name](path)
    whole = path.read_bytes()
    assert read(path)
    for number in range(24):
        content = bytearray(whole)
        if number % 3 == 0:
            content = content[: int(random.integers(1, len(content)))]
        else:
            places = random.integers(0, min(len(content), 2000) if number % 3 == 1 else len(content), 8)
            for place in places:
                content[place] ^= int(random.integers(1, 256))
        path.write_bytes(content)
        try:
            read(path)
        except InputError as error:
            assert name in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("pretended", ["c.mp4", "c.png", "c.tif", "c.npy", "c.npz"])
def test_a_file_under_the_name_of_another_kind_is_read_or_refused(name: str, pretended: str, tmp_path: Path) -> None:
    KINDS[name](tmp_path / name)
    (tmp_path / name).rename(tmp_path / pretended)
    try:
        assert read(tmp_path / pretended)
    except InputError as error:
        assert pretended in str(error)  # noqa: PT017


@pytest.mark.parametrize("error", [KeyError(13), MemoryError(), RuntimeError("a\nb"), ValueError(), OSError(5, "no")])
def test_any_error_of_a_decoder_is_an_input_error(error: Exception) -> None:
    with pytest.raises(
        InputError, match=r"^a\.tif (cannot be decoded as an image \(.+\): try|does not fit into memory)"
    ):
        fail(error)
    assert "\n" not in reason_of(error)


def fail(error: Exception) -> None:
    with decoding("a.tif", "an image", "try another"):
        raise error


def test_an_input_error_stays_what_it_is_and_a_stop_is_none() -> None:
    with pytest.raises(InputError, match="mine"):
        fail(InputError("mine"))
    with pytest.raises(KeyboardInterrupt), decoding("a", "b", "c"):
        raise KeyboardInterrupt


def test_frames_too_large_to_decode_are_refused_before_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO()
    Image.new("P", (16_000, 16_000)).save(content, "GIF")
    (tmp_path / "a.gif").write_bytes(content.getvalue())
    with pytest.raises(InputError, match=r"a\.gif has frames of 16000 x 16000 pixels, more than"):
        open_video(tmp_path / "a.gif")
    with pytest.raises(InputError, match=r"frames of 0 x 8 pixels: give frames of at least one pixel"):
        open_video(np.zeros((3, 8, 0, 3), np.uint8))
    check_frame_size((8192, MAX_FRAME_PIXELS // 8192), "a")
    monkeypatch.setattr("scalor.video.decoding.MAX_FRAME_PIXELS", 40 * 60 - 1)
    for name in ("a.png", "a.tif", "a.npz", "a.mp4"):
        save_sixty_by_forty(tmp_path / name)
        with pytest.raises(InputError, match="has frames of 60 x 40 pixels"):
            open_video(tmp_path / name)


def save_sixty_by_forty(path: Path) -> None:
    frames = np.zeros((2, 40, 60, 3), np.uint8)
    save: dict[str, Callable[[], Any]] = {
        ".png": lambda: Image.fromarray(frames[0]).save(path),
        ".tif": lambda: imwrite(path, frames),
        ".npz": lambda: np.savez(path, frames),
        ".mp4": lambda: write_video(path, frames, 10),
    }
    save[path.suffix]()


@pytest.mark.parametrize("mark", ["ffconcat version 1.0\nfile other.mp4\n", "#EXTM3U\nother.mp4\n"])
def test_a_list_of_files_is_no_video(mark: str, tmp_path: Path) -> None:
    write_container(tmp_path / "other.mp4", movie(4))
    (tmp_path / "a.mp4").write_text(mark)
    with pytest.raises(InputError, match=r"a\.mp4 is a list of files, not a video: give one of the files"):
        open_video(tmp_path / "a.mp4")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.mp4")
    with pytest.raises(InputError, match=r"a\.mp4 is not a file: give a video file"):
        open_video(tmp_path / "a.mp4")


@pytest.mark.parametrize("name", ["a.mp4", "a.png", "a.tif", "a.npy", "a.npz"])
def test_a_name_in_another_encoding_is_a_name(name: str, tmp_path: Path) -> None:
    KINDS[name](tmp_path / name)
    odd = tmp_path / os.fsdecode(b"f\xff\xe9." + name.split(".")[1].encode())
    (tmp_path / name).rename(odd)
    assert read(odd)


def test_a_file_without_a_count_promises_what_its_duration_says(tmp_path: Path) -> None:
    whole = write_container(tmp_path / "a.mkv", movie(60))
    promised = open_video(whole).promised
    assert promised is not None
    assert 50 <= promised <= 60
    content = whole.read_bytes()
    (tmp_path / "cut.mkv").write_bytes(content[: len(content) // 2])
    cut = open_video(tmp_path / "cut.mkv")
    assert cut.promised == promised
    assert sum(1 for _ in cut) < promised
