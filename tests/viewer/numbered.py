"""A video whose frames show their number, with tracks that are known: to see which frame a page shows."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scalor.outputs import ResultFolder
from scalor.tracks import Tracks

SIZE = (240, 400)
FRAMES, FPS = 90, 30
BITS, SIDE = 8, 40
"""The number is written in the top rows, as black and white squares, the lowest bit first."""
COUNT = 4
"""Number of objects in view. A fifth comes in the middle, when the first leaves."""


def picture(number: int) -> np.ndarray:
    frame = np.full((*SIZE, 3), 110, np.uint8)
    for bit in range(BITS):
        frame[:SIDE, SIDE * bit : SIDE * (bit + 1)] = 255 if number >> bit & 1 else 0
    return frame


def number_in(shown: np.ndarray) -> int:
    """The number that a picture of any size shows."""
    height, width = shown.shape[:2]
    row = shown[round(0.5 * SIDE * height / SIZE[0])]
    return sum(int(row[round((bit + 0.5) * SIDE * width / SIZE[1])].mean() > 127) << bit for bit in range(BITS))


def tracks_at(number: int) -> Tracks:
    """Boxes that move to the right at different speeds."""
    ids = np.arange(1, COUNT + 1) + (np.arange(COUNT) < (number >= FRAMES // 2)) * COUNT
    lane = (ids - 1) % COUNT
    x0 = 10.125 + (0.5 + lane) * number % 340
    y0 = 60.25 + 40 * lane
    masks = np.zeros((COUNT, *SIZE), bool)
    for mask, x, y in zip(masks, x0.astype(int), y0.astype(int), strict=True):
        mask[y + 4 : y + 20, x + 4 : x + 30] = True
    order = np.argsort(ids)
    return Tracks(
        clip=np.zeros(COUNT, int),
        frame=np.full(COUNT, number),
        id=ids[order],
        box=np.stack([x0, y0, x0 + 34.5, y0 + 24.75], axis=1)[order],
        confidence=np.linspace(0.3, 0.9, COUNT)[order],
        discovered=np.full(COUNT, number == 0) | ((ids[order] > COUNT) & (number == FRAMES // 2)),
        size=SIZE,
        masks=masks[order],
    )


def write_results(folder: Path, predicted_from: int = FRAMES, video: str = "numbers.mp4") -> Path:
    """Write a result folder; return its path."""
    with ResultFolder(folder, SIZE, FPS, masks=True, facts={"video": video}) as results:
        for number in range(FRAMES):
            results.add(picture(number), number / FPS, number, tracks_at(number), number >= predicted_from)
    return folder


def boxes_in_csv(folder: Path) -> Iterator[tuple[int, int, tuple[float, float, float, float]]]:
    """Yield the frame, the id and the box of every row of tracks.csv."""
    header, *lines = (folder / "tracks.csv").read_text().splitlines()
    places = [header.split(",").index(name) for name in ("frame", "id", "x0", "y0", "x1", "y1")]
    for line in lines:
        values = line.split(",")
        frame, number, x0, y0, x1, y1 = (float(values[place]) for place in places)
        yield int(frame), int(number), (x0, y0, x1, y1)
