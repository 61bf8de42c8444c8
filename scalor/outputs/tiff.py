"""`labels.tif`: a label map per frame, losslessly, as the pages of one file that grows page by page.

The file is a BigTIFF, whose offsets of 64 bits allow any length. A page is written once and never read again: after
its pixels comes its directory, and the directory before it learns where it lies.
"""

import struct
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np
from jaxtyping import Integer

SHORT, LONG, TEXT, LONG8 = 3, 4, 2, 16
FIRST_DIRECTORY = 8
"""Where in the file the offset of the first directory stands."""
DEFLATE = 8
BLACK_IS_ZERO = 1
LARGEST_SHORT = 2**16 - 1


class LabelTiff:
    """Pages of 16 bits; a page with an id beyond 65,535 has 32."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pages = 0

    def __enter__(self) -> "LabelTiff":
        self._file = open(self.path, "wb")
        self._file.write(struct.pack("<2sHHHQ", b"II", 43, 8, 0, 0))
        self._link = FIRST_DIRECTORY
        return self

    def add(self, labels: Integer[np.ndarray, "H W"], description: str) -> None:
        """One more page; `description` is a line of ASCII about it."""
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
        """Write at the end of the file, at an even offset as TIFF wants it; gives that offset."""
        end = self._file.seek(0, 2)
        self._file.write(b"\0" * (end % 2) + block)
        return end + end % 2

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._file.close()
