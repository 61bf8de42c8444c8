"""`Session`: the data of the viewer's page for a result folder, after the edits in effect."""

import threading
from bisect import bisect_left, bisect_right
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from scalor.edits import EditedFolder, crossings, describe, doubtful_places, step_from_dict
from scalor.edits.operations import Redo, Undo
from scalor.edits.remake import Interrupted
from scalor.errors import InputError
from scalor.measures import drawings
from scalor.viewer import chunks
from scalor.viewer.chunks import Chunk, TrackIndex, from_script
from scalor.viewer.writing import FILM, FOLDER, INDEX

WRITE_AFTER = 1.0
"""Seconds of rest after an edit before the files of the folder are made again."""


class Session:
    """A result folder that a page shows and edits.

    Every edit is in the log when `edit` returns. The tables and pictures of the folder are made again when edits rest,
    and by `close`.
    """

    def __init__(self, path: str | Path, write_after: float = WRITE_AFTER) -> None:
        self.path = Path(path)
        self.folder = EditedFolder(path)
        self.write_after = write_after
        source = self.folder.source / FOLDER
        if not (source / INDEX).is_file():
            raise InputError(f"{path} has no {FOLDER}/: track the video again, and the player's data are written.")
        self._raw = self._read_index(source / INDEX)
        self._frames = np.array(list(self.folder.times))
        self._seconds = np.array(list(self.folder.times.values()))
        self._lock = threading.RLock()
        """Held while data of the page are read or an edit is done."""
        self._writing = threading.Lock()
        """Held while files are made again, which may take minutes. The page is answered meanwhile."""
        self._stop = threading.Event()
        self._timer: threading.Timer | None = None
        self._index: dict[str, Any] | None = None
        self._places: dict[str, list[dict[str, Any]]] = {}
        self._original_chunk = lru_cache(maxsize=8)(self._read_masks)
        self.version = 0
        """Number of edits in this session."""
        self.problem: str | None = None
        """Why the files could not be made again, if they could not."""
        if self.folder.stale:  # an earlier session was killed
            self._write_later()

    @staticmethod
    def _read_index(path: Path) -> dict[str, Any]:
        """Return the index as tracked."""
        try:
            document: dict[str, Any] = from_script(path.read_text(encoding="ascii"))
            if document["version"] == chunks.VERSION and {"rate", "masks", "predicted", "starts"} <= document.keys():
                return document
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise InputError(f"{path} is damaged, or of another version: track the video again.")

    @property
    def _source(self) -> Path:
        """The data of the page as tracked."""
        return self.folder.source / FOLDER

    @property
    def film(self) -> Path:
        """The video of the page. It must lie in the folder, wherever links point."""
        path = (self._source / FILM).resolve()
        if not path.is_relative_to(self.path.resolve()):
            raise InputError(f"{self._source / FILM} leads out of the folder: copy it there.")
        return path

    def index(self) -> dict[str, Any]:
        """Return the index of all tracks as the page reads it, with names and the state of the log."""
        with self._lock:
            if self._index is None:
                found = TrackIndex()
                for number in range(self._count()):
                    found.add(self._chunk(number))
                self._index = found.document()
            steps = [entry.step for entry in self.folder.entries]
            done, redone = len(self.folder.edits), _redo_depth(steps)
            return {
                "version": chunks.VERSION,
                "size": self.folder.about.size,
                "film": FILM,
                "rate": self._raw["rate"],
                "frame": chunks.packed(self._frames, "<i4"),
                "seconds": chunks.packed(self._seconds, "<f8"),
                "masks": self._raw["masks"],
                "predicted": self._raw["predicted"],
                **self._index,
                "names": {str(number): name for number, name in self.folder.names.items()},
                "edits": [describe(edit) for edit in self.folder.edits],
                "undo": done > 0,
                "redo": redone > 0,
                "problem": self.problem,
                **drawings.read(self.path),
            }

    def rows(self, number: int) -> dict[str, Any] | None:
        """Return the rows of a chunk, or None if there is no such chunk."""
        with self._lock:
            return self._chunk(number).rows_document() if number < self._count() else None

    def masks(self, number: int) -> list[str] | None:
        """Return the masks of a chunk's rows, empty for added boxes; None if there are none."""
        with self._lock:
            if not self._raw["masks"] or number >= self._count():
                return None
            tracks, edited = self.folder.original, self.folder.edited
            starts: list[int] = self._raw["starts"]
            first, last = self._rows_of(number)
            texts = []
            for origin in edited.origin[first:last].tolist():
                if origin < 0:
                    texts.append("")
                    continue
                position = int(np.searchsorted(self._frames, tracks.frame[origin]))
                where = bisect_right(starts, position) - 1
                texts.append(self._original_chunk(where).get((position, int(tracks.id[origin])), ""))
            return texts

    def _read_masks(self, number: int) -> dict[tuple[int, int], str]:
        """Return the masks of a chunk as tracked, by position and id."""
        rows = from_script((self._source / f"rows-{number}.js").read_text(encoding="ascii"))
        masks = from_script((self._source / f"masks-{number}.js").read_text(encoding="ascii"))
        counts = np.diff(chunks.unpacked(rows["offsets"], "<u4").astype(int))
        positions = np.repeat(rows["start"] + np.arange(len(counts)), counts).tolist()
        ids = chunks.unpacked(rows["id"], "<i4").tolist()
        return dict(zip(zip(positions, ids, strict=True), masks, strict=True))

    def edit(self, document: object) -> dict[str, Any]:
        """Do one step of `scalor.edits`, given as for JSON. Raise InputError if it is not possible."""
        step = step_from_dict(document)
        self._stop.set()  # what is being made again would be out of date
        with self._writing, self._lock:
            self._stop.clear()
            before = self.folder.edits
            entry = self.folder.do(step, write=False)
            after = self.folder.edits
            self._index = None
            self._places.clear()
            self.version += 1
            self._write_later()
            named = {Undo: before[-1:], Redo: after[-1:]}.get(type(step), [])
            word = f"{describe(entry.step)}: " if named else ""
            return {"done": word + describe(named[0] if named else entry.step), "version": self.version}

    def places(self, kind: str) -> list[dict[str, Any]]:
        """Return the places to look at, "crossings" or "doubts", in order of time."""
        with self._lock:
            if kind not in self._places:
                tracks, frames = self.folder.tracks, self._frames.tolist()
                if kind == "crossings":
                    found = [
                        {"frame": one.frame, "ids": [one.a, one.b], "text": f"tracks {one.a} and {one.b} are near"}
                        for one in crossings(tracks)
                    ]
                else:
                    found = [
                        {"frame": one.first, "ids": [one.id], "text": one.sentence} for one in doubtful_places(tracks)
                    ]
                self._places[kind] = [{**one, "position": bisect_left(frames, one["frame"])} for one in found]
            return self._places[kind]

    def close(self) -> None:
        """Make the files of the folder again if they lag behind the edits."""
        if self._timer is not None:
            self._timer.cancel()
        self._write()

    def _go_on(self) -> None:
        """Raise Interrupted if a further edit has come."""
        if self._stop.is_set():
            raise Interrupted

    def _write_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(self.write_after, self._write)
        self._timer.daemon = True
        self._timer.start()

    def _write(self) -> None:
        """Make the files of the folder again if they lag behind, unless an edit comes meanwhile."""
        with self._writing:
            try:
                if self.folder.stale:
                    copy(self.folder).write(tick=self._go_on)
                self.problem = None
            except Interrupted:
                self._write_later()  # for the case that the edit is refused
            except (InputError, OSError) as error:
                self.problem = str(error)

    def _count(self) -> int:
        """Return the number of chunks."""
        return -(-len(self._frames) // chunks.CHUNK_FRAMES)

    def _rows_of(self, number: int) -> tuple[int, int]:
        """Return the first row of a chunk, and one after the last."""
        frames = self._frames[number * chunks.CHUNK_FRAMES : (number + 1) * chunks.CHUNK_FRAMES]
        first, last = np.searchsorted(self.folder.tracks.frame, [frames[0], frames[-1] + 1])
        return int(first), int(last)

    def _chunk(self, number: int) -> Chunk:
        start = number * chunks.CHUNK_FRAMES
        frames = self._frames[start : start + chunks.CHUNK_FRAMES]
        tracks = self.folder.tracks
        first, last = self._rows_of(number)
        offsets = np.searchsorted(tracks.frame[first:last], np.append(frames, frames[-1] + 1))
        return Chunk(
            start=start,
            offsets=offsets,
            id=tracks.id[first:last],
            box=tracks.box[first:last],
            confidence=tracks.confidence[first:last],
            discovered=tracks.discovered[first:last],
        )


def _redo_depth(steps: list[Any]) -> int:
    """Return how many edits a redo could repeat."""
    depth = 0
    for step in steps:
        depth = depth + 1 if isinstance(step, Undo) else max(depth - 1, 0) if isinstance(step, Redo) else 0
    return depth
