"""`ViewerWriter`: write the data of the viewer's page while a video is tracked, in constant memory."""

import os
import shutil
from array import array
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, UInt8

from scalor.files import saved_position
from scalor.tracks import Tracks
from scalor.video.segments import SegmentedFilm, Writer
from scalor.viewer import chunks
from scalor.viewer.chunks import Chunk, TrackIndex, packed, script
from scalor.viewer.film import FilmWriter, film_rate, film_size

FOLDER = "report_viewer"
"""Name of the folder beside report.html."""
INDEX = "index.js"
FILM = "video.mp4"
KEPT = {"_index", "_frames", "_seconds", "_waiting", "_masks", "_start", "_rows", "_chunks"}
"""Attributes of a `ViewerWriter` that a saved state holds."""


class ViewerWriter:
    """Writer of the folder that the player of report.html reads.

    Parameters
    ----------
    folder : Path
        Folder to write. It is created.
    size : tuple of int
        Height and width of the original video.
    fps : float
        Tracked frames per second.
    encode : callable, optional
        Encoder of a mask as COCO's text. Masks are written if it is given.
    film : Path, optional
        A film that was written before. It is used again, and the pictures of frames are ignored.
    segments : Path, optional
        Folder for the segments of the film. By default, the film is written in one piece.
    saved : dict, optional
        State that `save` returned, to go on from; only with segments.
    """

    def __init__(
        self,
        folder: Path,
        size: tuple[int, int],
        fps: float,
        encode: Callable[[Bool[np.ndarray, "H W"]], str] | None = None,
        film: Path | None = None,
        segments: Path | None = None,
        saved: dict[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.segments, self.saved = segments, saved or {}
        self.size = size
        self.rate = film_rate(fps)
        self.encode = encode
        self.film = film
        self.mask_size = tuple(min(pair) for pair in zip(size, film_size(size), strict=True))
        """Height and width of the masks: those of the film, or of the video if it is smaller."""
        rows, columns = (
            ((np.arange(few) + 0.5) * many / few).astype(int) for few, many in zip(self.mask_size, size, strict=True)
        )
        self._sampled = np.ix_(rows, columns)
        self._index = TrackIndex()
        self._frames, self._seconds = array("q"), array("d")
        self._waiting: list[Tracks] = []
        self._masks: list[str] = []
        self._start = self._rows = self._chunks = 0
        for name in KEPT & self.saved.keys():
            setattr(self, name, self.saved[name])
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=bool(self.saved))
        film = self.folder / FILM
        if self.film is not None:
            link_or_copy(self.film, film)
        elif self.segments is None:
            self._film: Writer = self._stack.enter_context(FilmWriter(film, self.rate))
        else:
            segmented = SegmentedFilm(
                film, self.segments, lambda path: FilmWriter(path, self.rate), self.saved.get("film", 0)
            )
            self._film = self._stack.enter_context(segmented)
        return self

    def save(self) -> dict[str, Any]:
        """Write everything to the disk, at the end of a segment; return what the constructor needs to go on from here.

        Only with segments.
        """
        assert isinstance(self._film, SegmentedFilm)
        for path in self.folder.iterdir():
            with open(path, "rb") as file:
                saved_position(file)
        return {"film": self._film.save(), **{name: getattr(self, name) for name in KEPT}}

    def add(self, picture: UInt8[np.ndarray, "H W 3"], seconds: float, index: int, tracks: Tracks) -> None:
        """Add the next frame with its tracks."""
        if self.film is None:
            self._film.write(picture)
        self._frames.append(index)
        self._seconds.append(seconds)
        if self.encode is not None and tracks.masks is not None:
            self._masks += [self.encode(mask[self._sampled]) for mask in tracks.masks]
        self._waiting.append(replace(tracks, masks=None))
        self._rows += len(tracks)
        if len(self._waiting) >= chunks.CHUNK_FRAMES or self._rows >= chunks.CHUNK_ROWS:
            self._flush()

    def _flush(self) -> None:
        """Write the waiting frames as a chunk."""
        waiting = self._waiting
        chunk = Chunk(
            start=self._start,
            offsets=np.cumsum([0, *map(len, waiting)]),
            id=np.concatenate([tracks.id for tracks in waiting]),
            box=np.concatenate([tracks.box for tracks in waiting]),
            confidence=np.concatenate([tracks.confidence for tracks in waiting]),
            discovered=np.concatenate([tracks.discovered for tracks in waiting]),
        )
        self._index.add(chunk)
        self._write(f"rows-{self._chunks}", chunk.rows_document())
        if self.encode is not None:
            self._write(f"masks-{self._chunks}", self._masks)
        self._start += chunk.frames
        self._chunks += 1
        self._rows = 0
        self._waiting, self._masks = [], []

    def finish(self, predicted_from: int | None = None, names: Mapping[int, str] | None = None) -> None:
        """Write the index.

        Parameters
        ----------
        predicted_from : int, optional
            Number, in the original video, of the first frame that was predicted rather than seen.
        names : mapping, optional
            Names of tracks, by id.
        """
        if self._waiting:
            self._flush()
        predicted = [position for position, index in enumerate(self._frames) if index == predicted_from]
        document = {
            "version": chunks.VERSION,
            "size": self.size,
            "film": FILM,
            "rate": [self.rate.numerator, self.rate.denominator],
            "frame": packed(np.array(self._frames), "<i4"),
            "seconds": packed(np.array(self._seconds), "<f8"),
            "masks": None if self.encode is None else self.mask_size,
            "predicted": predicted[0] if predicted else None,
            "names": {} if names is None else dict(names),
            **self._index.document(),
        }
        self._write("index", document)

    def _write(self, name: str, value: Mapping[str, Any] | list[str]) -> None:
        (self.folder / f"{name}.js").write_text(script(name, value), encoding="ascii")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Give a file a second name, or copy it where that is not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
