"""A drawn scene with known tracks: two discs that pass each other and one on a circle.

The ids of the two that pass each other are exchanged where they meet.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from scalor.outputs import ResultFolder
from scalor.tracks import Tracks
from scalor.video import write_video

SIZE = (120, 160)
FRAMES, FPS = 40, 10
RADIUS = 6.0
MIXED = 20
"""Frame from which on the tracker has exchanged the ids 1 and 2."""
COLORS = np.array([[230, 60, 50], [60, 160, 230], [90, 200, 90]], np.uint8)


def true_centres() -> np.ndarray:
    """Centres (x, y) of every object in every frame, [FRAMES, 3, 2].

    One moves 3 px a frame to the right, one as fast to the left, and one on a circle of radius 30 around (80, 75) at
    0.1 radians a frame.
    """
    t = np.arange(FRAMES)
    angle = 0.1 * t
    right = np.stack([20 + 3 * t, np.full(FRAMES, 20)], 1)
    left = np.stack([140 - 3 * t, np.full(FRAMES, 24)], 1)
    circle = np.stack([80 + 30 * np.cos(angle), 75 + 30 * np.sin(angle)], 1)
    return np.stack([right, left, circle], 1).astype(float)


@cache
def discs() -> np.ndarray:
    """Which pixels each object covers [FRAMES, 3, H, W]."""
    height, width = SIZE
    y, x = np.mgrid[:height, :width] + 0.5
    away = true_centres()[..., None, None] - np.stack([x, y])
    covered: np.ndarray = (away**2).sum(axis=2) <= RADIUS**2
    covered.flags.writeable = False
    return covered


def tracks_of(centres: np.ndarray, ids: np.ndarray, size: tuple[int, int] = SIZE, radius: float = RADIUS) -> Tracks:
    """Tracks of objects [T, N, 2] with ids [T, N], whose boxes have the same size everywhere."""
    frames, count = centres.shape[:2]
    frame = np.repeat(np.arange(frames), count)
    order = np.lexsort((ids.ravel(), frame))
    box = np.concatenate([centres - radius, centres + radius], axis=2).reshape(-1, 4)[order]
    number = ids.ravel()[order]
    discovered = np.zeros(len(frame), bool)
    discovered[np.unique(number, return_index=True)[1]] = True
    confidence = np.full(len(frame), 0.9)
    return Tracks(np.zeros(len(frame), int), frame, number, box, confidence, discovered, size)


def mixed_ids() -> np.ndarray:
    """Ids of every object in every frame, from 1, as the tracker gave them."""
    ids = np.tile([1, 2, 3], (FRAMES, 1))
    ids[MIXED:, :2] = [2, 1]
    return ids


def write_scene(path: Path) -> None:
    """Write the video."""
    frames = np.full((FRAMES, *SIZE, 3), 40, np.uint8)
    for number, color in enumerate(COLORS):
        frames[discs()[:, number]] = color
    write_video(path, frames, FPS)


def write_results(folder: Path, video: Path, masks: bool = True) -> None:
    """Write the result folder of the scene, with the ids that the tracker mixed up."""
    tracks = tracks_of(true_centres(), mixed_ids())
    shown = discs()
    order = mixed_ids().argsort(axis=1)
    with ResultFolder(folder, SIZE, FPS, masks=masks, facts={"video": str(video), "command": "drawn"}) as results:
        for t in range(FRAMES):
            here = tracks.select(tracks.frame == t)
            here = replace(here, masks=shown[t][order[t]] if masks else None)
            results.add(np.full((*SIZE, 3), 40, np.uint8), t / FPS, t, here)


def write_tracked_scene(home: Path, masks: bool = False) -> Path:
    """Write the scene and its tracks into a folder, and return the folder."""
    write_scene(home / "discs.mp4")
    write_results(home / "tracked", home / "discs.mp4", masks)
    return home
