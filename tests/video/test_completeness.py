"""Files that are cut short are recognised by their own structure."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.torture.videos import FILMS, PROMISE_NOTHING, pictures, write_film
from scalor.video import open_video
from scalor.video.completeness import what_is_missing
from scalor.video.tiff import missing_pages

NAMES = [name for name in FILMS if not name.endswith(PROMISE_NOTHING)]
BEGINNING = 2_000
"""Bytes that are left, more than the headers: about half of the smallest film."""


def film(name: str, folder: Path) -> Path:
    path = folder / name
    if path.suffix == ".gif":
        images = [Image.fromarray(frame) for frame in pictures()]
        images[0].save(path, save_all=True, append_images=images[1:])
    else:
        write_film(path, *FILMS[name], pictures())
    return path


@pytest.mark.parametrize("name", [*NAMES, "a.gif"])
def test_a_film_is_complete_until_its_end_or_a_part_of_it_is_cut_off(name: str, tmp_path: Path) -> None:
    path = film(name, tmp_path)
    whole = path.read_bytes()
    assert what_is_missing(path) is None
    path.write_bytes(whole[:BEGINNING])
    assert what_is_missing(path) is not None
    if path.suffix not in (".mp4", ".mov"):  # these cannot be opened then
        path.write_bytes(whole[:BEGINNING] + whole[BEGINNING + 77 :])
        assert what_is_missing(path) is not None


@pytest.mark.parametrize("name", ["mpeg4.avi", "wmv2.wmv", "a.gif"])
def test_a_video_says_what_it_lacks(name: str, tmp_path: Path) -> None:
    path = film(name, tmp_path)
    path.write_bytes(path.read_bytes()[:-700])
    assert open_video(path).lacking is not None


def test_pictures_without_the_header_of_their_container_lack_their_beginning(tmp_path: Path) -> None:
    path = film("mjpeg.avi", tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[whole.index(b"\xff\xd8") :])
    assert "beginning" in (open_video(path).lacking or "")


@pytest.mark.parametrize(
    "head", [b"", b"RIFF", b"GIF89a", b"FLV\x01", b"\x1a\x45\xdf\xa3\x00", b"\x00\x00\x00\x01ftyp"]
)
def test_files_of_a_few_bytes_end_the_search(head: bytes, tmp_path: Path) -> None:
    for more in range(12):
        (tmp_path / "x").write_bytes(head + bytes(more))
        what_is_missing(tmp_path / "x")


def stack(count: int) -> bytes:
    random = np.random.default_rng(0)
    pages = [Image.fromarray(random.integers(0, 255, (48, 64, 3), np.uint8)) for _ in range(count)]
    file = BytesIO()
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:])
    return file.getvalue()


def test_pages_that_nothing_refers_to_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(stack(4))
    assert missing_pages(path) is None
    assert open_video(path).lacking is None
    whole = stack(4)
    path.write_bytes(whole[:20_000] + whole[26_000:])
    assert missing_pages(path) is not None
    path.write_bytes(stack(1) + stack(3))
    assert "belong to none of its 1 pages" in (open_video(path).lacking or "")


def starts(whole: bytes) -> list[int]:
    """Return where the frames of a gif begin."""
    return [at for at in range(len(whole)) if whole[at : at + 3] == b"\x21\xf9\x04"]


def data_of(whole: bytes, frame: int) -> int:
    """Return where the data of a frame begins, after its extension, place, colours and size of codes."""
    place = starts(whole)[frame] + 8
    flags = whole[place + 9]
    return place + 10 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0) + 1


def test_frames_of_a_gif_that_a_damaged_one_hides_are_told(tmp_path: Path) -> None:
    path = film("a.gif", tmp_path)
    whole = path.read_bytes()
    image, after = data_of(whole, 3), starts(whole)[6]
    parts = [whole[at : min(at + 200, after)] for at in range(image, after, 200)]
    path.write_bytes(whole[:image] + b"".join(bytes([len(part)]) + part for part in parts) + b"\0" + whole[after:])
    assert "hides frames" in (what_is_missing(path) or "")


def test_a_damaged_frame_of_a_gif_is_told_although_its_blocks_are_in_order(tmp_path: Path) -> None:
    path = film("a.gif", tmp_path)
    assert open_video(path).lacking is None
    whole = bytearray(path.read_bytes())
    image = data_of(bytes(whole), 3)
    count = whole[image]
    whole[image + 1 : image + 1 + count] = bytes(count)
    path.write_bytes(whole)
    assert what_is_missing(path) is None
    assert "is damaged" in (open_video(path).lacking or "")
