"""Small scenes for tests of health: bodies that walk through a picture, with their foreground."""

from collections.abc import Callable, Iterator

import numpy as np

from scalor.health import HealthMonitor
from scalor.tracks import Tracks

HEIGHT, WIDTH, FPS = 120, 200, 10
BODY = (30, 12)
Rows = list[tuple[int, float, float, float, float]]
"""Id, x0, y0, x1, y1."""
Spoil = Callable[[int, Rows], Rows]
"""From the number of a frame and its true rows to what is said of it."""


def walks(frames: int) -> Iterator[tuple[int, Rows]]:
    """Three bodies that walk from left to right all the time, the next one entering when one has left."""
    for number in range(frames):
        rows = []
        for lane in range(3):
            way = 4.0 * number + 70 * lane
            lap, x = divmod(way, WIDTH + BODY[1])
            x, y = x - BODY[1], 5.0 + 38 * lane
            x0, x1 = max(0.0, x), min(float(WIDTH), x + BODY[1])
            if x1 - x0 >= 4:
                rows.append((int(3 * lap) + lane, x0, y, x1, y + BODY[0]))
        yield number, rows


def foreground(rows: Rows) -> np.ndarray:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    for _, x0, y0, x1, y1 in rows:
        mask[int(y0) : int(y1), int(x0) : int(x1)] = True
    return mask


def tracks_of(number: int, rows: Rows) -> Tracks:
    many = len(rows)
    table = np.array(rows, float).reshape(-1, 5)
    return Tracks(
        clip=np.zeros(many, int),
        frame=np.full(many, number),
        id=table[:, 0].astype(int),
        box=table[:, 1:],
        confidence=np.ones(many),
        discovered=np.zeros(many, bool),
        size=(HEIGHT, WIDTH),
    )


def watched(spoil: Spoil = lambda number, rows: rows, frames: int = 200) -> HealthMonitor:
    """A monitor that has seen the walks, with what is said of them."""
    monitor = HealthMonitor((HEIGHT, WIDTH), FPS, BODY)
    for number, rows in walks(frames):
        monitor.step(number, foreground(rows), tracks_of(number, spoil(number, rows)))
    return monitor
