"""Tracks from rows of a table."""

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from scalor.errors import InputError
from scalor.tracks import Tracks

COLUMNS = ("frame", "id", "x0", "y0", "x1", "y1", "confidence", "discovered")


def tracks_of(
    frame: Int[np.ndarray, " N"],
    id: Int[np.ndarray, " N"],
    box: Float[np.ndarray, "N 4"],
    confidence: Float[np.ndarray, " N"],
    discovered: Bool[np.ndarray, " N"],
    size: tuple[int, int],
) -> Tracks:
    """Return tracks of one clip."""
    clip = np.zeros(len(id), int)
    return Tracks(clip=clip, frame=frame, id=id, box=box, confidence=confidence, discovered=discovered, size=size)


def read_tracks(path: Path, size: tuple[int, int]) -> Tracks:
    """Read `tracks.csv`."""
    try:
        with open(path) as file:
            names = file.readline().strip().split(",")
            table = np.array([line.split(",") for line in file], dtype=float).reshape(-1, len(names))
        frame, number, x0, y0, x1, y1, confidence, discovered = (table[:, names.index(name)] for name in COLUMNS)
    except ValueError as error:
        raise InputError(f"{path} is damaged: track the video again.") from error
    box = np.stack([x0, y0, x1, y1], axis=1)
    order = np.lexsort((number, frame))
    tracks = tracks_of(frame.astype(int), number.astype(int), box, confidence, discovered.astype(bool), size)
    return tracks.select(order)
