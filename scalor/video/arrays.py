"""Read arrays in .npy and .npz files, and arrays in memory, as a video.

Values are uint8, or floats in [0, 1]. Shapes are [T, H, W, 3] or [T, 3, H, W]. Arrays are read frame by frame: a .npy
through a memory map, a .npz while its archive is decompressed.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO
from zipfile import ZipExtFile, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike

from scalor.errors import InputError
from scalor.video.decoding import check_frame_size, decoding
from scalor.video.pixels import Picture
from scalor.video.sources import IndexedSource, no_frames

KIND = "a numpy array", "write it again with numpy.save"
ReadValues = Callable[[int], np.ndarray]
"""A function that returns the values of a frame, given its number."""


def open_array(path: Path, fps: float) -> IndexedSource:
    """Open a .npy or .npz file as a video; raise InputError for values or shapes that cannot be a video."""
    with decoding(str(path), *KIND):
        member = _member(path) if path.suffix.lower() == ".npz" else None
        with _values(path, member) as (shape, dtype, _):
            pass

    @contextmanager
    def opened() -> Iterator[ReadValues]:
        with ExitStack() as stack:
            with decoding(str(path), *KIND):
                _, _, values = stack.enter_context(_values(path, member))

            def guarded(index: int) -> np.ndarray:
                with decoding(f"frame {index} of {path}", *KIND):
                    return values(index)

            yield guarded

    return _source(str(path), shape, dtype, opened, fps)


def open_values(values: ArrayLike, fps: float) -> IndexedSource:
    """Open an array or a tensor in memory as a video; raise InputError as `open_array` does."""
    on_host = values.detach().cpu() if hasattr(values, "detach") else values  # a tensor, perhaps on a GPU
    try:
        array = np.asarray(on_host)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"the video is a {type(values).__name__}: give a path or an array.") from error
    return _source("the array", array.shape, array.dtype, lambda: nullcontext(array.__getitem__), fps)


def _source(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    opened: Callable[[], AbstractContextManager[ReadValues]],
    fps: float,
) -> IndexedSource:
    """Return the video of values that `opened` gives, whose name, shape and type are known."""
    if len(shape) != 4 or 3 not in (shape[-1], shape[1]) or not (dtype.kind == "f" or dtype == np.uint8):
        raise InputError(
            f"{name} holds {dtype} of shape {list(shape)}: give uint8, or floats in [0, 1], of "
            "shape [T, H, W, 3] or [T, 3, H, W]."
        )
    if not shape[0]:
        raise no_frames(name)
    colour_last = shape[-1] == 3
    size = (shape[1], shape[2]) if colour_last else (shape[2], shape[3])
    check_frame_size(size, name)

    @contextmanager
    def pictures() -> Iterator[Callable[[int], Picture]]:
        with opened() as values:

            def picture(index: int) -> Picture:
                frame = values(index)
                return _to_picture(frame if colour_last else frame.transpose(1, 2, 0), index, name)

            yield picture

    return IndexedSource(name, size, fps, shape[0], pictures)


def _to_picture(values: np.ndarray, index: int, name: str) -> Picture:
    """Convert a frame to uint8; raise InputError if it holds floats outside [0, 1]."""
    if values.dtype == np.uint8:
        return np.array(values)
    if not (values.min() >= 0 and values.max() <= 1):
        raise InputError(
            f"frame {index} of {name} holds values from {values.min():g} to {values.max():g}: scale them to [0, 1]."
        )
    return (values * 255 + 0.5).astype(np.uint8)


@contextmanager
def _values(path: Path, member: str | None) -> Iterator[tuple[tuple[int, ...], np.dtype, ReadValues]]:
    """Open the array and yield its shape, its type and a function that reads its frames."""
    if member is None:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise InputError(f"{path} is an archive of arrays: rename it to .npz.")
        yield array.shape, array.dtype, array.__getitem__
        return
    with ZipFile(path) as archive, archive.open(member) as file:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read_header(file)
        if by_columns or dtype.hasobject:
            # In Fortran order the values of a frame are spread over the whole array, so it is loaded at once.
            # Arrays of Python objects are refused by numpy.load.
            array = np.load(path, allow_pickle=False)[member.removesuffix(".npy")]
            yield shape, dtype, array.__getitem__
            return
        yield shape, dtype, _unpacking(file, shape[1:], dtype)


def _unpacking(file: IO[bytes] | ZipExtFile, shape: tuple[int, ...], dtype: np.dtype) -> ReadValues:
    """Return a function that reads single frames from an open archive member positioned at its first frame."""
    begin = file.tell()
    length = dtype.itemsize * int(np.prod(shape))

    def values(index: int) -> np.ndarray:
        file.seek(begin + index * length)
        return np.frombuffer(file.read(length), dtype).reshape(shape)

    return values


def _member(path: Path) -> str:
    """Return the name, inside the archive, of the array that holds the video: 'frames', or the only array."""
    with ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    if "frames" not in names and len(names) != 1:
        raise InputError(f"{path} holds the arrays {names}: name the one with the video 'frames'.")
    return f"{'frames' if 'frames' in names else names[0]}.npy"
