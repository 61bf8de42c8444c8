"""Read images as a video: one file for each frame, or one file of several pages (TIFF stacks, moving webp).

Images of more than 8 bits (16 bits, 32 bits, floating point) are scaled to 8 bits. The percentiles 0.1 and 99.9 of the
values in a sample of the frames become black and white in all frames. Colour .png files of 16 bits are an exception:
they keep their upper 8 bits, because that is how pillow reads them.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from scalor.errors import InputError
from scalor.video.completeness import what_is_missing
from scalor.video.decoding import check_frame_size, decoding
from scalor.video.pixels import Picture, measure_levels, over_black
from scalor.video.sources import IndexedSource, check_size
from scalor.video.tiff import Values, missing_pages, open_stack

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "PPM")
"""Names in pillow of the formats that are read. Files of other formats are refused, whatever their names say."""
LEVEL_FRAMES = 16
"""Number of frames from which the black and white levels of deep images (more than 8 bits) are measured."""
KIND = "an image", "remove it or export it again"

Load = Callable[[int], Values]
"""A function that returns a frame, given its number: uint8 RGB, or grey or RGB values of more than 8 bits."""
Opening = Callable[[], AbstractContextManager[Load]]


def open_images(files: Sequence[Path], name: str, fps: float) -> IndexedSource:
    """Open a video whose frames are the files, in the given order."""

    def load(index: int) -> Values:
        with _opened(files[index]) as pages:
            if pages.count > 1 and pages.kind == "TIFF":
                raise InputError(f"{files[index]} has {pages.count} pages, not one: give it alone, as its own video.")
            return pages.load(0)

    return _stills(lambda: nullcontext(load), len(files), name, fps)


def open_pages(path: Path, fps: float) -> IndexedSource:
    """Open a video whose frames are the pages of one file; the first page's duration, if any, is used for all."""
    with _opened(path) as pages:
        count, milliseconds = pages.count, pages.milliseconds
    lacking = missing_pages(path) if is_tiff(path) else what_is_missing(path)

    @contextmanager
    def opened() -> Iterator[Load]:
        with _opened(path) as pages:
            yield pages.load

    return replace(_stills(opened, count, str(path), 1000 / milliseconds if milliseconds else fps), lacking=lacking)


def is_stack(path: Path) -> bool:
    """Return whether a file is a TIFF stack: a video of its own, and not one of the frames of a video."""
    try:
        with _opened(path) as pages:
            return pages.count > 1 and pages.kind == "TIFF"
    except (InputError, OSError):
        return False


@dataclass(frozen=True)
class Pages:
    """The pages of an open image file."""

    kind: str
    """Name of the format."""
    count: int
    load: Load
    milliseconds: float | None = None
    """Time for which the first page is shown; None if the file does not say."""


@contextmanager
def _opened(path: Path) -> Iterator[Pages]:
    """Open an image file inside the block: TIFF files with tifffile if it can decode them, others with pillow."""
    with ExitStack() as files:
        with decoding(str(path), *KIND):
            stack = files.enter_context(open_stack(path)) if is_tiff(path) else None
            image, count = None, 1
            if stack is None:
                image = files.enter_context(Image.open(path, formats=FORMATS))
                if image.format not in ("JPEG", "MPO"):  # photographs may hold previews
                    count = getattr(image, "n_frames", 1)
            if image is not None and count > 1:
                check_frame_size((image.height, image.width), str(path))
                with _libraries_quiet():
                    image.load()  # only then is the time known for which it is shown

        def load(index: int) -> Values:
            with decoding(f"page {index} of {path}" if count > 1 else str(path), *KIND), _libraries_quiet():
                assert image is not None
                image.seek(index)
                check_frame_size((image.height, image.width), str(path))
                return _values_of(ImageOps.exif_transpose(image))

        def load_from_stack(index: int) -> Values:
            assert stack is not None
            with decoding(f"page {index} of {path}" if stack.count > 1 else str(path), *KIND):
                return as_picture(stack.load(index))

        if stack is not None:
            yield Pages("TIFF", stack.count, load_from_stack)
        elif image is not None:
            yield Pages(image.format or "", count, load, image.info.get("duration"))


@contextmanager
def _libraries_quiet() -> Iterator[None]:
    """Send what libraries in C write to stderr to nowhere: libtiff prints lines of its own before pillow's error."""
    try:
        kept = os.dup(2)
    except OSError:  # closed, or no descriptor is left
        yield
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _stills(opened: Opening, count: int, name: str, fps: float) -> IndexedSource:
    """Return a video of `count` images; measure the levels first if the images are deep."""
    with opened() as load:
        head = load(0)
        deep, size = is_deep(head), (head.shape[0], head.shape[1])
        sample = sorted({int(index) for index in np.linspace(0, count - 1, LEVEL_FRAMES)})
        levels = measure_levels((load(index) for index in sample), name) if deep else None

    @contextmanager
    def pictures() -> Iterator[Callable[[int], Picture]]:
        with opened() as load:

            def picture(index: int) -> Picture:
                values = load(index)
                check_size((values.shape[0], values.shape[1]), size, index, name)
                if is_deep(values) != deep:
                    raise InputError(
                        f"frame {index} of {name} is {values.dtype} and frame 0 is {head.dtype}: "
                        "bring all frames to one number of bits."
                    )
                return values if levels is None else levels.apply(values)

            yield picture

    return IndexedSource(name, size, fps, count, pictures)


def is_deep(values: Values) -> bool:
    """Return whether values have another type than 8 bits."""
    return values.dtype != np.uint8


def as_picture(values: Values) -> Values:
    """Return grey values of 8 bits as a picture, and others unchanged."""
    return np.repeat(values[..., None], 3, axis=2) if values.ndim == 2 and not is_deep(values) else values


def _values_of(image: Image.Image) -> Values:
    """Return an image that pillow has read as a picture, or its values if they have more than 8 bits."""
    if image.mode in ("I", "F") or image.mode.startswith("I;"):
        return np.asarray(image)
    if image.has_transparency_data:
        return over_black(np.asarray(image.convert("RGBA")))
    return np.array(image.convert("RGB"))


def is_tiff(path: Path) -> bool:
    """Return whether the file begins as a TIFF or BigTIFF file does."""
    with path.open("rb") as file:
        return file.read(4) in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
