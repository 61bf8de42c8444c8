"""Films of boxes that walk over a textured floor, as long as wanted, with their truth."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scalor.video import VideoWriter

FPS = 10
SIZE = (96, 128)
BOX = (18, 12)
"""Height and width of a box, pixels."""
ENTERING = 0.03
"""Boxes that enter in a frame, on average. Each stays for about eighty frames."""


@dataclass(frozen=True)
class Walk:
    """A box that enters at one side and leaves at the other."""

    id: int
    enters: int
    top: int
    speed: float
    colour: tuple[int, int, int]

    def left(self, frame: int) -> float:
        gone = (frame - self.enters) * abs(self.speed)
        return gone - BOX[1] if self.speed > 0 else SIZE[1] - gone


def walks(frames: int, seed: int, entering: float = ENTERING) -> list[Walk]:
    """All boxes of a film, in the order in which they enter; some are in view from the first frame on."""
    chance = np.random.default_rng([seed, 1])
    found: list[Walk] = []
    for frame in range(-100, frames):
        for _ in range(chance.poisson(entering)):
            speed = chance.uniform(1.2, 2.4) * chance.choice((-1, 1))
            colour = tuple(int(one) for one in chance.integers(130, 255, 3))
            top = int(chance.integers(0, SIZE[0] - BOX[0]))
            found.append(Walk(len(found) + 1, frame, top, float(speed), colour))  # type: ignore[arg-type]
    return found


def in_view(every: list[Walk], frame: int) -> list[tuple[Walk, int, int]]:
    """The boxes that a frame shows, with their left and right sides, cut at the edges of the picture."""
    shown = []
    for walk in every:
        left = round(walk.left(frame))
        sides = max(left, 0), min(left + BOX[1], SIZE[1])
        if walk.enters <= frame and sides[0] < sides[1]:
            shown.append((walk, *sides))
    return shown


def pictures(frames: int, seed: int, entering: float = ENTERING) -> Iterator[np.ndarray]:
    chance = np.random.default_rng([seed, 2])
    floor = chance.integers(60, 90, (*SIZE, 3), dtype=np.uint8)
    for frame, every in alive(frames, seed, entering):
        picture = floor + chance.integers(0, 6, (*SIZE, 1), dtype=np.uint8)
        for walk, left, right in in_view(every, frame):
            picture[walk.top : walk.top + BOX[0], left:right] = walk.colour
        yield picture


def alive(frames: int, seed: int, entering: float) -> Iterator[tuple[int, list[Walk]]]:
    """Each frame with the boxes that may be in view."""
    longest = int((SIZE[1] + BOX[1]) / 1.2) + 1
    every = walks(frames, seed, entering)
    for frame in range(frames):
        every = [walk for walk in every if walk.enters + longest >= frame]
        yield frame, every[: next((place for place, walk in enumerate(every) if walk.enters > frame), len(every))]


def write(path: Path, frames: int, seed: int, truth: Path | None = None, entering: float = ENTERING) -> None:
    """Write a film and, if asked for, its truth as MOTChallenge text."""
    with VideoWriter(path, FPS) as film:
        for picture in pictures(frames, seed, entering):
            film.write(picture)
    if truth is None:
        return
    with open(truth, "w") as file:
        for frame, every in alive(frames, seed, entering):
            for walk, left, right in in_view(every, frame):
                file.write(f"{frame + 1},{walk.id},{left},{walk.top},{right - left},{BOX[0]},1,-1,-1,-1\n")
