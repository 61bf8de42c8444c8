"""Run lengths say what the mask says, in the letters that COCO's own tools write."""

import json
import signal
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image, ImageSequence
from PIL.TiffImagePlugin import TiffImageFile
from tifffile import TiffFile

from scalor.outputs import mask_files
from scalor.outputs.mask_files import CocoFile, LabelTiff
from scalor.outputs.tables import TrackedFrame
from tests.outputs.stories import SIZE, Shot, shots

masks = arrays(bool, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12))
circle = np.add.outer((np.arange(40) - 20) ** 2, (np.arange(60) - 30) ** 2) < 250
stripes = np.add.outer(np.arange(7), np.arange(300)) % 150 < 75


@given(masks)
def test_a_mask_comes_back_as_it_went(mask: np.ndarray) -> None:
    assert np.array_equal(mask_files.decode(mask_files.encode(mask), mask.shape), mask)


@given(masks)
def test_runs_are_those_counted_pixel_by_pixel(mask: np.ndarray) -> None:
    counted = [(value, len(list(run))) for value, run in groupby(mask.T.ravel().tolist())]
    zeros_first = [0] * counted[0][0] + [length for _, length in counted]
    assert mask_files.runs(mask).tolist() == zeros_first


@given(st.lists(st.integers(0, 2**40)))
def test_counts_of_any_size_come_back_from_their_text(counts: list[int]) -> None:
    assert mask_files.from_text(mask_files.to_text(counts)) == counts


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (np.zeros((3, 4), bool), "<"),
        (np.ones((3, 4), bool), "0<"),
        (np.eye(5, dtype=bool), "0150000000"),
        (circle, "Xc09l06L2M4M2N2O0O2N2O000O2O0000000000000001N10001N2N101N2N3L3N4JSa0"),
        (stripes, "0Y?1l@1O1O1O1OZ?0f@1O1O1O1OZ?0f@1O1O1O1OZ?0f@1O1O1O1O1"),
    ],
)
def test_the_text_is_that_of_pycocotools(mask: np.ndarray, text: str) -> None:
    assert mask_files.encode(mask) == text


def write(path: Path, video: list[Shot]) -> dict[str, Any]:
    with CocoFile(path, {"video": 'a "quoted" name.mp4', "frames": 3}) as file:
        for shot in video:
            file.add(TrackedFrame(*shot))
    assert sorted(path.parent.iterdir()) == [path]
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_every_mask_decodes_to_the_mask_given(tmp_path: Path) -> None:
    video = list(shots(25, masks=True, stride=4, first=12))
    document = write(tmp_path / "masks.json", video)
    annotations = iter(document["annotations"])
    for shot in video:
        assert shot.tracks.masks is not None
        for row, mask in enumerate(shot.tracks.masks):
            found = next(annotations)
            segmentation = found["segmentation"]
            assert isinstance(segmentation, dict)
            assert segmentation["size"] == list(SIZE)
            assert np.array_equal(mask_files.decode(segmentation["counts"], SIZE), mask)
            assert (found["image_id"], found["track_id"]) == (shot.index, shot.tracks.id[row])
            assert (found["area"], found["category_id"], found["iscrowd"]) == (mask.sum(), 1, 0)
            x0, y0, x1, y1 = shot.tracks.box[row]
            assert np.allclose(found["bbox"], [x0, y0, x1 - x0, y1 - y0], atol=1e-3)
    assert next(annotations, None) is None


def test_images_and_annotations_have_ids_of_their_own(tmp_path: Path) -> None:
    document = write(tmp_path / "masks.json", list(shots(25, masks=True, stride=4, first=12)))
    assert [image["id"] for image in document["images"]] == list(range(12, 112, 4))
    assert document["images"][0] == {"id": 12, "file_name": "frame_000012", "width": SIZE[1], "height": SIZE[0]}
    ids = [annotation["id"] for annotation in document["annotations"]]
    assert ids == list(range(1, len(ids) + 1))
    assert document["categories"] == [{"id": 1, "name": "object"}]
    assert document["info"] == {
        "description": "objects found and followed by SCALOR",
        "video": 'a "quoted" name.mp4',
        "frames": "3",
    }


def test_a_video_without_objects_is_valid_too(tmp_path: Path) -> None:
    document = write(tmp_path / "masks.json", list(shots(1, masks=True)))
    assert (len(document["images"]), document["annotations"]) == (1, [])


def read(path: Path) -> list[np.ndarray]:
    with Image.open(path) as file:
        return [np.array(page) for page in ImageSequence.Iterator(file)]


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
def test_tifffile_reads_one_stack_of_whole_numbers(kind: type[np.unsignedinteger[Any]], tmp_path: Path) -> None:
    pages = np.random.default_rng(0).integers(0, np.iinfo(kind).max // 2, (6, 48, 64)).astype(kind)
    with LabelTiff(tmp_path / "labels.tif") as file:
        for t, page in enumerate(pages):
            file.add(page, f"frame {t}")
    assert np.array_equal(tifffile.imread(tmp_path / "labels.tif"), pages)
    with tifffile.TiffFile(tmp_path / "labels.tif") as stack:
        assert [page.dtype for page in stack.pages] == [kind] * 6
        page = stack.pages[3]
        assert isinstance(page, tifffile.TiffPage)
        assert page.description == "frame 3"


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
        assert isinstance(image, TiffImageFile)
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
            ends.append(file._writer.filehandle.seek(0, 2))
    assert np.ptp(np.diff(ends)) <= 16  # pages begin at whole multiples of 16 bytes
    assert len(read(tmp_path / "labels.tif")) == 300


def test_pages_written_before_a_kill_can_be_read(tmp_path: Path) -> None:
    code = f"""
import os, signal
import numpy as np
from scalor.outputs.mask_files import LabelTiff
file = LabelTiff({str(tmp_path / "labels.tif")!r}).__enter__()
for t in range(50):
    file.add(np.random.default_rng(t).integers(0, 9, (90, 120)), f"frame {{t}}")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    with TiffFile(tmp_path / "labels.tif") as file:
        pages = [page.asarray() for page in list(file.pages)[:40]]
    assert all(np.array_equal(page, np.random.default_rng(t).integers(0, 9, (90, 120))) for t, page in enumerate(pages))
