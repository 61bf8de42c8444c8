"""Where frames come from: what every source offers, and the sources whose pictures can be had in any order."""

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
    """A picture and when it is shown."""

    picture: Picture
    index: int
    """Its number in the original video, from 0."""
    seconds: float
    """Its time, from the first frame of the original video."""


class Source(Protocol):
    """A video as it lies on disk. Everything is opened when it is read, and closed again."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of its pictures as they are shown."""
        ...

    @property
    def fps(self) -> float:
        """Frames per second, on average."""
        ...

    @property
    def count(self) -> int | None:
        """How many frames it is said to have."""
        ...

    def frames(self, selection: Selection) -> Iterator[Frame]:
        """The frames that a selection takes by time and stride, with their whole pictures."""
        ...

    def near(self, times: Iterable[float], selection: Selection, run: int = 1) -> Iterator[Picture]:
        """Quickly, so many pictures in a row from about each of these times, in seconds, from early to late."""
        ...


@dataclass(frozen=True)
class Stills:
    """A source of single pictures at a constant rate, each of which can be had by its number."""

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
    """Refuses a frame that is not as large as the first one; sizes are height and width."""
    if size != first:
        raise InputError(
            f"frame {index} of {name} is {size[1]} x {size[0]} pixels and frame 0 is {first[1]} x {first[0]}: "
            "bring all frames to one size."
        )


def no_frames(name: str) -> InputError:
    return InputError(f"{name} holds no frame that can be decoded: it may be cut short; copy or export it again.")
