"""Images of every mode and depth as frames: folders of them, and stacks of pages."""

import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tifffile import TiffFile, imwrite

from scalor.errors import InputError
from scalor.outputs.mask_files import LabelTiff
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
    with pytest.raises(InputError, match=r"frame 1 of .*mixed is uint16 and frame 0 is uint8: bring all"):
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
    with pytest.raises(InputError, match=r"large\.tif promises 900 images and holds 1: it is cut short"):
        open_video(tmp_path / "large.tif")
    save_png(tmp_path / "b.png", np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8))
    (tmp_path / "b.png").write_bytes((tmp_path / "b.png").read_bytes()[:2000])
    with pytest.raises(InputError, match=r"b\.png cannot be decoded as an image \(.*\): remove it"):
        open_video(tmp_path / "b.png")


def noise(*shape: int, kind: type = np.uint16) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1000 if kind is np.uint16 else 256, shape).astype(kind)


@pytest.mark.parametrize("axes", ["TYX", "ZYX", "CYX"])
def test_the_only_axis_of_a_stack_is_time_whatever_its_name(tmp_path: Path, axes: str) -> None:
    pages = noise(5, 20, 30, kind=np.uint8)
    imwrite(tmp_path / "a.tif", pages, imagej=True, metadata={"axes": axes})
    assert np.array_equal(pictures(tmp_path / "a.tif")[..., 0], pages)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_channels_become_colours_at_each_time(tmp_path: Path, compression: str | None) -> None:
    pages = noise(5, 2, 20, 30, kind=np.uint8)
    imwrite(tmp_path / "a.ome.tif", pages, metadata={"axes": "TCYX"}, compression=compression, photometric="minisblack")
    back = pictures(tmp_path / "a.ome.tif")
    assert np.array_equal(back[..., :2], np.moveaxis(pages, 1, -1))
    assert (back[..., 2] == 0).all()


@pytest.mark.parametrize(
    ("shape", "axes", "words"),
    [((3, 4, 20, 30), "TZYX", "4 planes of focus for each time"), ((3, 5, 20, 30), "TCYX", "5 channels for each time")],
)
def test_stacks_of_more_axes_are_refused(tmp_path: Path, shape: tuple[int, ...], axes: str, words: str) -> None:
    imwrite(tmp_path / "a.tif", noise(*shape), imagej=True, metadata={"axes": axes})
    with pytest.raises(InputError, match=rf"a\.tif has {words}: save"):
        open_video(tmp_path / "a.tif")


@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_colours_of_16_bits_are_scaled_together(tmp_path: Path, planar: str) -> None:
    pages = noise(4, 20, 30, 3)
    given = pages if planar == "contig" else np.moveaxis(pages, -1, 1)
    imwrite(tmp_path / "a.tif", given, photometric="rgb", planarconfig=planar)
    back = pictures(tmp_path / "a.tif")
    assert back.shape == (4, 20, 30, 3)
    assert np.abs(back - pages / 1000 * 255).max() < 3


def test_an_imagej_stack_of_one_directory_is_read_as_a_whole(tmp_path: Path) -> None:
    """ImageJ writes the directory of the first image alone into files above 4 GB."""
    pages = noise(6, 20, 30)
    imwrite(tmp_path / "a.tif", pages, imagej=True, metadata={"axes": "TYX"})
    with TiffFile(tmp_path / "a.tif") as file:
        place = file.pages.first.offset + 2 + 12 * len(file.pages.first.tags)
    content = bytearray((tmp_path / "a.tif").read_bytes())
    content[place : place + 4] = bytes(4)
    (tmp_path / "a.tif").write_bytes(content)
    back = pictures(tmp_path / "a.tif")
    assert len(back) == 6
    assert np.abs(back[..., 0] - pages / 1000 * 255).max() < 3


def test_masks_of_a_result_are_read_as_a_stack(tmp_path: Path) -> None:
    with LabelTiff(tmp_path / "labels.tif") as file:
        for t in range(4):
            file.add(np.full((20, 30), t), f"frame {t}")
    assert len(open_video(tmp_path / "labels.tif").sample(9)) == 4


@pytest.mark.parametrize("share", [0.9, 0.6, 0.25])
@pytest.mark.parametrize("kind", ["pillow", "imagej", "zlib"])
def test_a_stack_cut_short_is_refused(tmp_path: Path, kind: str, share: float) -> None:
    pages = noise(8, 60, 80, kind=np.uint8)
    if kind == "pillow":
        save_stack(tmp_path / "a.tif", pages)
    else:
        imwrite(tmp_path / "a.tif", pages, imagej=kind == "imagej", compression=None if kind == "imagej" else "zlib")
    content = (tmp_path / "a.tif").read_bytes()
    (tmp_path / "a.tif").write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"a\.tif"):
        pictures(tmp_path / "a.tif")


def test_a_name_does_not_decide_the_format(tmp_path: Path) -> None:
    Image.fromarray(np.dstack([GREY] * 3)).save(tmp_path / "a.eps")
    (tmp_path / "a.eps").rename(tmp_path / "a.png")
    with pytest.raises(InputError, match=r"a\.png cannot be decoded as an image"):
        open_video(tmp_path / "a.png")
    save_png(tmp_path / "b.png", np.dstack([GREY] * 3))
    (tmp_path / "b.png").rename(tmp_path / "b.tif")
    assert np.array_equal(pictures(tmp_path / "b.tif")[0, ..., 0], GREY)


def test_what_libraries_log_about_a_damaged_tag_is_told_and_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_stack(tmp_path / "a.tif", np.stack([GREY, GREY]), "tiff_lzw")
    assert open_video(path).lacking is None
    path.write_bytes(path.read_bytes().replace(b"\x03\x01\x03\x00", b"\x03\x01\x03\x7f"))
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest has its own; then Python prints to stderr
    assert open_video(path).lacking == "a tag of it is damaged"
    assert capsys.readouterr().err == ""
