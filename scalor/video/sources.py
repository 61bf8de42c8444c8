"""Sources of frames: the interface of every source, and the sources whose pictures can be read in any order."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from scalor.errors import InputError
from scalor.video.selection import Selection

Picture = UInt8[np.ndarray, "H W 3"]


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
