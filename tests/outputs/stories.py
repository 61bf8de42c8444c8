"""Short videos whose tracks are known: objects come in one after the other, cross the picture and leave."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scalor.tracks import Tracks

SIZE = (10, 400)
"""So wide that pictures are not enlarged, so low that they are quick to write."""


class Shot(NamedTuple):
    """What `ResultFolder.add` takes."""

    picture: np.ndarray
    seconds: float
    index: int  # type: ignore[assignment]  # hides the method of tuples
    tracks: Tracks


def shots(count: int, *, masks: bool = False, stride: int = 1, first: int = 0, seed: int = 0) -> Iterator[Shot]:
    """Every fifth frame an object enters, for twelve frames, hidden in one of them; the first frame is without any."""
    rng = np.random.default_rng(seed)
    height, width = SIZE
    for t in range(count):
        ids = np.arange(max(0, (t - 8) // 5), (t + 4) // 5)
        age = t - 5 * ids - 1
        x0 = 20.25 + 30 * age + rng.random(len(ids))
        y0 = 1.5 + ids % 4 + rng.random(len(ids))
        box = np.stack([x0, y0, x0 + 9.5, y0 + 5.125], axis=1).reshape(-1, 4)
        shown = np.zeros((len(ids), height, width), bool)
        for mask, (a, b, c, d) in zip(shown, box.astype(int), strict=True):
            mask[b:d, a:c] = rng.random((d - b, c - a)) < 0.8
        shown[age == 6] = False
        tracks = Tracks(
            clip=np.zeros(len(ids), int),
            frame=np.full(len(ids), t),
            id=ids + 1,
            box=box,
            confidence=rng.random(len(ids)),
            discovered=age == 0,
            size=SIZE,
            masks=shown if masks else None,
        )
        index = first + stride * t
        yield Shot(rng.integers(0, 256, (*SIZE, 3), np.uint8), index / 25, index, tracks)


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files and empty folders included."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"folder" for path in folder.rglob("*")
    }
