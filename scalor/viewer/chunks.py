"""Data of the viewer's page: chunks of rows by frame, and an index of all tracks.

The page is opened as a file, where a browser allows neither `fetch` nor modules. Every piece of data is therefore a
classic script, `scalorData(name, value)`. Numbers are little-endian arrays in base64.
"""

import json
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

VERSION = 1
"""Version of the data format, which the page checks."""
CHUNK_FRAMES = 512
"""Largest number of frames in a chunk."""
CHUNK_ROWS = 2**15
"""Number of rows after which a chunk is closed."""


@dataclass(frozen=True)
class Chunk:
    """Rows of successive frames, ordered by frame.

    Ids count from 1, as in result files.
    """

    start: int
    """Position of the first frame, counted in tracked frames from 0."""
    offsets: Int[np.ndarray, " F_plus_1"]
    """For each frame, its first row; then the number of rows."""
    id: Int[np.ndarray, " N"]
    box: Float[np.ndarray, "N 4"]
    """x0, y0, x1, y1 in pixels of the original video."""
    confidence: Float[np.ndarray, " N"]
    discovered: Bool[np.ndarray, " N"]
    masks: tuple[str, ...] | None = None
    """Run lengths of each row's mask, in COCO's text format, or None if there are no masks."""

    @property
    def frames(self) -> int:
        """Number of frames in the chunk."""
        return len(self.offsets) - 1

    @property
    def position(self) -> Int[np.ndarray, " N"]:
        """Position of each row's frame."""
        position: np.ndarray = np.repeat(self.start + np.arange(self.frames), np.diff(self.offsets))
        return position

    def rows_document(self) -> dict[str, Any]:
        """Return the rows as the page reads them."""
        return {
            "start": self.start,
            "offsets": packed(self.offsets, "<u4"),
            "id": packed(self.id, "<i4"),
            "box": packed(self.box, "<f4"),
            "confidence": packed(self.confidence, "<f4"),
            "discovered": packed(self.discovered, "u1"),
        }


@dataclass(slots=True)
class TrackSpan:
    """Summary of one track. It grows with every chunk."""

    number: int
    spans: "array[int]" = field(default_factory=lambda: array("I"))
    """Position of the first and of the last frame of each stretch without a gap, one after the other."""
    rows: int = 0
    confidence: float = 0.0
    """Sum over rows."""
    length: float = 0.0
    """Length of the path in pixels."""
    end: tuple[float, float] = (0.0, 0.0)
    """Centre of the last box."""


class TrackIndex:
    """Summaries of all tracks and the number of objects in each frame, from chunks in time order."""

    def __init__(self) -> None:
        self._tracks: dict[int, TrackSpan] = {}
        self._counts = array("I")
        self._starts = array("I")

    def add(self, chunk: Chunk) -> None:
        """Add the next chunk."""
        self._starts.append(chunk.start)
        self._counts.extend(np.diff(chunk.offsets).tolist())
        if not len(chunk.id):
            return
        order = np.argsort(chunk.id, kind="stable")
        ids, position = chunk.id[order], chunk.position[order]
        centre = (chunk.box[order, :2] + chunk.box[order, 2:]) / 2
        confidence = chunk.confidence[order]
        for rows in np.split(np.arange(len(ids)), np.flatnonzero(np.diff(ids)) + 1):
            self._extend(int(ids[rows[0]]), position[rows], centre[rows], confidence[rows])

    def _extend(self, number: int, position: np.ndarray, centre: np.ndarray, confidence: np.ndarray) -> None:
        """Add rows of one track, in time order."""
        track = self._tracks.get(number)
        if track is None:
            track = self._tracks[number] = TrackSpan(number, end=(float(centre[0, 0]), float(centre[0, 1])))
        path = np.concatenate([[track.end], centre])
        track.length += float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
        track.rows += len(position)
        track.confidence += float(confidence.sum())
        track.end = (float(centre[-1, 0]), float(centre[-1, 1]))
        gaps = np.flatnonzero(np.diff(position) > 1)
        spans = np.stack([position[np.append(0, gaps + 1)], position[np.append(gaps, len(position) - 1)]], axis=1)
        if track.spans and spans[0, 0] <= track.spans[-1] + 1:
            track.spans.pop()
            track.spans.extend(spans.ravel()[1:].tolist())
        else:
            track.spans.extend(spans.ravel().tolist())

    def document(self) -> dict[str, Any]:
        """Return the index as the page reads it."""
        tracks = sorted(self._tracks.values(), key=lambda track: (track.spans[0], track.number))
        return {
            "starts": list(self._starts),
            "counts": packed(np.array(self._counts), "<u4"),
            "tracks": {
                "id": [track.number for track in tracks],
                "spans": [track.spans.tolist() for track in tracks],
                "rows": [track.rows for track in tracks],
                "confidence": [round(track.confidence / track.rows, 4) for track in tracks],
                "length": [round(track.length, 1) for track in tracks],
            },
        }


def packed(values: np.ndarray | Iterable[float], kind: str) -> str:
    """Return numbers as base64 of an array of this numpy type."""
    return b64encode(np.ascontiguousarray(np.asarray(values), kind).tobytes()).decode("ascii")


def unpacked(text: str, kind: str) -> np.ndarray:
    """Return the numbers in a text that `packed` returned for this numpy type."""
    return np.frombuffer(b64decode(text), kind)


def script(name: str, value: Mapping[str, Any] | list[str]) -> str:
    """Return a piece of data as a classic script."""
    return f"scalorData({json.dumps(name)},{json.dumps(value, separators=(',', ':'))});\n"


def from_script(text: str) -> Any:
    """Return the value in a text that `script` returned. It is parsed as JSON, never run."""
    return json.loads(text[text.index(",") + 1 : text.rindex(")")])
