"""A small film of bright boxes that walk, its truth, and trackers that need not be run."""

from pathlib import Path

import numpy as np

from benchmarks.spoiling import Part, write_film, write_truth
from benchmarks.track_command import Tracked
from scalor.evaluation.score import BoxRows, read_boxes

HEIGHT, WIDTH, FRAMES = 48, 64, 12
PART = Part(1, FRAMES, (3, FRAMES))
DIM, BRIGHT = 40, 200


def truth(frames: int = FRAMES) -> BoxRows:
    """Two boxes of 12x14 px: number 4 walks right in the upper half, number 7 left in the lower one.

    Number 7 is absent in the first two frames.
    """
    rows = []
    for t in range(frames):
        rows.append((t + 1, 4, 10 + 2 * t, 8))
        if t > 1:
            rows.append((t + 1, 7, 40 - t, 28))
    frame, number, left, top = np.array(rows).T
    box = np.stack([left, top, left + 12, top + 14], 1).astype(float)
    return BoxRows(frame, number, box, np.ones(len(frame)))


def pictures(frames: int = FRAMES) -> list[np.ndarray]:
    drawn = [np.full((HEIGHT, WIDTH, 3), DIM, np.uint8) for _ in range(frames)]
    rows = truth(frames)
    for frame, (x0, y0, x1, y1) in zip(rows.frame, rows.box.astype(int), strict=True):
        drawn[frame - 1][y0:y1, x0:x1] = BRIGHT
    return drawn


def write_data(folder: Path, frames: int = FRAMES) -> Path:
    """A data folder with the film in place of PETS."""
    (folder / "pets").mkdir(parents=True)
    write_film(folder / "pets" / "vtest.avi", pictures(frames), fps=10)
    write_truth(folder / "pets" / "gt.txt", truth(frames))
    return folder


def perfect(folder: Path, rows: BoxRows, health: dict[str, str] | None = None) -> Tracked:
    """The result of a tracker that knows the truth."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "tracks.csv", "w") as file:
        file.write("frame,seconds,id,x0,y0,x1,y1,x,y,confidence,discovered\n")
        for frame, number, (x0, y0, x1, y1) in zip(rows.frame, rows.id, rows.box, strict=True):
            file.write(f"{frame - 1},0,{number},{x0},{y0},{x1},{y1},0,0,1,0\n")
    counts = "".join(f"{t},0,{(rows.frame == t + 1).sum()}\n" for t in range(rows.frame.max()))
    (folder / "counts.csv").write_text("frame,seconds,objects\n" + counts)
    document = {"frames_per_second": 20.0} | ({} if health is None else {"health": health})
    return Tracked(folder, "scalor track", 1.5, document, None)


def perfect_from(path: Path, folder: Path) -> Tracked:
    return perfect(folder, read_boxes(path))
