"""Write masks: `masks.json`, a COCO data set, and `labels.tif`, one lossless label map per frame.

Both are written frame by frame. In COCO's compressed text format a mask is represented by the lengths of its runs down
the columns, zeros first. The lengths (counts) are written as a string of 6-bit characters. From the fourth on, a count
is written as its difference from the count two before, because runs of neighbouring columns are similar. A character
holds five bits of a number, the lowest first. Its bit 5 says that more characters follow. Bit 4 of the last character
is the sign.

The label file is a BigTIFF, whose 64-bit offsets allow any length.
"""

import json
import os
import shutil
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Integer

from scalor.errors import without_extra
from scalor.files import open_at, saved_position
from scalor.outputs.tables import TrackedFrame, extent

FIRST_CHARACTER = 48
FIVE_BITS, SIGN, MORE = 0x1F, 0x10, 0x20


def encode(mask: Bool[np.ndarray, "H W"]) -> str:
    """Encode a mask as the `counts` of a COCO segmentation."""
    return to_text(runs(mask).tolist())


def decode(text: str, size: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """Decode text that `encode` returned to a mask of height and width `size`."""
    counts = from_text(text)
    values = np.arange(len(counts)) % 2 == 1
    height, width = size
    mask: np.ndarray = values.repeat(counts).reshape(width, height).T
    return mask


def runs(mask: Bool[np.ndarray, "H W"]) -> Int[np.ndarray, " R"]:
    """Return the lengths of runs down the columns, alternately of zeros and ones, zeros first (possibly none)."""
    rows, columns = extent(mask)
    down = mask[rows, columns].T  # [columns, rows]
    edges = np.diff(np.pad(down, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    offset = mask.shape[0] * np.arange(columns.start, columns.stop)[:, None] + np.arange(edges.shape[1]) + rows.start
    starts, ends = offset[edges == 1], offset[edges == -1]
    # Join a run that reaches the bottom of a column with the run at the top of the next column.
    apart = np.flatnonzero(starts[1:] != ends[:-1])
    starts, ends = np.append(starts[:1], starts[apart + 1]), np.append(ends[apart], ends[-1:])
    borders = np.stack([starts, ends], axis=1).ravel()
    counts = np.diff(np.concatenate([[0], borders, [mask.size]]))
    return counts if counts[-1] else counts[:-1]


def to_text(counts: Sequence[int]) -> str:
    """Encode counts as COCO's text."""
    characters = []
    for place, count in enumerate(counts):
        rest = count - counts[place - 2] if place > 2 else count
        while True:
            bits = rest & FIVE_BITS
            rest >>= 5
            more = rest != (-1 if bits & SIGN else 0)
            characters.append(FIRST_CHARACTER + bits + MORE * more)
            if not more:
                break
    return bytes(characters).decode("ascii")


def from_text(text: str) -> list[int]:
    """Decode counts from COCO's text."""
    counts: list[int] = []
    value = shift = 0
    for character in text.encode("ascii"):
        bits = character - FIRST_CHARACTER
        value |= (bits & FIVE_BITS) << shift
        shift += 5
        if not bits & MORE:
            if bits & SIGN:
                value -= 1 << shift
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value = shift = 0
    return counts


class CocoFile:
    """A COCO data set that is written frame by frame.

    Annotations are written directly to the file. The list of images is written to a second file, which is appended at
    the end and deleted.
    """

    def __init__(self, path: Path, facts: Mapping[str, object], saved: dict[str, Any] | None = None) -> None:
        self.path, self.saved = path, saved or {}
        self.images_path = path.with_name(f"{path.name}.images")
        self.facts = {name: str(value) for name, value in facts.items()}
        self.images, self.annotations = self.saved.get("images", 0), self.saved.get("annotations", 0)
        self._open = ExitStack()

    def __enter__(self) -> "CocoFile":
        places = self.saved.get("places", (None, None))
        self._file, self._images = (
            self._open.enter_context(open_at(path, place))
            for path, place in zip((self.path, self.images_path), places, strict=True)
        )
        if self.saved:
            return self
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
                "score": round(float(tracks.confidence[row]), 4),
                "segmentation": {"size": [height, width], "counts": encode(mask)},
            }
            self._file.write(_item(self.annotations, annotation))
            self.annotations += 1

    def save(self) -> dict[str, Any]:
        """Write everything to the disk; return what the constructor needs to resume here."""
        places = saved_position(self._file), saved_position(self._images)
        return {"images": self.images, "annotations": self.annotations, "places": places}

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        with self._open:
            if kind is None:
                self._file.write('\n],\n"images": [')
                self._images.seek(0)
                shutil.copyfileobj(self._images, self._file)
                self._file.write("\n]}\n")
        if kind is None:
            self.images_path.unlink()


def cut_pages(path: Path, pages: int, length: int) -> None:
    """Cut a BigTIFF of the native byte order back to its first pages, which end at this length in bytes."""
    os.truncate(path, length)
    with open(path, "r+b") as file:
        place = 8  # of the offset of the first page; at the end of each page lies that of the next
        for _ in range(pages):
            file.seek(place)
            (page,) = struct.unpack("=Q", file.read(8))
            file.seek(page)
            (tags,) = struct.unpack("=Q", file.read(8))
            place = page + 8 + 20 * tags
        file.seek(place)
        file.write(bytes(8))


def _item(place: int, item: dict[str, Any]) -> str:
    """Format item number `place` of a JSON list."""
    return f"{',' if place else ''}\n{json.dumps(item)}"


LARGEST_SHORT = 2**16 - 1


class LabelTiff:
    """A file of label maps. Pages have 16 bits per pixel, or 32 if they hold an id above 65,535."""

    def __init__(self, path: Path, saved: Sequence[int] | None = None) -> None:
        self.path, self.saved = path, saved
        self.pages = 0

    def __enter__(self) -> "LabelTiff":
        try:
            from tifffile import TiffWriter
        except ImportError as error:
            raise without_extra("writing .tif", "tifffile") from error
        if self.saved is not None:
            self.pages, length = self.saved
            cut_pages(self.path, self.pages, length)
        self._writer = TiffWriter(self.path, bigtiff=True, append=self.saved is not None)
        return self

    def save(self) -> list[int]:
        """Write all pages to the disk; return what the constructor needs to resume here."""
        with open(self.path, "rb") as file:
            self._writer.filehandle.flush()
            return [self.pages, saved_position(file)]

    def add(self, labels: Integer[np.ndarray, "H W"], description: str) -> None:
        """Append a page; `description` is a line of ASCII about it."""
        kind = np.uint16 if labels.max(initial=0) <= LARGEST_SHORT else np.uint32
        self._writer.write(
            labels.astype(kind),
            photometric="minisblack",
            compression="zlib",
            description=description,
            contiguous=False,
            metadata=None,
            software=False,
        )
        self.pages += 1

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._writer.close()
