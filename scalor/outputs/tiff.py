"""Write `labels.tif`: one lossless label map per frame, as the pages of one file, page by page.

The file is a BigTIFF, whose 64-bit offsets allow any length. A page is written once and never read again. Its pixels
are followed by its directory. The offset of the directory is then written into the previous directory.
"""

import struct
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np
from jaxtyping import Integer

SHORT, LONG, TEXT, LONG8 = 3, 4, 2, 16
"""TIFF codes of field types."""
FIRST_DIRECTORY = 8
"""Position in the file of the offset of the first directory."""
DEFLATE = 8
"""TIFF code of the compression."""
BLACK_IS_ZERO = 1
"""TIFF code of the photometric interpretation."""
LARGEST_SHORT = 2**16 - 1


class LabelTiff:
    """A file of label maps. Pages have 16 bits per pixel, or 32 if they hold an id above 65,535."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pages = 0

    def __enter__(self) -> "LabelTiff":
        self._file = open(self.path, "wb")
        self._file.write(struct.pack("<2sHHHQ", b"II", 43, 8, 0, 0))
        self._link = FIRST_DIRECTORY
        return self

    def add(self, labels: Integer[np.ndarray, "H W"], description: str) -> None:
        """Append a page; `description` is a line of ASCII about it."""
        height, width = labels.shape
        bits = 16 if labels.max(initial=0) <= LARGEST_SHORT else 32
        pixels = zlib.compress(labels.astype(f"<u{bits // 8}").tobytes())
        text = description.encode("ascii") + b"\0"
        at_pixels = self._append(pixels)
        at_text = self._append(text)
        entries = [
            (256, LONG, 1, width),
            (257, LONG, 1, height),
            (258, SHORT, 1, bits),
            (259, SHORT, 1, DEFLATE),
            (262, SHORT, 1, BLACK_IS_ZERO),
            (270, TEXT, len(text), at_text if len(text) > 8 else int.from_bytes(text, "little")),
            (273, LONG8, 1, at_pixels),
            (277, SHORT, 1, 1),
            (278, LONG, 1, height),
            (279, LONG8, 1, len(pixels)),
        ]
        directory = struct.pack("<Q", len(entries))
        directory += b"".join(struct.pack("<HHQQ", *entry) for entry in entries)
        at_directory = self._append(directory + struct.pack("<Q", 0))
        self._file.seek(self._link)
        self._file.write(struct.pack("<Q", at_directory))
        self._link = at_directory + len(directory)
        self.pages += 1

    def _append(self, block: bytes) -> int:
        """Write a block at the end of the file, at an even offset as TIFF requires; return the offset."""
        end = self._file.seek(0, 2)
        self._file.write(b"\0" * (end % 2) + block)
        return end + end % 2

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._file.close()
