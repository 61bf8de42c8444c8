"""`Tracks`: the result of tracking, one row per object and frame, and its export to formats that other tools read."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from scalor.errors import InputError


@dataclass(frozen=True)
class Tracks:
    """Tracked objects, one row per object and frame, sorted by clip, frame and id.

    N is the number of rows, H and W are the height and width of the frames.

    Attributes
    ----------
    clip : int array [N]
        Index of the clip in the batch.
    frame : int array [N]
        Index of the frame, from 0.
    id : int array [N]
        Identity of the object, from 0. It is the same in all frames of a track.
    box : float array [N, 4]
        Bounding box x0, y0, x1, y1 in pixels; pixel i covers [i, i + 1).
    presence : float array [N]
        Confidence that the object is there, 0 to 1.
    discovered : bool array [N]
        True in the first frame of a track.
    size : tuple of int
        Height and width of the frames, pixels.
    masks : bool array [N, H, W], optional
        Visible mask of each object: the pixels that show it, without occluded parts. None unless asked for.
    dropped : int
        Number of detections in these frames that were dropped because no slot was free.

    Examples
    --------
    >>> tracks = scalor.track("walkers.mp4")
    >>> len(tracks)  # objects, summed over the frames
    >>> confident = tracks.select(tracks.presence > 0.8)
    >>> confident.to_csv("tracks.csv")
    """

    clip: Int[np.ndarray, " N"]
    frame: Int[np.ndarray, " N"]
    id: Int[np.ndarray, " N"]
    box: Float[np.ndarray, "N 4"]
    presence: Float[np.ndarray, " N"]
    discovered: Bool[np.ndarray, " N"]
    size: tuple[int, int]
    masks: Bool[np.ndarray, "N H W"] | None = None
    dropped: int = 0

    def __post_init__(self) -> None:
        rows = len(self.id)
        for name in ("clip", "frame", "box", "presence", "discovered"):
            assert len(getattr(self, name)) == rows, (name, rows)
        assert self.box.shape == (rows, 4), self.box.shape

    def __len__(self) -> int:
        return len(self.id)

    def select(self, rows: Bool[np.ndarray, " N"]) -> "Tracks":
        """Return the rows where `rows` is true."""
        return Tracks(
            clip=self.clip[rows],
            frame=self.frame[rows],
            id=self.id[rows],
            box=self.box[rows],
            presence=self.presence[rows],
            discovered=self.discovered[rows],
            size=self.size,
            masks=None if self.masks is None else self.masks[rows],
            dropped=self.dropped,
        )

    def of_clip(self, clip: int) -> "Tracks":
        """Return the rows of one clip of a batch."""
        return self.select(self.clip == clip)

    @property
    def centre(self) -> Float[np.ndarray, "N 2"]:
        """x and y of the centres of the boxes, pixels [N, 2]."""
        centre: np.ndarray = (self.box[:, :2] + self.box[:, 2:]) / 2
        return centre

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file with one line per row.

        Columns: clip, frame and id (from 0), x0, y0, x1, y1 (pixels), presence, discovered (0 or 1).
        """
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["clip", "frame", "id", "x0", "y0", "x1", "y1", "presence", "discovered"])
            for i in range(len(self)):
                box = [f"{v:.3f}" for v in self.box[i]]
                sure = [f"{self.presence[i]:.4f}", int(self.discovered[i])]
                writer.writerow([self.clip[i], self.frame[i], self.id[i], *box, *sure])

    def to_mot(self, path: str | Path) -> None:
        """Write a MOTChallenge text file: frame and id (from 1), left, top, width, height, confidence, -1, -1, -1.

        Raise InputError if the rows belong to more than one clip; see `of_clip`.
        """
        if len(self) and self.clip.min() != self.clip.max():
            raise InputError(
                f"these tracks hold {len(np.unique(self.clip))} clips and a MOTChallenge file holds one: "
                "write them one by one with tracks.of_clip(i).to_mot(path)."
            )
        with open(path, "w") as file:
            for i in range(len(self)):
                x0, y0, x1, y1 = self.box[i]
                file.write(
                    f"{self.frame[i] + 1},{self.id[i] + 1},{x0:.3f},{y0:.3f},{x1 - x0:.3f},{y1 - y0:.3f},"
                    f"{self.presence[i]:.4f},-1,-1,-1\n"
                )


def join_tracks(parts: list[Tracks]) -> Tracks:
    """Return one record with the rows of several records of the same video, sorted."""

    def column(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])

    order = np.lexsort((column("id"), column("frame"), column("clip")))
    return Tracks(
        clip=column("clip")[order],
        frame=column("frame")[order],
        id=column("id")[order],
        box=column("box")[order],
        presence=column("presence")[order],
        discovered=column("discovered")[order],
        size=parts[0].size,
        masks=None if parts[0].masks is None else column("masks")[order],
        dropped=sum(part.dropped for part in parts),
    )
