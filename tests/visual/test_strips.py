"""Strips and videos side by side: every pixel handed in is there, the red line where it belongs."""

from pathlib import Path

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.visual import save_png, side_by_side, strip
from scalor.visual.strips import RED


def noise(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 200, (count, height, width, 3), np.uint8)


def places_of(small: np.ndarray, large: np.ndarray) -> list[tuple[int, int]]:
    """Where the picture `small` lies in the picture `large`."""
    height, width = small.shape[:2]
    corners = np.argwhere((large == small[0, 0]).all(axis=-1))
    return [(y, x) for y, x in corners if np.array_equal(large[y : y + height, x : x + width], small)]


def is_red(picture: np.ndarray) -> np.ndarray:
    red: np.ndarray = (picture == RED).all(axis=-1)
    return red


def test_a_strip_holds_every_frame_in_order() -> None:
    rows = {"input": noise(3, 20, 30), "background": noise(3, 20, 30, seed=1)}
    picture = strip(rows, gap=4)
    (y, x), *_ = places_of(rows["input"][0], picture)
    for r, frames in enumerate(rows.values()):
        for t, frame in enumerate(frames):
            assert places_of(frame, picture) == [(y + 24 * r, x + 34 * t)]
    assert not is_red(picture).any()


def test_row_names_are_written_left_of_the_frames() -> None:
    picture = strip({"input": noise(1, 20, 30)})
    ((_, x),) = places_of(noise(1, 20, 30)[0], picture)
    assert picture[:, :x].min() < 100
    assert not np.array_equal(picture[:, :x], strip({"inqut": noise(1, 20, 30)})[:, :x])


def test_the_red_line_lies_between_the_observed_and_the_generated_frames() -> None:
    frames = noise(5, 20, 30)
    picture = strip({"a": frames, "b": noise(5, 20, 30, seed=1)}, separator_after=3, columns=list("01234"))
    columns = np.flatnonzero(is_red(picture).any(axis=0))
    ((_, before),) = places_of(frames[2], picture)
    ((y, after),) = places_of(frames[3], picture)
    assert before + 30 < columns.min()
    assert columns.max() < after
    assert is_red(picture)[y : y + 44, columns].all()


def test_smaller_rows_are_enlarged_to_the_largest() -> None:
    small = noise(2, 8, 10)
    picture = strip({"large": noise(2, 24, 30, seed=1), "small": small})
    assert len(places_of(small[1].repeat(3, axis=0).repeat(3, axis=1), picture)) == 1


def test_videos_side_by_side_hold_every_pixel_and_mark_what_is_generated() -> None:
    videos = {"truth": noise(4, 32, 40), "prediction": noise(4, 32, 40, seed=1)}
    pictures = side_by_side(videos, generated_from={"prediction": 2})
    assert len(pictures) == 4
    for t in range(4):
        ((_, truth),) = places_of(videos["truth"][t], pictures[t])
        ((y, x),) = places_of(videos["prediction"][t], pictures[t])
        assert truth < x
        red = is_red(pictures[t])
        if t < 2:
            assert not red.any()
        else:
            assert red[y - 1, x - 1 : x + 41].all()
            assert red[y : y + 32, x + 40].all()
            assert not red[:, : truth + 40].any()


def test_a_long_title_widens_its_column_instead_of_being_cut() -> None:
    title = "a title much wider than the picture"
    narrow, wide = (side_by_side({title: noise(1, 16, width)}).shape[2] for width in (8, 16))
    assert narrow == wide > 150


def test_what_does_not_fit_together_is_said_in_a_sentence() -> None:
    two = {"a": noise(5, 20, 30)}
    for nothing in ({}, {"a": noise(0, 4, 4)}):
        with pytest.raises(InputError, match="rows holds no frames: give at least one"):
            strip(nothing)
    with pytest.raises(InputError, match=r"rows\['b'\] has 4 frames of 20 x 30 pixels and rows\['a'\] has 5 of"):
        strip(two | {"b": noise(4, 20, 30)})
    with pytest.raises(InputError, match=r"videos\['b'\] has 5 frames of 15 x 30 .* differ by a whole factor"):
        side_by_side(two | {"b": noise(5, 15, 30)})
    for wrong in (0, 5, 6):
        with pytest.raises(InputError, match=f"separator_after is {wrong} and there are 5 frames: .* from 1 to 4"):
            strip(two, separator_after=wrong)
    with pytest.raises(InputError, match="gap is 0: give a number of pixels from 1"):
        side_by_side(two, gap=0)
    with pytest.raises(InputError, match="columns has 1 headings and there are 5 frames"):
        strip(two, columns=["0"])
    with pytest.raises(InputError, match="generated_from names 'b': use one of 'a'"):
        side_by_side(two, generated_from={"b": 1})


def test_a_png_holds_the_picture_exactly(tmp_path: Path) -> None:
    from PIL import Image

    picture = noise(1, 20, 30)[0]
    save_png(tmp_path / "a.png", picture)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "a.png")), picture)
    with pytest.raises(InputError, match=r"a\.jpg: give a file name that ends in \.png"):
        save_png(tmp_path / "a.jpg", picture)
    with pytest.raises(InputError, match=r"cannot write .* choose a folder that exists"):
        save_png(tmp_path / "missing" / "a.png", picture)
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]
