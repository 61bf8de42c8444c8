"""Whether a video file is complete, as far as its own structure tells, without decoding it.

Most formats store the length of the file or of its parts. Decoders play the rest of a truncated file without an error.
Formats of live streams, such as .ts, store no length.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

ASF_HEADER = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
ASF_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
"""Beginning of the part of a .wmv file that says how long it is."""
ASF_LARGEST_HEADER = 1 << 16
EBML, SEGMENT = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"
"""Beginnings of a Matroska or WebM file, and of the part that holds all frames."""
EXTENSION, IMAGE, TRAILER = 0x21, 0x2C, 0x3B
"""First bytes of the blocks of a gif."""
FRAME_INSIDE = re.compile(rb"\x21\xf9\x04.{4}\x00[\x21\x2c]", re.DOTALL)
"""Beginning of a frame of a gif. In the data of another frame, it shows that the end of that one was not recognised."""
LONGEST_WALK = 1_000_000
"""Largest number of parts of a file that are looked at."""


def what_is_missing(path: Path) -> str | None:
    """Return in words what a video file lacks, or None if nothing is known to be missing."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(16)
        file.seek(0)
        try:
            return _check_for(head)(file, size)
        except (EOFError, OSError, OverflowError):  # also a length that no file can have
            return "it ends in the middle of a part"


def broken_frame(path: Path) -> str | None:
    """Return in words which frame of a .gif is damaged, or None. ffmpeg skips such frames, pillow refuses them."""
    try:
        from PIL import Image
    except ImportError:
        return None
    number = 0
    try:
        with Image.open(path, formats=["GIF"]) as image:
            for number in range(getattr(image, "n_frames", 1)):
                image.seek(number)
                image.load()
    except Exception:  # pillow raises nearly anything on damaged bytes
        return f"its frame {number} is damaged"
    return None


def _check_for(head: bytes) -> Callable[[BinaryIO, int], str | None]:
    """Return the check for files with this beginning."""
    if head.startswith(b"RIFF"):
        return _check_riff
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"free", b"wide", b"skip"):
        return _check_boxes
    if head.startswith(EBML):
        return _check_matroska
    if head.startswith(ASF_HEADER):
        return _check_asf
    if head.startswith(b"FLV"):
        return _check_flv
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _check_gif
    return lambda file, size: None


def _read(file: BinaryIO, count: int) -> bytes:
    """Return the next bytes; raise EOFError if the file has fewer."""
    data = file.read(count)
    if len(data) < count:
        raise EOFError
    return data


def _shorter(promised: int, size: int) -> str | None:
    return f"its header promises {promised:,} bytes and it has {size:,}" if promised > size else None


def _check_riff(file: BinaryIO, size: int) -> str | None:
    """Check .avi and moving .webp files; long .avi files are several such parts."""
    place = 0
    for _ in range(LONGEST_WALK):
        file.seek(place)
        head = file.read(8)
        if len(head) < 8 or not head.startswith(b"RIFF"):
            return None
        length = int.from_bytes(head[4:], "little")
        if place + length > size:
            return _shorter(place + 8 + length, size)
        place += 8 + length + length % 2
    return None


def _check_boxes(file: BinaryIO, size: int) -> str | None:
    """Check .mp4 and .mov files: boxes with their lengths, one after the other."""
    place = 0
    for _ in range(LONGEST_WALK):
        if size - place < 8:
            return None
        file.seek(place)
        length, kind = int.from_bytes(_read(file, 4), "big"), _read(file, 4)
        if length == 1:
            length = int.from_bytes(_read(file, 8), "big")
        elif length == 0:  # up to the end of the file
            return None
        if length < 8 or not kind.isascii():  # not a box: bytes after the end
            return None
        if place + length > size:
            return _shorter(place + length, size)
        place += length
    return None


def _number(file: BinaryIO) -> int | None:
    """Return a Matroska number of variable length; None if it stands for an unknown length."""
    first = _read(file, 1)[0]
    more = 8 - first.bit_length()
    if more > 7:
        raise EOFError
    value = int.from_bytes(bytes([first & ((1 << (7 - more)) - 1)]) + _read(file, more), "big")
    return None if value == (1 << (7 * (more + 1))) - 1 else value


def _check_matroska(file: BinaryIO, size: int) -> str | None:
    file.seek(len(EBML))
    file.seek(_number(file) or 0, os.SEEK_CUR)
    if _read(file, len(SEGMENT)) != SEGMENT:
        return None
    length = _number(file)
    return None if length is None else _shorter(file.tell() + length, size)


def _check_asf(file: BinaryIO, size: int) -> str | None:
    """Check .wmv files. Live ones say that the length they give means nothing; the end of others is exact."""
    head = file.read(ASF_LARGEST_HEADER)
    at = head.find(ASF_PROPERTIES)
    if at < 0:
        return None
    promised, flags = (
        int.from_bytes(head[at + 40 : at + 48], "little"),
        int.from_bytes(head[at + 88 : at + 92], "little"),
    )
    return None if promised == size or flags & 1 else f"its header promises {promised:,} bytes and it has {size:,}"


def _check_flv(file: BinaryIO, size: int) -> str | None:
    """Check .flv files: tags, each followed by its length."""
    file.seek(5)
    place = int.from_bytes(_read(file, 4), "big")
    for _ in range(LONGEST_WALK):
        if place + 4 >= size:
            return None
        file.seek(place + 4)
        head = _read(file, 11)
        if head[0] & 0x1F not in (8, 9, 18):
            return "a part of it is damaged"
        length = 11 + int.from_bytes(head[1:4], "big")
        file.seek(place + 4 + length)
        if int.from_bytes(_read(file, 4), "big") not in (length, 0):
            return "a part of it is damaged"
        place += 4 + length
    return None


def _check_gif(file: BinaryIO, size: int) -> str | None:
    """Check .gif files: blocks up to a last one that says that it is the last."""
    file.seek(10)
    flags = _read(file, 3)[0]
    file.seek(3 << ((flags & 7) + 1) if flags & 0x80 else 0, os.SEEK_CUR)
    for _ in range(LONGEST_WALK):
        match _read(file, 1)[0]:
            case value if value == TRAILER:
                return None
            case value if value == EXTENSION:
                file.seek(1, os.SEEK_CUR)
            case value if value == IMAGE:
                flags = _read(file, 9)[8]
                file.seek((3 << ((flags & 7) + 1) if flags & 0x80 else 0) + 1, os.SEEK_CUR)
            case _:
                return "a part of it is damaged"
        begin = file.tell()
        while length := _read(file, 1)[0]:
            file.seek(length, os.SEEK_CUR)
        length = file.tell() - begin
        file.seek(begin)
        if FRAME_INSIDE.search(_read(file, length)):
            return "a damaged part hides frames"
    return None
