"""Images of every mode and depth as frames: folders of them, and stacks of pages."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalor.errors import InputError
from scalor.video import Selection, iterate_frames, open_video
from scalor.visual import save_png

GREY = np.arange(0, 240, 10, dtype=np.uint8).reshape(4, 6)


def save_stack(path: Path, pages: np.ndarray, compression: str | None = None) -> Path:
    images = [Image.fromarray(page) for page in pages]
    images[0].save(path, save_all=True, append_images=images[1:], compression=compression)
    return path


def pictures(path: Path) -> np.ndarray:
    return np.stack(list(iterate_frames(path)))


def test_a_folder_is_read_in_natural_order(tmp_path: Path) -> None:
    for t in (10, 2, 1):
        save_png(tmp_path / f"frame{t}.png", np.full((4, 6, 3), t, np.uint8))
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "._frame3.png").write_text("left behind by another system")
    assert [int(frame[0, 0, 0]) for frame in iterate_frames(tmp_path)] == [1, 2, 10]


@pytest.mark.parametrize(
    ("suffix", "mode"),
    [
        *[("png", mode) for mode in ("1", "L", "LA", "P", "RGB", "RGBA")],
        *[("jpg", mode) for mode in ("1", "L", "RGB", "CMYK", "YCbCr")],
        *[("tif", mode) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")],
    ],
)
def test_images_of_any_mode_are_read(tmp_path: Path, mode: str, suffix: str) -> None:
    image = Image.fromarray(np.where(GREY > 100, 255, 0).astype(np.uint8)).resize((60, 40), Image.Resampling.NEAREST)
    image.convert("RGB").convert(mode).save(tmp_path / f"a.{suffix}")
    picture = pictures(tmp_path)[0]
    assert picture.shape == (40, 60, 3)
    assert np.abs(picture.astype(int) - np.asarray(image)[..., None]).mean() < 8


def test_what_is_transparent_is_black(tmp_path: Path) -> None:
    colours = np.full((4, 6, 4), 200, np.uint8)
    colours[:2, :, 3], colours[2:, :, 3] = 0, 51
    Image.fromarray(colours).save(tmp_path / "0.png")
    Image.fromarray(np.full((4, 6), 7, np.uint8)).convert("P").save(tmp_path / "1.png", transparency=7)
    first, second = pictures(tmp_path)
    assert (first[:2] == 0).all()
    assert (first[2:] == 40).all()
    assert (second == 0).all()


def test_a_photograph_is_turned_as_its_file_says(tmp_path: Path) -> None:
    image = Image.fromarray(np.dstack([GREY] * 3))
    tags = image.getexif()
    tags[274] = 6  # a quarter turn clockwise
    for name in ("a.png", "a.tif"):
        image.save(tmp_path / name, exif=tags)
        assert np.array_equal(pictures(tmp_path / name)[0, ..., 0], np.rot90(GREY, -1))


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_deflate"])
def test_a_stack_of_8_bits_is_read_exactly(tmp_path: Path, compression: str | None) -> None:
    pages = np.random.default_rng(0).integers(0, 256, (7, 5, 9, 3)).astype(np.uint8)
    path = save_stack(tmp_path / "a.tif", pages, compression)
    assert np.array_equal(pictures(path), pages)
    video = open_video(path, Selection(start=0.2, stride=2), fps=10)
    assert [frame.index for frame in video] == [2, 4, 6]
    assert np.array_equal(video.sample(99), pages[2:])


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.float32])
def test_deep_stacks_are_brought_to_8_bits_by_the_range_of_all_frames(tmp_path: Path, kind: type[np.generic]) -> None:
    rising = np.linspace(500, 4500, 40 * 50 * 5).reshape(5, 40, 50)
    pages: np.ndarray = rising.astype(kind)
    pages[2, 0, 0] = 60_000  # a hot pixel does not darken all the rest
    back = pictures(save_stack(tmp_path / "a.tif", pages))[..., 0].astype(float)
    wanted = (rising - 500) / 4000 * 255
    assert back[2, 0, 0] == 255
    back[2, 0, 0] = wanted[2, 0, 0]
    assert np.abs(back - wanted).max() < 3
    assert back.min() == 0
    assert back.max() == 255


def test_a_folder_of_deep_images_shares_one_range(tmp_path: Path) -> None:
    for t in range(3):
        Image.fromarray(np.full((4, 6), 1000 * t, np.uint16)).save(tmp_path / f"{t}.{('png', 'tif', 'tiff')[t]}")
    assert pictures(tmp_path)[:, 0, 0, 0].tolist() == [0, 128, 255]


def test_what_is_not_a_number_is_black_and_a_flat_stack_too(tmp_path: Path) -> None:
    pages = np.random.default_rng(0).random((2, 40, 40)).astype(np.float32)
    pages[0, 3, 4], pages[0, 5, 6] = np.nan, np.inf
    back = pictures(save_stack(tmp_path / "a.tif", pages))
    assert (back[0, 3, 4] == 0).all()
    assert (back[0, 5, 6] == 255).all()
    assert (pictures(save_stack(tmp_path / "b.tif", np.full((2, 4, 4), 9, np.uint16))) == 0).all()
    with pytest.raises(InputError, match=r"c\.tif holds no finite values"):
        open_video(save_stack(tmp_path / "c.tif", np.full((2, 4, 4), np.nan, np.float32)))


def test_a_moving_webp_keeps_its_rate(tmp_path: Path) -> None:
    images = [Image.fromarray(np.full((20, 30, 3), 40 * t, np.uint8)) for t in range(5)]
    images[0].save(tmp_path / "a.webp", save_all=True, append_images=images[1:], duration=40, lossless=True)
    video = open_video(tmp_path / "a.webp")
    assert video.fps == 25
    assert [int(frame.picture[0, 0, 0]) for frame in video] == [0, 40, 80, 120, 160]


def test_images_that_make_no_video_are_refused(tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    Image.fromarray(GREY).save(mixed / "0.png")
    Image.fromarray(GREY.astype(np.uint16)).save(mixed / "1.png")
    with pytest.raises(InputError, match=r"frame 1 of .*mixed is of mode I;16 and frame 0 of mode L: bring all"):
        pictures(mixed)
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    for t in range(2):
        save_stack(stacks / f"{t}.tif", np.stack([GREY] * 3))
    with pytest.raises(InputError, match=r"0\.tif has 3 pages, not one: give it alone"):
        open_video(stacks)
    images = [Image.fromarray(GREY), Image.fromarray(GREY[:3])]
    images[0].save(tmp_path / "a.tif", save_all=True, append_images=images[1:])
    with pytest.raises(InputError, match=r"frame 1 of .*a\.tif is 6 x 3 pixels and frame 0 is 6 x 4"):
        pictures(tmp_path / "a.tif")
    Image.fromarray(GREY).save(tmp_path / "large.tif", description="ImageJ=1.54f\nimages=900\nslices=900")
    with pytest.raises(InputError, match=r"large\.tif has one page and raw data of 900 images behind it"):
        open_video(tmp_path / "large.tif")
    save_png(tmp_path / "b.png", np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8))
    (tmp_path / "b.png").write_bytes((tmp_path / "b.png").read_bytes()[:2000])
    with pytest.raises(InputError, match=r"b\.png cannot be decoded as an image"):
        open_video(tmp_path / "b.png")
