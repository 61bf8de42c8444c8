"""Read TIFF files with tifffile: stacks with axes of time, channels or focus, ImageJ's large files, 16-bit colour.

Frames lie along the time axis. If a file has none, they lie along its only other axis. Two or three channels of a frame
become red, green and blue. Files that tifffile decodes only with a further package (LZW or JPEG compression), and those
with palettes or transparency, are left to pillow.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Num
from tifffile import COMPRESSION, PHOTOMETRIC, TiffFile, TiffPage, TiffPageSeries

from scalor.errors import InputError
from scalor.video.decoding import check_frame_size

Values = Num[np.ndarray, "H W"] | Num[np.ndarray, "H W 3"]
"""Grey or RGB values of any number of bits."""
COMPRESSIONS = (
    COMPRESSION.NONE,
    COMPRESSION.DEFLATE,
    COMPRESSION.ADOBE_DEFLATE,
    COMPRESSION.PACKBITS,
    COMPRESSION.LZMA,
)
"""Compressions that tifffile decodes without a further package."""
PREDICTORS = (1, 2)
"""TIFF codes of the predictors that tifffile decodes without a further package: none, and differences of neighbours."""
UPRIGHT = 1
"""TIFF code of the orientation of a picture that need not be turned."""
NUMBER_KINDS = (1, 2, 3)
"""TIFF codes of sample formats that are numbers: unsigned, signed, floating point."""


LARGEST_DESCRIPTION = 2048
"""Number of bytes that a page may take beside its picture."""


@dataclass(frozen=True)
class TiffStack:
    """The frames of an open TIFF file."""

    series: TiffPageSeries
    frame_axis: int | None
    """Place of the axis of the frames among all axes; None for a single frame."""
    channel_axis: int | None
    """Place of the axis of the channels among all axes; None without one."""
    whole: np.ndarray | None
    """All values as one array on disk, if they lie there one after the other; None if each page must be decoded."""

    @property
    def count(self) -> int:
        """Number of frames."""
        return 1 if self.frame_axis is None else int(self.series.shape[self.frame_axis])

    def load(self, index: int) -> Values:
        """Return the values of a frame."""
        if self.channel_axis is None:
            return self._page({self.frame_axis: index})
        channels = range(self.series.shape[self.channel_axis])
        pages = [self._page({self.frame_axis: index, self.channel_axis: channel}) for channel in channels]
        pages += [np.zeros_like(pages[0])] * (3 - len(pages))
        return np.stack(pages, axis=-1)

    def _page(self, place: dict[int | None, int]) -> Values:
        """Return the values at this place along the frame and channel axes, with colours last."""
        leading = len(self.series.shape) - len(self.series.keyframe.shape)
        where = tuple(place.get(axis, 0) for axis in range(leading))
        if self.whole is not None:
            values = np.asarray(self.whole[where])
        else:
            shape = self.series.shape[:leading]
            page = self.series.pages[int(np.ravel_multi_index(where, shape)) if shape else 0]
            if page is None:
                raise ValueError("a page is missing")
            values = page.asarray()
        return np.moveaxis(values, 0, -1) if self.series.keyframe.axes.startswith("S") else values


@contextmanager
def open_stack(path: Path) -> Iterator[TiffStack | None]:
    """Open a TIFF file inside the block; yield None if it must be read with pillow."""
    broken = _BrokenPages()
    log = logging.getLogger("tifffile")
    log.addHandler(broken)
    try:
        with TiffFile(path) as file:
            stack = _stack_of(file, str(path))
            if broken.found:
                raise InputError(f"{path} is cut short or damaged (a page is missing): copy or export it again.")
            yield stack
    finally:
        log.removeHandler(broken)


def missing_pages(path: Path) -> str | None:
    """Return in words what a TIFF file lacks: a page is damaged, or pictures belong to no page. None if nothing."""
    broken = _BrokenPages()
    log = logging.getLogger("tifffile")
    log.addHandler(broken)
    try:
        with TiffFile(path) as file:
            found = _missing_pages(file)
            return "a tag of it is damaged" if found is None and broken.tags else found
    except Exception:  # tifffile raises nearly anything on damaged bytes
        return "its list of pages is damaged"
    finally:
        log.removeHandler(broken)


def _missing_pages(file: TiffFile) -> str | None:
    if any(page.subifds for page in file.pages[:1]):  # smaller copies, which are not looked at
        return None
    used, size = 0, file.filehandle.size
    for number, page in enumerate(file.pages):
        ends = [start + count for start, count in zip(page.dataoffsets, page.databytecounts, strict=False)]
        if not ends or max(ends) > size:
            return f"its page {number} is damaged"
        used += sum(page.databytecounts)
    if file.series and file.series[0].dataoffset is not None:  # pages of ImageJ's large files are not listed
        used = max(used, file.series[0].nbytes)
    unused = size - used - LARGEST_DESCRIPTION * len(file.pages)
    if unused < used / len(file.pages):
        return None
    return f"{unused:,} bytes of it belong to none of its {len(file.pages)} pages"


class _BrokenPages(logging.Handler):
    """Note of messages about pages beyond the end of a file, and unreadable tags, which tifffile leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.found = self.tags = False

    def emit(self, record: logging.LogRecord) -> None:
        self.found = self.found or "invalid page offset" in record.getMessage()
        self.tags = self.tags or "TiffTag.fromfile" in record.getMessage()


