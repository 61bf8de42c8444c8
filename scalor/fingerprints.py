"""Fingerprints of what results depend on: the video, the weights and the code. Equal fingerprints, equal results."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from errno import ENOENT
from functools import cache
from glob import glob
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

BLOCK, BLOCKS = 2**16, 64
"""Bytes of a block, and number of blocks of a large file that are hashed."""


def of_video(video: str | Path | ArrayLike) -> str:
    """Return the fingerprint of a video: a file, a folder or pattern of images, or an array.

    Of a file of more than 4 MiB, its size and 64 blocks spread over it are hashed, which takes milliseconds even for a
    day of video. Neither its name nor its date matters. Raise OSError if nothing is there.
    """
    if not isinstance(video, str | Path):
        values = np.ascontiguousarray(video)
        return digest([str(values.dtype).encode(), str(values.shape).encode(), values.tobytes()])
    path = Path(video)
    if path.is_file():
        return digest(parts_of_file(path))
    files = sorted(path.iterdir()) if path.is_dir() else sorted(Path(name) for name in glob(str(video), recursive=True))
    if not files:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(video))
    return digest(part for file in files if file.is_file() for part in (file.name.encode(), *parts_of_file(file)))


def parts_of_file(path: Path) -> Iterable[bytes]:
    """Yield the size of a file and its content, or parts of its content if it is large."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        yield str(size).encode()
        if size <= BLOCK * BLOCKS:
            yield file.read()
            return
        for number in range(BLOCKS):
            file.seek((size - BLOCK) * number // (BLOCKS - 1))
            yield file.read(BLOCK)


def of_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the fingerprint of weights."""
    parts = ((name, tensors[name].detach().cpu().contiguous()) for name in sorted(tensors))
    return digest(part for name, tensor in parts for part in (name.encode(), tensor.numpy().tobytes()))


@cache
def of_code() -> str:
    """Return the fingerprint of this package's source files."""
    folder = Path(__file__).parent
    files = sorted(folder.rglob("*.py"))
    return digest(part for file in files for part in (str(file.relative_to(folder)).encode(), file.read_bytes()))


def digest(parts: Iterable[bytes]) -> str:
    """Return a hash of some bytes, each part with its length."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()[:32]
