"""Write `masks.json`: the visible mask of every object in every frame, as a COCO data set, frame by frame."""

import json
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from scalor.outputs import rle
from scalor.outputs.frame import TrackedFrame


class CocoFile:
    """A COCO data set that is written frame by frame.

    Annotations are written directly to the file. The list of images is written to a second file, which is appended at
    the end and deleted.
    """

    def __init__(self, path: Path, facts: Mapping[str, object]) -> None:
        self.path = path
        self.images_path = path.with_name(f"{path.name}.images")
        self.facts = {name: str(value) for name, value in facts.items()}
        self.images = self.annotations = 0
        self._open = ExitStack()

    def __enter__(self) -> "CocoFile":
        self._file = self._open.enter_context(open(self.path, "w"))
        self._images = self._open.enter_context(open(self.images_path, "w+"))
        info = json.dumps({"description": "objects found and followed by SCALOR", **self.facts})
        categories = json.dumps([{"id": 1, "name": "object"}])
        self._file.write(f'{{"info": {info},\n"categories": {categories},\n"annotations": [')
        return self

    def add(self, frame: TrackedFrame) -> None:
        """Write the image and the annotations of a frame, whose tracks must hold masks."""
        height, width = frame.tracks.size
        image = {"id": frame.index, "file_name": f"frame_{frame.index:06d}", "width": width, "height": height}
        self._images.write(_item(self.images, image))
        self.images += 1
        tracks = frame.tracks
        assert tracks.masks is not None
        for row, mask in enumerate(tracks.masks):
            x0, y0, x1, y1 = (round(float(v), 3) for v in tracks.box[row])
            annotation = {
                "id": self.annotations + 1,
                "image_id": frame.index,
                "category_id": 1,
                "track_id": int(tracks.id[row]),
                "bbox": [x0, y0, round(x1 - x0, 3), round(y1 - y0, 3)],
                "area": int(mask.sum()),
                "iscrowd": 0,
                "score": round(float(tracks.presence[row]), 4),
                "segmentation": {"size": [height, width], "counts": rle.encode(mask)},
            }
            self._file.write(_item(self.annotations, annotation))
            self.annotations += 1

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        with self._open:
            if kind is None:
                self._file.write('\n],\n"images": [')
                self._images.seek(0)
                shutil.copyfileobj(self._images, self._file)
                self._file.write("\n]}\n")
        self.images_path.unlink()


def _item(place: int, item: dict[str, Any]) -> str:
    """Format item number `place` of a JSON list."""
    return f"{',' if place else ''}\n{json.dumps(item)}"