def _stack_of(file: TiffFile, name: str) -> TiffStack | None:
    series = file.series[0]
    page = series.keyframe
    check_frame_size((page.imagelength, page.imagewidth), name)
    _check_promised(file, series, name)
    if not _is_readable(page) or (len(file.series) > 1 and len(series.pages) < len(file.pages)):
        return None
    frame_axis, channel_axis = _axes_of(series, name)
    whole = None
    if series.dataoffset is not None and len(series.shape) > len(page.shape):
        kind = np.dtype(file.byteorder + series.dtype.char)
        whole = file.filehandle.memmap_array(kind, series.shape, series.dataoffset)
    return TiffStack(series, frame_axis, channel_axis, whole)


def _check_promised(file: TiffFile, series: TiffPageSeries, name: str) -> None:
    """Raise InputError if ImageJ's description promises more images than the file holds."""
    described = (file.imagej_metadata or {}).get("images", 1)
    held = int(np.prod(series.shape[: len(series.shape) - len(series.keyframe.shape)]))
    if isinstance(described, int) and described > max(held, len(file.pages)):
        raise InputError(f"{name} promises {described} images and holds {held}: it is cut short; copy it again.")


def _is_readable(page: TiffPage) -> bool:
    """Return whether tifffile decodes a page, to grey or RGB values."""
    orientation = page.tags.get("Orientation")
    return (
        page.photometric in (PHOTOMETRIC.MINISBLACK, PHOTOMETRIC.RGB)
        and page.samplesperpixel in (1, 3)
        and page.bitspersample >= 8
        and page.sampleformat in NUMBER_KINDS
        and page.compression in COMPRESSIONS
        and page.predictor in PREDICTORS
        and (orientation is None or orientation.value == UPRIGHT)
    )


def _axes_of(series: TiffPageSeries, name: str) -> tuple[int | None, int | None]:
    """Return the places of the frame axis and of the channel axis; raise InputError if there are further axes."""
    leading = series.axes[: len(series.shape) - len(series.keyframe.shape)]
    if not leading:
        return None, None
    others = leading.replace("C", "")
    frames = "T" if "T" in leading else others[:1] or "C"
    rest = leading.replace(frames, "")
    if rest not in ("", "C"):
        words = {"Z": "planes of focus", "C": "channels"}
        more = " and ".join(f"{series.shape[leading.index(axis)]} {words.get(axis, 'images')}" for axis in rest)
        raise InputError(f"{name} has {more} for each time: save one of them, or a projection, as a stack of its own.")
    if rest == "C" and series.shape[leading.index("C")] > 3:
        raise InputError(
            f"{name} has {series.shape[leading.index('C')]} channels for each time: save up to three of them."
        )
    return leading.index(frames), leading.index("C") if rest == "C" else None
