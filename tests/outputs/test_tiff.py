"""Label pages are read back by others exactly as they were given."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from scalor.outputs.tiff import LabelTiff


def read(path: Path) -> list[np.ndarray]:
    with Image.open(path) as file:
        return [np.array(page) for page in ImageSequence.Iterator(file)]


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (48, 64)])
def test_pillow_reads_the_pages_that_were_written(size: tuple[int, int], tmp_path: Path) -> None:
    pages = np.random.default_rng(0).integers(0, 2**16, (5, *size))
    pages[2] = 0
    with LabelTiff(tmp_path / "labels.tif") as file:
        for t, page in enumerate(pages):
            file.add(page, f"frame {t}")
    assert file.pages == 5
    assert np.array_equal(read(tmp_path / "labels.tif"), pages)
    with Image.open(tmp_path / "labels.tif") as image:
        assert image.mode == "I;16"
        image.seek(3)
        assert image.tag_v2[270] == "frame 3"


def test_ids_beyond_sixteen_bits_are_kept_in_wider_pages(tmp_path: Path) -> None:
    pages = [np.array([[0, 65_535]]), np.array([[65_536, 2**31 - 1]]), np.array([[3, 0]])]
    with LabelTiff(tmp_path / "labels.tif") as file:
        for page in pages:
            file.add(page, "a page")
    assert np.array_equal(read(tmp_path / "labels.tif"), pages)


def test_a_page_costs_the_same_however_many_are_before_it(tmp_path: Path) -> None:
    page = np.arange(600).reshape(20, 30)
    with LabelTiff(tmp_path / "labels.tif") as file:
        ends = []
        for t in range(300):
            file.add(page, f"frame {t:04d}")
            ends.append(file._file.seek(0, 2))
    assert len(set(np.diff(ends).tolist())) == 1
    assert len(read(tmp_path / "labels.tif")) == 300
