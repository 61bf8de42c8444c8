"""Open a video as a stream of frames: any video file, a folder or pattern of images, a stack of pages, an array.

>>> video = open_video("ants.mp4", Selection(region=(0, 0, 640, 480), start=60, stride=2))
>>> for frame in video:
...     frame.picture, frame.index, frame.seconds

Streams use memory that does not grow with the length of the video. For a whole video without a selection there are two
shortcuts: `iterate_frames` streams its pictures, and `read_video` loads all of them.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import ArrayLike

from scalor.config import FPS
from scalor.errors import InputError, without_extra
from scalor.video.arrays import open_array, open_values
from scalor.video.pixels import Picture
from scalor.video.sources import Frame, Selection, Source

IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".pgm", ".ppm", ".pnm")
KINDS = "a video file, a folder of images, a pattern such as 'frames/*.png', a TIFF stack or a .npy or .npz file"
SURE_SHARE = 0.9
"""Share of the number of frames estimated from a file's duration that is promised. Frames may be unevenly spaced."""
MIN_SEEK_RATIO = 4
"""A sample is read by seeking if it takes fewer than one in this many frames; otherwise all frames are decoded."""


class Video:
    """The selected frames of a video, as an iterable that can be iterated any number of times; see `open_video`."""

    def __init__(self, source: Source, selection: Selection) -> None:
        selection.check_region(source.size, source.name)
        self.source = source
        self.selection = selection
        if selection.start or selection.end is not None:
            self._check_time()

    @property
    def name(self) -> str:
        """Name of the file, folder or array."""
        return self.source.name

    @property
    def full_size(self) -> tuple[int, int]:
        """Height and width of the original, as it is shown."""
        return self.source.size

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the frames that come out."""
        if self.selection.region is None:
            return self.full_size
        x0, y0, x1, y1 = self.selection.region
        return y1 - y0, x1 - x0

    @property
    def fps(self) -> float:
        """Frames per second of the original, on average."""
        return self.source.fps

    @property
    def frames(self) -> int | None:
        """Approximate number of selected frames, good enough for a progress bar; None if the file does not state it."""
        count = self.source.count
        return None if count is None else max(1, len(self.selection.numbers(count, self.fps)))

    @property
    def promised(self) -> int | None:
        """Smallest number of selected frames that the file promises.

        It is the file's own frame count or, in files without one, a share of the number that follows from the duration.
        It is None for a part of the video's time, because frames need not be equally far apart.
        """
        if hasattr(self.source, "promised"):
            found: int | None = self.source.promised
            return found
        whole = not self.selection.start and self.selection.end is None
        if self.frames is None or not whole:
            return None
        return self.frames if getattr(self.source, "counted", True) else int(SURE_SHARE * self.frames)

    @property
    def lacking(self) -> str | None:
        """What the file lacks, in words, if its structure shows that it is cut short or damaged."""
        return self.source.lacking

    def __iter__(self) -> Iterator[Frame]:
        for frame in self.whole_frames():
            yield replace(frame, picture=self._cropped(frame.picture))

    def selected(self, **changes: Any) -> "Video":
        """Return the same video with other values of its selection, such as `start`, `end` or `stride`.

        >>> later = video.selected(start=60)
        """
        return Video(self.source, replace(self.selection, **changes))

    def whole_frames(self) -> Iterator[Frame]:
        """Iterate over the selected frames with their whole pictures, ignoring the region."""
        return self.source.frames(self.selection)

    def sample(self, count: int, seed: int = 0) -> UInt8[np.ndarray, "count H W 3"]:
        """Return frames spread evenly over the selected time, ignoring the stride.

        For an hour of video this takes seconds, if the file can be searched.

        Parameters
        ----------
        count : int
            Number of frames. If the selected time holds fewer, all of them are returned.
        seed : int
            Seed of the random position of each frame in its part of the video. It has no effect if `count` is so large
            that all frames are decoded.
        """
        if count < 1:
            raise InputError(f"count is {count}: sample at least 1 frame.")
        every = replace(self.selection, stride=1)
        known = self.source.count
        numbers = range(0) if known is None else every.numbers(known, self.fps)
        if len(numbers) > MIN_SEEK_RATIO * count:
            # One frame from the middle half of each of `count` equal intervals, so no frame is taken twice.
            places = (np.arange(count) + np.random.default_rng(seed).uniform(0.25, 0.75, count)) / count
            times = (numbers[0] + places * len(numbers)) / self.fps
            pictures = [self._cropped(picture) for picture in self.source.near(times.tolist(), every)]
            if len(pictures) == count:
                return np.stack(pictures)
        pictures_in_turn = (self._cropped(frame.picture) for frame in self.source.frames(every))
        return np.stack(_thinned(pictures_in_turn, count))

    def sample_runs(self, count: int, run: int) -> list[Picture]:
        """Return `count` runs of `run` consecutive frames each, spread over the selected time, in one list.

        The stride is ignored. If the video is short or its file cannot be searched, return the first `count * run`
        frames.
        """
        every = replace(self.selection, stride=1)
        known = self.source.count
        numbers = range(0) if known is None else every.numbers(known, self.fps)
        if len(numbers) > MIN_SEEK_RATIO * count * run:
            times = [numbers[int((place + 0.5) / count * (len(numbers) - run))] / self.fps for place in range(count)]
            pictures = [self._cropped(picture) for picture in self.source.near(times, every, run)]
            if len(pictures) == count * run:
                return pictures
        return [self._cropped(frame.picture) for frame in islice(self.source.frames(every), count * run)]

    def _cropped(self, picture: Picture) -> UInt8[np.ndarray, "h w 3"]:
        if self.selection.region is None:
            return picture
        x0, y0, x1, y1 = self.selection.region
        return picture[y0:y1, x0:x1].copy()

    def _check_time(self) -> None:
        """Raise InputError if the selected time holds no frame."""
        start, end = self.selection.start or 0, self.selection.end
        if next(self.source.frames(self.selection), None) is not None:
            return
        if next(self.source.frames(Selection(start=start)), None) is not None:
            raise InputError(f"end is {end}: {self.name} has no frame from {start} s to then; choose a later end.")
        length = f" and lasts about {self.source.count / self.fps:.2f} s" if self.source.count else ""
        raise InputError(f"start is {start}: {self.name} has no frame from then on{length}; choose an earlier start.")


def open_video(source: str | Path | ArrayLike, selection: Selection | None = None, fps: float = FPS) -> Video:
    """Open a video for reading frame by frame.

    Parameters
    ----------
    source : str, Path or array
        Any video file that PyAV decodes, a folder of images, a pattern such as 'frames/*.png', a TIFF stack, a .npy or
        .npz file, or an array or CPU tensor: uint8, or floats in [0, 1], of shape [T, H, W, 3] or [T, 3, H, W].
    selection : Selection, optional
        The region, time span and stride to read. By default, everything.
    fps : float
        Frames per second of images and arrays, which hold no times. It is also used for a video file that does not
        state its frame rate.

    Returns
    -------
    Video
        An iterable of frames.

    Raises
    ------
    InputError
        At once if the source or the selection is invalid; during iteration if the file turns out to be broken.

    Examples
    --------
    >>> video = open_video("ants.mp4", Selection(start=60, stride=2))
    >>> for frame in video:
    ...     frame.picture, frame.index, frame.seconds
    """
    if not 0 < fps <= 1000:
        raise InputError(f"fps is {fps}: give frames per second above 0 and up to 1000.")
    found = _find(source, fps) if isinstance(source, str | Path) else open_values(source, fps)
    return Video(found, selection or Selection())


def iterate_frames(path: str | Path) -> Iterator[Picture]:
    """Return an iterator over the pictures of all frames, as uint8 [H, W, 3]."""
    video = open_video(path)
    return (frame.picture for frame in video)


def read_video(path: str | Path) -> Float[np.ndarray, "T 3 H W"]:
    """Load all frames into memory, as float32 in [0, 1]."""
    frames = np.stack(list(iterate_frames(path)))
    return np.ascontiguousarray(frames.transpose(0, 3, 1, 2)) / np.float32(255)


def _find(source: str | Path, fps: float) -> Source:
    """Return the source for a file, a folder or a pattern."""
    path = Path(source)
    try:
        if path.is_dir():
            return _open_images([file for file in path.iterdir() if _is_image(file)], str(path), fps)
        if path.exists():
            if not path.is_file():
                raise InputError(f"{path} is not a file: give {KINDS}.")
            path.open("rb").close()
            return _open_file(path, fps)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give {KINDS} that you may read.") from error
    if not set("*?[") & set(str(source)):
        raise InputError(f"{path} does not exist: give {KINDS}.")
    matched = [Path(file) for file in glob(str(source), recursive=True) if Path(file).is_file()]
    if not matched:
        raise InputError(f"{source} matches no file: give a pattern that does, such as 'frames/*.png'.")
    if len(matched) == 1:
        return _find(matched[0], fps)
    return _open_images(matched, str(source), fps)


def _open_file(path: Path, fps: float) -> Source:
    if path.suffix.lower() in (".npy", ".npz"):
        return open_array(path, fps)
    if _is_image(path):
        try:
            from scalor.video.images import open_pages
        except ImportError as error:
            raise without_extra(f"reading {path.suffix}", _package(error)) from error
        return open_pages(path, fps)
    try:
        from scalor.video.containers import Container
    except ImportError as error:
        raise without_extra(f"reading {path.suffix or path.name}", "av") from error
    return Container(path, fps)


def _open_images(files: list[Path], name: str, fps: float) -> Source:
    try:
        from scalor.video.images import open_images
    except ImportError as error:
        raise without_extra("reading images", _package(error)) from error
    if not files:
        raise InputError(f"{name} holds no images: give a folder with files that end in {', '.join(IMAGES)}.")
    return open_images(sorted(files, key=_natural), name, fps)


def _package(error: ImportError) -> str:
    """Return the name of the package that is missing for images."""
    return "tifffile" if error.name == "tifffile" else "pillow"


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGES and not path.name.startswith(".")


def _natural(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key that puts frame2 before frame10."""
    parts = re.split(r"(\d+)", str(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], str(path)


def _thinned(pictures: Iterator[Picture], count: int) -> list[Picture]:
    """Return `count` pictures spread evenly over an iterator of unknown length, or all pictures if there are fewer.

    At most `2 * count` pictures are held in memory.
    """
    kept: list[Picture] = []
    step = 1
    for number, picture in enumerate(pictures):
        if number % step == 0:
            kept.append(picture)
        if len(kept) == 2 * count:
            kept, step = kept[::2], 2 * step
    if len(kept) <= count:
        return kept
    return [kept[(2 * number + 1) * len(kept) // (2 * count)] for number in range(count)]
