"""Read images with pillow as a video: one file for each frame, or one file of several pages (TIFF stacks).

Images of more than 8 bits (16 bits, 32 bits, floating point) are scaled to 8 bits. The percentiles 0.1 and 99.9 of the
values in a sample of the frames become black and white in all frames. Colour images of 16 bits are an exception: they
keep their upper 8 bits, because that is how pillow reads them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np
from jaxtyping import Num
from PIL import Image, ImageOps

from scalor.errors import InputError
from scalor.video.pixels import Levels, Picture, measure_levels, over_black
from scalor.video.sources import IndexedSource, check_size

DESCRIPTION = 270
"""The TIFF tag in which ImageJ writes how many images there are."""
SAMPLED = 16
"""Number of frames from which the black and white levels of deep images (more than 8 bits) are measured."""
TROUBLES = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)
"""Exceptions that pillow raises, depending on the format, for a file that it cannot read."""

Load = Callable[[int], Image.Image]
Opening = Callable[[], AbstractContextManager[Load]]


def open_images(files: Sequence[Path], name: str, fps: float) -> IndexedSource:
    """Open a video whose frames are the files, in the given order."""

    def load(index: int) -> Image.Image:
        with _explained(str(files[index])), Image.open(files[index]) as image:
            pages = getattr(image, "n_frames", 1)
            if image.format == "TIFF" and pages > 1:
                raise InputError(f"{files[index]} has {pages} pages, not one: give it alone, as a video of its own.")
            return ImageOps.exif_transpose(image)

    return _stills(lambda: nullcontext(load), len(files), name, fps)


def open_pages(path: Path, fps: float) -> IndexedSource:
    """Open a video whose frames are the pages of one file; the first page's duration, if any, is used for all."""
    with _explained(str(path)), Image.open(path) as image:
        # A photograph may hold more pictures, but those are only previews.
        count = 1 if image.format in ("JPEG", "MPO") else getattr(image, "n_frames", 1)
        image.load()
        milliseconds = image.info.get("duration")
        described = re.search(r"^images=(\d+)", str(getattr(image, "tag_v2", {}).get(DESCRIPTION)), re.MULTILINE)
    if described and count < int(described[1]):
        raise InputError(
            f"{path} has one page and raw data of {described[1]} images behind it, as ImageJ saves stacks above 4 GB: "
            "save it as an image sequence, and give the folder."
        )

    @contextmanager
    def opened() -> Iterator[Load]:
        with _explained(str(path)):
            image = Image.open(path)

        def load(index: int) -> Image.Image:
            with _explained(f"page {index} of {path}"):
                image.seek(index)
                return ImageOps.exif_transpose(image)

        with image:
            yield load

    return _stills(opened, count, str(path), 1000 / milliseconds if milliseconds else fps)


def _stills(opened: Opening, count: int, name: str, fps: float) -> IndexedSource:
    """Return a video of `count` images; measure the levels first if the images are deep."""
    with opened() as load:
        head = load(0)
        deep, size = _is_deep(head), (head.height, head.width)
        sample = sorted({int(index) for index in np.linspace(0, count - 1, SAMPLED)})
        levels = measure_levels((_values(load(index)) for index in sample), name) if deep else None

    @contextmanager
    def pictures() -> Iterator[Callable[[int], Picture]]:
        with opened() as load:

            def picture(index: int) -> Picture:
                image = load(index)
                check_size((image.height, image.width), size, index, name)
                if _is_deep(image) != deep:
                    raise InputError(
                        f"frame {index} of {name} is of mode {image.mode} and frame 0 of mode {head.mode}: "
                        "bring all frames to one number of bits."
                    )
                return _to_picture(image, levels)

            yield picture

    return IndexedSource(name, size, fps, count, pictures)


def _is_deep(image: Image.Image) -> bool:
    """Return whether the image, as pillow reads it, has more than 8 bits."""
    return image.mode in ("I", "F") or image.mode.startswith("I;")


def _values(image: Image.Image) -> Num[np.ndarray, "H W"]:
    return np.asarray(image if _is_deep(image) else image.convert("L"))


def _to_picture(image: Image.Image, levels: Levels | None) -> Picture:
    if levels is not None:
        return levels.apply(np.asarray(image))
    if image.has_transparency_data:
        return over_black(np.asarray(image.convert("RGBA")))
    return np.array(image.convert("RGB"))


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Convert pillow's exceptions to an InputError that names the file or page."""
    try:
        yield
    except InputError:
        raise
    except TROUBLES as error:
        reason = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        raise InputError(f"{what} cannot be decoded as an image{reason}: remove it or export it again.") from error
