"""Sources of frames, and `Selection`: a region of the picture, a time span and every n-th frame.

Pixels of every kind become uint8 RGB: transparent ones are composited over black, and those of more than 8 bits are
scaled by the range of their values.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Num, UInt8
from torch.nn.functional import interpolate

from scalor.errors import InputError

Picture = UInt8[np.ndarray, "H W 3"]
PERCENTILES = (0.1, 99.9)
"""Percentiles of the values that become black and white. A few hot or dead camera pixels do not change them."""
PIXELS_A_PICTURE = 65_536
"""Number of pixels drawn at random from each picture to measure levels: enough for the percentiles, yet quick."""


def over_black(picture: UInt8[np.ndarray, "H W 4"]) -> UInt8[np.ndarray, "H W 3"]:
    """Composite a picture with an alpha channel over black."""
    alpha = picture[..., 3:].astype(np.uint16)
    return ((picture[..., :3] * alpha + 127) // 255).astype(np.uint8)


@dataclass(frozen=True)
class Levels:
    """The values that become black and white. All pictures of a video share them; otherwise it would flicker."""

    black: float
    white: float

    def apply(self, values: Num[np.ndarray, "H W"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return a grey picture; NaN becomes black."""
        scaled = (values.astype(np.float32) - self.black) / (self.white - self.black)
        grey = (np.nan_to_num(scaled.clip(0, 1)) * 255 + 0.5).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)


def measure_levels(pictures: Iterable[Num[np.ndarray, "H W"]], name: str) -> Levels:
    """Return the levels at `PERCENTILES` of the finite values of several pictures, from a random sample of pixels."""
    random = np.random.default_rng(0)
    chosen = []
    for picture in pictures:
        values = picture[np.isfinite(picture)].astype(np.float32)
        if len(values):
            chosen.append(values[random.integers(len(values), size=PIXELS_A_PICTURE)])
    if not chosen:
        raise InputError(f"{name} holds no finite values: give pictures with numbers in them.")
    black, white = np.percentile(np.concatenate(chosen), PERCENTILES)
    return Levels(float(black), float(white) if white > black else float(black) + 1)


def shrunken_size(size: tuple[int, int], scale: float, stretch: float = 1.0) -> tuple[int, int]:
    """Return height and width in whole pixels: both multiplied by `scale`, the width also by `stretch`."""
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale * stretch))


def shrink(picture: Picture, size: tuple[int, int]) -> UInt8[np.ndarray, "h w 3"]:
    """Return the picture resized to (height, width) with antialiasing; it may also be enlarged."""
    if picture.shape[:2] == size:
        return picture
    pixels = torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)[None]
    resized = interpolate(pixels, size, mode="bilinear", antialias=True, align_corners=False)
    shrunken: np.ndarray = resized[0].permute(1, 2, 0).numpy()
    return shrunken


def amplify_difference(picture: Picture, still: Picture, contrast: float) -> Picture:
    """Return the picture with its difference from the background `still` multiplied by `contrast`."""
    if contrast == 1:
        return picture
    stronger: np.ndarray = still + contrast * (picture.astype(np.float32) - still)
    return stronger.round().clip(0, 255).astype(np.uint8)


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

    def is_before(self, seconds: float) -> bool:
        """Return whether a frame at this time lies before the start."""
        return self.start is not None and seconds < self.start - TIME_TOLERANCE_S

    def is_after(self, seconds: float) -> bool:
        """Return whether a frame at this time, and so every later one, lies at or after the end."""
        return self.end is not None and seconds >= self.end - TIME_TOLERANCE_S

    def numbers(self, count: int, fps: float) -> range:
        """Return the numbers of the selected frames in a video of `count` frames at a constant rate."""
        first = 0 if self.start is None else math.ceil((self.start - TIME_TOLERANCE_S) * fps)
        last = count if self.end is None else min(count, math.ceil((self.end - TIME_TOLERANCE_S) * fps))
        return range(max(0, first), last, self.stride)

    def check_region(self, size: tuple[int, int], name: str) -> None:
        """Raise InputError if the region extends outside a picture of this height and width."""
        height, width = size
        if self.region is not None and (self.region[2] > width or self.region[3] > height):
            raise InputError(
                f"region is {self.region}: {name} is {width} x {height} pixels; stay within (0, 0, {width}, {height})."
            )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
    def name(self) -> str: ...

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

    def frames(self, selection: Selection) -> Iterator[Frame]:
        with self.open() as picture:
            for index in selection.numbers(self.count, self.fps):
                yield Frame(picture(index), index, index / self.fps)

    def near(self, times: Iterable[float], selection: Selection, run: int = 1) -> Iterator[Picture]:
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
