"""MNIST digits: finding, downloading and reading the IDX files, and drawing digits as moving objects.

A digit of size s is scaled so that the larger side of its tight box (intensity of at least 0.5 in the 28 by 28 picture)
is s pixels long; its alpha is the picture's intensity.
"""

import gzip
import hashlib
import io
import math
import os
import tempfile
import urllib.request
import zlib
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from scalor.data.hashing import SPLITS, fold, whole
from scalor.errors import InputError

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
# Checksums of the unpacked bytes: gzip files of the same content differ between mirrors.
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
PREFIX = {"train": "train", "test": "t10k"}
PICK = 0xD161
MOST_BYTES = 1 << 26
"""Largest number of bytes of a file, unpacked; the largest of MNIST has 47 million."""


@dataclass(frozen=True)
class Digits:
    """Handwritten digits, intensities in [0, 1], and their labels."""

    images: Float[Tensor, "M 28 28"]
    labels: Int[Tensor, "M"]

    def only(self, digits: tuple[int, ...]) -> "Digits":
        """Return the pictures of the given digits, or all pictures if `digits` is empty."""
        if not digits:
            return self
        kept = torch.isin(self.labels, torch.tensor(digits))
        if not kept.any():
            raise InputError(f"digits is {digits!r}: none of the {len(kept)} pictures shows one of them.")
        return Digits(self.images[kept], self.labels[kept])


def load_digits(split: str, digits: tuple[int, ...] = (), folder: str | Path | None = None) -> Digits:
    """Read the digits of a split.

    The files are read from `folder`, else from $SCALOR_MNIST, else from $SCALOR_DATA/mnist if that exists, else from
    scalor's cache folder, to which missing files are downloaded.
    """
    if split not in SPLITS:
        raise InputError(f"split is {split!r}: choose train or test.")
    given = folder or os.environ.get("SCALOR_MNIST")
    shared = Path(os.environ.get("SCALOR_DATA", "")) / "mnist"
    if given is not None:
        home, fetch = Path(given), False
    elif "SCALOR_DATA" in os.environ and shared.is_dir():
        home, fetch = shared, False
    else:
        home, fetch = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scalor/mnist", True
    contents = []
    for name in (f"{PREFIX[split]}-images-idx3-ubyte", f"{PREFIX[split]}-labels-idx1-ubyte"):
        if fetch and _find(home, name) is None:
            _download(home, name)
        contents.append(read_idx(home, name))
    images, labels = contents
    if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
        raise InputError(
            f"{home} holds {split} images of shape {images.shape} and labels of shape {labels.shape}: "
            "MNIST has 28 by 28 images and one label for each."
        )
    return Digits(torch.from_numpy(images).float() / 255, torch.from_numpy(labels).long()).only(digits)


def read_idx(folder: Path, name: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    """Read the array in an IDX file of bytes, plain or gzipped: a magic number, the sizes, then the values."""
    path = _find(folder, name)
    if path is None:
        raise InputError(f"{folder} has neither {name}.gz nor {name}: put the MNIST files there.")
    try:
        with open(path, "rb") as file:
            data = _unpacked(file) if path.suffix == ".gz" else file.read(MOST_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked ({error}): download it again.") from error
    # The magic number is two zeros, 8 for bytes, and the number of dimensions.
    dimensions = int(name.split("-idx")[1][0])
    magic = bytes((0, 0, 8, dimensions))
    if data[:4] != magic:
        raise InputError(f"{path} starts with {data[:4].hex()}, not with {magic.hex()}: it is not a {name} file.")
    start = 4 + 4 * dimensions
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, start, 4))
    if len(data) != start + math.prod(shape):
        raise InputError(
            f"{path} has {len(data)} bytes, but its header promises {start + math.prod(shape)}: download it again."
        )
    return np.frombuffer(bytearray(data), np.uint8, offset=start).reshape(shape)


def _unpacked(file: IO[bytes]) -> bytes:
    """Return what a gzipped file holds; raise OSError if that is more than any file of MNIST holds."""
    with gzip.GzipFile(fileobj=file) as unpacked:
        data = unpacked.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(f"it holds more than {MOST_BYTES:,} bytes")
    return data


def _find(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / f"{name}.gz", folder / name) if path.is_file()), None)


