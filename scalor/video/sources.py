"""Sources of frames, and `Selection`: a region of the picture, a time span and every n-th frame."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol

from scalor.errors import InputError
from scalor.video.pixels import Picture

TIME_TOLERANCE_S = 1e-6
"""Tolerance for comparing times, in seconds. It makes 0.3 s mean frame 3 at ten frames per second."""


@dataclass(frozen=True)
class Selection:
    """A part of a video. By default, all of it."""

    region: tuple[int, int, int, int] | None = None
    """(x0, y0, x1, y1) in pixels of the picture as it is shown; x1 and y1 are exclusive."""
    start: float | None = None
    """Start time in seconds from the first frame. Earlier frames are left out."""
    end: float | None = None
    """End time in seconds from the first frame. Frames at this time or later are left out."""
    stride: int = 1
    """Step between selected frames within the time span. 1 selects every frame."""

    def __post_init__(self) -> None:
        if self.region is not None:
            if len(self.region) != 4 or not all(_is_whole(side) for side in self.region):
                raise InputError(f"region is {self.region}: give four whole numbers of pixels, x0, y0, x1, y1.")
            x0, y0, x1, y1 = self.region
            if not (0 <= x0 < x1 and 0 <= y0 < y1):
                raise InputError(f"region is {self.region}: x0 must be from 0 to below x1, and y0 from 0 to below y1.")
        for name, seconds in (("start", self.start), ("end", self.end)):
            if seconds is not None and not (_is_number(seconds) and 0 <= seconds < math.inf):
                raise InputError(f"{name} is {seconds!r}: give seconds from the first frame, 0 or more.")
        if self.end is not None and self.end <= (self.start or 0):
            raise InputError(f"end is {self.end}: give a time after the start, which is {self.start or 0}.")
        if not _is_whole(self.stride) or self.stride < 1:
            raise InputError(f"stride is {self.stride!r}: give a whole number from 1, which takes every frame.")

    @property
    def which_frames(self) -> str:
        """Which frames are taken of those within the time span, in words: "every frame" or "one frame in 3"."""
        return "every frame" if self.stride == 1 else f"one frame in {self.stride}"

    def is_before(self, seconds: float) -> bool:
        """Return whether a frame at this time lies before the start."""
        return self.start is not None and seconds < self.start - TIME_TOLERANCE_S

    def is_after(self, seconds: float) -> bool:
        """Return whether a frame at this time, and so every later one, lies at or after the end."""
        return self.end is not None and seconds >= self.end - TIME_TOLERANCE_S

    def numbers(self, count: int, fps: float) -> range:
        """Return the numbers of the selected frames in a video of `count` frames at a constant rate."""
        first, last = (
            none if seconds is None else math.ceil(min((seconds - TIME_TOLERANCE_S) * fps, count))
            for seconds, none in ((self.start, 0), (self.end, count))
        )
        return range(max(0, first), last, self.stride)

    def check_region(self, size: tuple[int, int], name: str) -> None:
        """Raise InputError if the region extends outside a picture of this height and width."""
        height, width = size
        if self.region is not None and (self.region[2] > width or self.region[3] > height):
            raise InputError(
                f"region is {self.region}: {name} is {width} x {height} pixels; stay within (0, 0, {width}, {height})."
            )


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class Frame:
    """A picture with its number and time in the original video."""

    picture: Picture
    index: int
    """Number of the frame in the original video, from 0."""
    seconds: float
    """Time in seconds from the first frame of the original video."""


class Source(Protocol):
    """A video on disk. Its files are opened when they are read and closed afterwards."""

    @property
    def name(self) -> str:
        """Name of the file, folder or array, for messages."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the pictures as they are shown."""
        ...

    @property
    def fps(self) -> float:
        """Frames per second, on average."""
        ...

    @property
    def count(self) -> int | None:
        """Number of frames according to the file, possibly estimated; None if unknown."""
        ...

    @property
    def lacking(self) -> str | None:
        """What the file lacks, in words, if its structure shows that it is cut short or damaged."""
        ...

    def frames(self, selection: Selection) -> Iterator[Frame]:
        """Yield the frames that a selection takes by time and stride, with their whole pictures."""
        ...

    def near(self, times: Iterable[float], selection: Selection, run: int = 1) -> Iterator[Picture]:
        """Yield, quickly, `run` consecutive pictures from near each of `times`, given in seconds in ascending order."""
        ...


@dataclass(frozen=True)
class IndexedSource:
    """A source of single pictures at a constant rate that can be read in any order, by number."""

    name: str
    size: tuple[int, int]
    fps: float
    count: int
    open: Callable[[], AbstractContextManager[Callable[[int], Picture]]]
    lacking: str | None = None

    def frames(self, selection: Selection) -> Iterator[Frame]:
        """Yield the selected frames in order."""
        with self.open() as picture:
            for index in selection.numbers(self.count, self.fps):
                yield Frame(picture(index), index, index / self.fps)

    def near(self, times: Iterable[float], selection: Selection, run: int = 1) -> Iterator[Picture]:
        """Yield `run` frames in a row near each of the times."""
        with self.open() as picture:
            for time in times:
                first = max(0, min(int(time * self.fps), self.count - run))
                yield from (picture(number) for number in range(first, min(first + run, self.count)))


def check_size(size: tuple[int, int], first: tuple[int, int], index: int, name: str) -> None:
    """Raise InputError if a frame differs in size from the first one; sizes are height and width."""
    if size != first:
        raise InputError(
            f"frame {index} of {name} is {size[1]} x {size[0]} pixels and frame 0 is {first[1]} x {first[0]}: "
            "bring all frames to one size."
        )


def no_frames(name: str) -> InputError:
    """Return the error for a video in which no frame can be decoded."""
    return InputError(f"{name} holds no frame that can be decoded: it may be cut short; copy or export it again.")
