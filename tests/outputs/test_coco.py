"""masks.json is valid, and every mask in it is the mask that was given."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from scalor.outputs import rle
from scalor.outputs.coco import CocoFile
from scalor.outputs.frame import TrackedFrame
from tests.outputs.stories import SIZE, Shot, shots


def write(path: Path, video: list[Shot]) -> dict[str, list[dict[str, object]]]:
    with CocoFile(path, {"video": 'a "quoted" name.mp4', "frames": 3}) as file:
        for shot in video:
            file.add(TrackedFrame(*shot[:3], replace(shot.tracks, id=shot.tracks.id + 1)))
    assert sorted(path.parent.iterdir()) == [path]
    document: dict[str, list[dict[str, object]]] = json.loads(path.read_text())
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
            assert np.array_equal(rle.decode(segmentation["counts"], SIZE), mask)
            assert (found["image_id"], found["track_id"]) == (shot.index, shot.tracks.id[row] + 1)
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