def _download(folder: Path, name: str) -> None:
    """Download a file, verify its checksum, then move it into place atomically."""
    address = f"{MIRROR}{name}.gz"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            packed = answer.read(MOST_BYTES)
        content = _unpacked(io.BytesIO(packed))
    except (EOFError, OSError, zlib.error, HTTPException) as error:
        raise InputError(
            f"{address} cannot be downloaded ({error}): put the MNIST files into a folder and set SCALOR_MNIST to it."
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise InputError(f"{address} has the checksum {found}, not {SHA256[name]}: download it from elsewhere.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(packed)
    os.replace(file.name, folder / f"{name}.gz")


class DigitSprites:
    """Appearance of digits, chosen by each object's key. N objects of B clips, in S by S windows of T frames.

    Construction resamples every digit once, to about two samples per pixel of the scene. Each sample is the mean over
    one pixel of the scene. Frames then interpolate the samples bilinearly at any subpixel offset.
    """

    reach = 0.62
    """Distance along an axis from the box's centre up to which a digit of size 1 is drawn, including faint edges."""

    def __init__(self, digits: Digits, size: float, device: torch.device) -> None:
        # A digit spans 20 pixels of its picture, so more than 40 samples would add no detail.
        self.span = round(min(2 * size, 40))
        self.side = self.span + 2 * math.ceil(self.span * (self.reach - 0.5) + 1)
        low, high = _tight(digits.images)
        width = (high - low).amax(-1)  # [M], larger side, pixels of the picture
        self.halves = ((high - low) / (2 * width[:, None])).to(device)
        offset = (torch.arange(self.side) - (self.side - 1) / 2) / self.span
        centre = (low + high)[..., None] / 2 + offset * width[:, None, None]  # [M, 2, side]
        footprint = (width / size).clamp(min=1)
        parts = (digits.images, centre, footprint)
        # In chunks, because the weights of 60,000 digits at once would take gigabytes.
        chunks = zip(*(torch.split(part, 4096) for part in parts), strict=True)
        self.templates = torch.cat([_shrink(*chunk) for chunk in chunks]).to(device)

    def half(self, keys: Int[Tensor, "N B"], size: Float[Tensor, "N B"]) -> Float[Tensor, "N B 2"]:
        """Return half the width and half the height of each digit's box, pixels."""
        return self.halves[self._pick(keys)] * size[..., None]

    def alpha(
        self,
        keys: Int[Tensor, "N B"],
        size: Float[Tensor, "N B"],
        x: Float[Tensor, "N B T S"],
        y: Float[Tensor, "N B T S"],
    ) -> Float[Tensor, "N B T S S"]:
        """Return the intensity at pixels whose centres lie x and y from the centre of the digit's box, rows first."""
        template = self.templates[self._pick(keys)].float() / 255  # [N, B, side * side]
        step = (self.span / size)[..., None, None]
        column, right = self._place(x * step)
        row, below = self._place(y * step)
        corner = row[..., :, None] * self.side + column[..., None, :]  # [N, B, T, S, S]
        right, below = right[..., None, :], below[..., :, None]

        def tap(shift: int) -> Tensor:
            return template.gather(2, (corner + shift).flatten(2)).view(corner.shape)

        upper = torch.lerp(tap(0), tap(1), right.expand_as(corner))
        lower = torch.lerp(tap(self.side), tap(self.side + 1), right.expand_as(corner))
        return torch.lerp(upper, lower, below.expand_as(corner))

    def _pick(self, keys: Int[Tensor, "N B"]) -> Int[Tensor, "N B"]:
        return whole(fold(keys, PICK), 0, len(self.templates))

    def _place(self, offset: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sample before each position along an axis, and the fraction of the way to the next sample."""
        place = (offset + (self.side - 1) / 2).clamp(0, self.side - 1.001)
        before = place.floor()
        return before.long(), place - before


def _tight(images: Float[Tensor, "M 28 28"]) -> tuple[Float[Tensor, "M 2"], Float[Tensor, "M 2"]]:
    """Return the lowest and highest x and y of pixels with intensity of at least 0.5; the whole picture if none has."""
    bright = images >= 0.5
    used = torch.stack((bright.any(1), bright.any(2)), 1).byte()  # [M, 2, 28]: columns, then rows
    return used.argmax(-1).float(), 28.0 - used.flip(-1).argmax(-1).float()


def _shrink(
    images: Float[Tensor, "M 28 28"], centre: Float[Tensor, "M 2 Q"], footprint: Float[Tensor, "M"]
) -> UInt8[Tensor, "M Q*Q"]:
    """Return means over squares of side `footprint` around the positions `centre` (x, y), as bytes, 0 at the edge."""
    edge = torch.arange(28.0)
    reach = footprint[:, None, None, None] / 2
    overlap = torch.minimum(edge + 1, centre[..., None] + reach) - torch.maximum(edge, centre[..., None] - reach)
    across, down = (overlap.clamp_(min=0) / (2 * reach)).unbind(1)  # each [M, Q, 28]
    small = down @ images @ across.transpose(1, 2)
    small[:, (0, -1), :] = 0  # so that samples beyond the edge read 0
    small[:, :, (0, -1)] = 0
    return (small * 255).round().byte().flatten(1)
