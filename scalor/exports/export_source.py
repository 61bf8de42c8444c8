"""`ExportSource`: what every export is made from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Int

from scalor.edits import EditedFolder
from scalor.measures import Calibration
from scalor.outputs.about import About
from scalor.tracks import Tracks


@dataclass(frozen=True)
class ExportSource:
    """The tracks of a result folder, with everything that other formats want to know."""

    tracks: Tracks
    names: Mapping[int, str]
    """Names of tracks, by id."""
    times: Mapping[int, float]
    """Time of every tracked frame in seconds, by its number."""
    about: About
    calibration: Calibration
    video: str | Path | None = None
    """The video, if it is no longer where it was tracked."""

    def objects(self) -> Iterator[tuple[int, Int[np.ndarray, " n"]]]:
        """Yield the id of every object with its rows in the order of time."""
        order = np.lexsort((self.tracks.frame, self.tracks.id))
        ids, starts = np.unique(self.tracks.id[order], return_index=True)
        for number, (start, stop) in zip(ids.tolist(), pairwise([*starts.tolist(), len(order)]), strict=True):
            yield number, order[start:stop]

    def links(self) -> Int[np.ndarray, "L 2"]:
        """Return all pairs of successive rows of an object."""
        pairs = [pair for _, rows in self.objects() for pair in pairwise(rows.tolist())]
        return np.array(pairs, int).reshape(-1, 2)

    @property
    def interval(self) -> float:
        """Seconds from one frame of the video to the next."""
        return 1 / self.about.video_fps

    def label(self, number: int) -> str:
        """Return the name of a track, or its id where it has none."""
        return self.names.get(number, str(number))


def export_source(
    folder: str | Path | EditedFolder, calibration: Calibration | None = None, video: str | Path | None = None
) -> ExportSource:
    """Return what exports of a result folder are made from; its edits count.

    Parameters
    ----------
    folder : str, Path or EditedFolder
        The result folder.
    calibration : Calibration, optional
        Scale of the picture. Without it, lengths are in pixels.
    video : str or Path, optional
        The video, for clips, if it is no longer where it was tracked.

    Examples
    --------
    >>> source = export_source("tracked", Calibration(mm_per_pixel=0.12))
    """
    edited = folder if isinstance(folder, EditedFolder) else EditedFolder(folder)
    return ExportSource(edited.tracks, edited.names, edited.times, edited.about, calibration or Calibration(), video)
