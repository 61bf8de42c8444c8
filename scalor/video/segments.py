"""Films in segments: files of a fixed number of frames each, joined at the end without encoding them again.

A run that is stopped loses one segment at most, and the joined film does not depend on where it was stopped. A segment
is as long as the usual distance between key frames, so the film is hardly larger than one in a single piece.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from jaxtyping import UInt8

SEGMENT = 250
"""Frames of a segment."""


class Writer(Protocol):
    """A writer of a film, as a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, frame: UInt8[np.ndarray, "H W 3"]) -> None:
        """Append a frame."""
        ...


class SegmentedFilm:
    """Writer of a film in segments.

    Parameters
    ----------
    path : Path
        The film. It appears when the block ends without an error.
    segments : Path
        Folder for the segments. It is created if necessary, and keeps them if the block fails.
    make : callable
        Returns the writer of a film with this path.
    complete : int
        Number of segments that are complete already; the first frame comes after them.
    """

    def __init__(self, path: Path, segments: Path, make: Callable[[Path], Writer], complete: int = 0) -> None:
        self.path, self.folder, self.make = path, segments, make
        self.complete, self._frames = complete, 0
        self._open = ExitStack()

    def segment(self, number: int) -> Path:
        """Return the file of a segment."""
        return self.folder / f"{self.path.stem}-{number:05}.mp4"

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        return self

    def write(self, frame: UInt8[np.ndarray, "H W 3"]) -> None:
        """Append a frame."""
        if self._frames == 0:
            self._writer = self._open.enter_context(self.make(self.segment(self.complete)))
        self._writer.write(frame)
        self._frames += 1
        if self._frames == SEGMENT:
            self._close()

    def _close(self) -> None:
        """Complete the current segment."""
        self._open.close()
        self.complete, self._frames = self.complete + 1, 0

    def save(self) -> int:
        """Write the last segment to the disk; return the number of complete segments, to resume here.

        Call it at the end of a segment only.
        """
        assert self._frames == 0
        if self.complete:
            with open(self.segment(self.complete - 1), "rb") as file:
                os.fsync(file.fileno())
        return self.complete

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._open.__exit__(kind, error, trace)
            return
        if self._frames:
            self._close()
        join_films([self.segment(number) for number in range(self.complete)], self.path)


def join_films(parts: Sequence[Path], path: Path) -> None:
    """Join films of one size, rate and encoder to one film, without encoding them again. The parts are deleted."""
    if len(parts) == 1:
        os.replace(parts[0], path)
        return
    import av

    with av.open(path, "w", format="mp4", options={"movflags": "faststart"}) as output:
        stream, start = None, 0
        for part in parts:
            with av.open(part) as film:
                source = film.streams.video[0]
                if stream is None:
                    stream = output.add_stream_from_template(source)
                assert source.time_base is not None
                assert source.average_rate is not None
                assert source.duration is not None
                for packet in film.demux(source):
                    if packet.pts is None or packet.dts is None:  # the end
                        continue
                    packet.pts, packet.dts = packet.pts + start, packet.dts + start
                    packet.stream = stream
                    output.mux(packet)
                start += round(source.frames / source.average_rate / source.time_base)
            part.unlink()
