"""Small tracks written by hand."""

import numpy as np

from scalor.tracks import Tracks

Row = tuple[int, int, tuple[float, float, float, float]]


def tracks_of(rows: list[Row], size: tuple[int, int], discovered: tuple[int, ...] = ()) -> Tracks:
    """Rows of (frame, id, box); `discovered` lists the rows that are discoveries. Masks fill the boxes."""
    masks = np.zeros((len(rows), *size), bool)
    for mask, (_, _, (x0, y0, x1, y1)) in zip(masks, rows, strict=True):
        mask[max(int(y0), 0) : max(int(y1), 0), max(int(x0), 0) : max(int(x1), 0)] = True
    return Tracks(
        clip=np.zeros(len(rows), int),
        frame=np.array([row[0] for row in rows], int),
        id=np.array([row[1] for row in rows], int),
        box=np.array([row[2] for row in rows], float).reshape(-1, 4),
        confidence=np.ones(len(rows)),
        discovered=np.isin(np.arange(len(rows)), discovered),
        size=size,
        masks=masks,
    )
