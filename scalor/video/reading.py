"""Videos in: any video file, a folder or pattern of images, a stack of pages, an array, as a stream of frames.

>>> video = open_video("ants.mp4", Selection(region=(0, 0, 640, 480), start=60, stride=2))
>>> for frame in video:
...     frame.picture, frame.index, frame.seconds

Memory does not grow with the length of the video. `iterate_frames` and `read_video` are for whole, simple ones.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from glob import glob
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from scalor.config import FPS
from scalor.errors import InputError, without_extra
from scalor.video.arrays import open_array
from scalor.video.selection import Selection
from scalor.video.sources import Frame, Picture, Source

IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".pgm", ".ppm", ".pnm")
KINDS = "a video file, a folder of images, a pattern such as 'frames/*.png', a TIFF stack or a .npy or .npz file"
WORTH_SEEKING = 4
"""A sample of fewer than one in so many frames jumps from one to the next."""


class Video:
    """A selection of a video, frame by frame, as often as it is iterated. Made by `open_video`."""

    def __init__(self, source: Source, selection: Selection) -> None:
        selection.check_region(source.size, source.name)
        self._source = source
        self.selection = selection
        if selection.start or selection.end is not None:
            self._check_time()

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def full_size(self) -> tuple[int, int]:
        """Height and width of the original, as it is shown."""
        return self._source.size

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
        return self._source.fps

    @property
    def frames(self) -> int | None:
        """About how many frames will come out, where the file tells; good enough for a progress bar."""
        count = self._source.count
        return None if count is None else max(1, len(self.selection.numbers(count, self.fps)))

    @property
    def promised(self) -> int | None:
        """How many frames the file says that it holds for this selection; None where it only lets one guess, as it does
        of a part of its time: frames need not be equally far apart."""
        whole = not self.selection.start and self.selection.end is None
        return self.frames if whole and getattr(self._source, "counted", True) else None

    def __iter__(self) -> Iterator[Frame]:
        for frame in self.whole_frames():
            yield replace(frame, picture=self._cropped(frame.picture))

    def whole_frames(self) -> Iterator[Frame]:
        """The same frames with their whole pictures, whatever the region."""
        return self._source.frames(self.selection)

    def sample(self, count: int, seed: int = 0) -> UInt8[np.ndarray, "count H W 3"]:
        """Frames spread evenly over the selected time, whatever the stride; all of them if there are fewer.

        Of an hour this takes seconds, where the file can be searched.
        """
        if count < 1:
            raise InputError(f"count is {count}: sample at least 1 frame.")
        every = replace(self.selection, stride=1)
        known = self._source.count
        numbers = range(0) if known is None else every.numbers(known, self.fps)
        if len(numbers) > WORTH_SEEKING * count:
            # One from the middle half of each of `count` equal stretches: no two are the same.
            places = (np.arange(count) + np.random.default_rng(seed).uniform(0.25, 0.75, count)) / count
            times = (numbers[0] + places * len(numbers)) / self.fps
            pictures = [self._cropped(picture) for picture in self._source.near(times.tolist(), every)]
            if len(pictures) == count:
                return np.stack(pictures)
        pictures_in_turn = (self._cropped(frame.picture) for frame in self._source.frames(every))
        return np.stack(_thinned(pictures_in_turn, count))

    def sample_runs(self, count: int, run: int) -> list[Picture]:
        """So many runs of frames that follow each other, spread over the selected time; the first frames where the
        video is short or its file cannot be searched."""
        every = replace(self.selection, stride=1)
        known = self._source.count
        numbers = range(0) if known is None else every.numbers(known, self.fps)
        if len(numbers) > WORTH_SEEKING * count * run:
            times = [numbers[int((place + 0.5) / count * (len(numbers) - run))] / self.fps for place in range(count)]
            pictures = [self._cropped(picture) for picture in self._source.near(times, every, run)]
            if len(pictures) == count * run:
                return pictures
        return [self._cropped(frame.picture) for frame in islice(self._source.frames(every), count * run)]

    def _cropped(self, picture: Picture) -> Picture:
        if self.selection.region is None:
            return picture
        x0, y0, x1, y1 = self.selection.region
        return picture[y0:y1, x0:x1].copy()

    def _check_time(self) -> None:
        start, end = self.selection.start or 0, self.selection.end
        if next(self._source.frames(self.selection), None) is not None:
            return
        if next(self._source.frames(Selection(start=start)), None) is not None:
            raise InputError(f"end is {end}: {self.name} has no frame from {start} s to then; choose a later end.")
        length = f" and lasts about {self._source.count / self.fps:.2f} s" if self._source.count else ""
        raise InputError(f"start is {start}: {self.name} has no frame from then on{length}; choose an earlier start.")


def open_video(source: str | Path, selection: Selection | None = None, fps: float = FPS) -> Video:
    """A video from any file that PyAV decodes, a folder or pattern of images, a TIFF stack, or a .npy or .npz file.

    `fps` is for images and arrays, which carry no time of their own. Raises InputError at once, or where the file
    turns out to be broken.
    """
    if not 0 < fps <= 1000:
        raise InputError(f"fps is {fps}: give frames per second above 0 and up to 1000.")
    return Video(_find(source, fps), selection or Selection())


def iterate_frames(path: str | Path) -> Iterator[Picture]:
    """The pictures of all frames one after the other."""
    video = open_video(path)
    return (frame.picture for frame in video)


def read_video(path: str | Path) -> Float[np.ndarray, "T 3 H W"]:
    """All frames at once, as float32 in [0, 1]."""
    frames = np.stack(list(iterate_frames(path)))
    return np.ascontiguousarray(frames.transpose(0, 3, 1, 2)) / np.float32(255)


def _find(source: str | Path, fps: float) -> Source:
    path = Path(source)
    try:
        if path.is_dir():
            return _open_images([file for file in path.iterdir() if _is_image(file)], str(path), fps)
        if path.exists():
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
            raise without_extra(f"reading {path.suffix}", "pillow") from error
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
        raise without_extra("reading images", "pillow") from error
    if not files:
        raise InputError(f"{name} holds no images: give a folder with files that end in {', '.join(IMAGES)}.")
    return open_images(sorted(files, key=_natural), name, fps)


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGES and not path.name.startswith(".")


def _natural(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Sort key under which frame2 comes before frame10."""
    parts = re.split(r"(\d+)", str(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], str(path)


def _thinned(pictures: Iterator[Picture], count: int) -> list[Picture]:
    """`count` of pictures whose number nobody knows, spread evenly, never holding more than twice as many."""
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
