"""Video files of every kind that PyAV decodes: .mp4, .mov, .mkv, .webm, .avi, .gif and many more.

Frames are turned as the file says (phones film portrait lying on their side), transparent ones are laid over black,
and more than 8 bits become 8 by ffmpeg's own conversion. Time is that of the presentation timestamps, which need not
be regular.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream
from jaxtyping import Int32

from scalor.errors import InputError
from scalor.video.pixels import over_black
from scalor.video.selection import TINY, Selection
from scalor.video.sources import Frame, Picture, check_size, no_frames

STEPS_BACK = (0, 2, 10, 60)
"""Seconds. Some formats find a key frame only near a time, not before it: earlier and earlier times are tried."""
UNTIL_KEY = 600
"""Frames within which a key frame must come after a jump; where none does, the video is decoded from its start."""


class Container:
    """A video file. `fps` serves only where the file does not tell its own."""

    def __init__(self, path: Path, fps: float) -> None:
        self.name = str(path)
        try:
            with self._opened() as (container, stream):
                head = next(_decoded(container, stream), None)
                if head is None:
                    raise no_frames(self.name)
                height, width, _ = _to_picture(head, VideoReformatter()).shape
                self.size = (height, width)
                self._coded_size = (head.height, head.width)
                # .avi has no presentation times, so where frames are decoded in another order they must be counted.
                shuffled = container.format.name == "avi" and stream.codec_context.has_b_frames
                self._zero = None if shuffled else head.pts
                self._tick = float(stream.time_base or 0)
                rate = stream.guessed_rate if self._zero is None else stream.average_rate
                self.fps = float(rate or fps)
                self.count = stream.frames or _expected_frames(container, stream, self.fps)
                self.counted = stream.frames > 0
        except av.FFmpegError as error:
            raise InputError(
                f"{path} cannot be decoded as a video ({error.strerror}): it may be cut short or not a video; "
                "copy or export it again."
            ) from error

    def frames(self, selection: Selection) -> Iterator[Frame]:
        first, reached, seconds = None, -1, 0.0
        reformatter = VideoReformatter()
        try:
            for reached, frame in self._numbered_from(selection.start or 0):
                check_size((frame.height, frame.width), self._coded_size, reached, self.name)
                seconds = self._seconds(frame, reached)
                if selection.is_after(seconds):
                    return
                if selection.is_before(seconds):
                    continue
                first = reached if first is None else first
                if (reached - first) % selection.stride == 0:
                    yield Frame(_to_picture(frame, reformatter), reached, seconds)
        except av.FFmpegError as error:
            raise InputError(
                f"frame {reached + 1} of {self.name} cannot be decoded ({error.strerror}): choose an end of "
                f"{math.floor(seconds * 100) / 100} seconds, or copy or export the file again."
            ) from error

    def near(self, times: Iterable[float], selection: Selection, run: int = 1) -> Iterator[Picture]:
        """Key frames where there are enough of them, since nothing else need be decoded to see one, and what follows.

        Ends early where the file cannot be searched or breaks.
        """
        now, frames = -math.inf, None
        reformatter = VideoReformatter()
        with self._opened() as (container, stream), suppress(av.FFmpegError):
            for time in times:
                key = self._key_near(container, stream, time)
                if key is None:
                    return
                target = time if selection.is_before(key) or selection.is_after(key) or key <= now else key
                if frames is None or key > now:
                    frames = self._from(target)
                found = dropwhile(lambda frame: self._seconds(frame, 0) < target - TINY, frames)  # noqa: B023
                for _ in range(run):
                    frame = next(found, None)
                    if frame is None or (frame.height, frame.width) != self._coded_size:
                        return
                    now = self._seconds(frame, 0)
                    yield _to_picture(frame, reformatter)

    @contextmanager
    def _opened(self) -> Iterator[tuple[InputContainer, VideoStream]]:
        # "file:" since a name may hold a colon; and a title in an unknown encoding is no reason to fail.
        with av.open(f"file:{self.name}", metadata_errors="replace") as container:
            stream = container.streams.best("video")
            if container.format.name == "tty":  # ffmpeg would draw the letters
                raise InputError(f"{self.name} cannot be decoded as a video (it is text): give a video file.")
            if not isinstance(stream, VideoStream):
                raise InputError(f"{self.name} holds no pictures, only other streams: give a file with a video stream.")
            # No threads over frames: with them the frames just before a break in the file are lost, and the error too.
            stream.thread_type = "SLICE"
            yield container, stream

    def _seconds(self, frame: VideoFrame, index: int) -> float:
        if frame.pts is None or self._zero is None:
            return index / self.fps
        return (frame.pts - self._zero) * self._tick

    def _stamp(self, seconds: float) -> int:
        return (self._zero or 0) + round(seconds / self._tick)

    def _from(self, start: float) -> Iterator[VideoFrame]:
        """Frames from a key frame at or before `start` on, or from the first one where there is no way to find it."""
        for back in STEPS_BACK:
            if self._zero is None or start <= back:
                break
            with self._opened() as (container, stream):
                frames, head = _decoded(container, stream), None
                with suppress(av.FFmpegError):
                    container.seek(self._stamp(start - back), stream=stream)
                    head = next((frame for frame in islice(frames, UNTIL_KEY) if frame.key_frame), None)
                if head is not None and head.pts is not None and head.pts <= self._stamp(start):
                    yield head
                    yield from frames
                    return
        with self._opened() as (container, stream):
            yield from _decoded(container, stream)

    def _numbered_from(self, start: float) -> Iterator[tuple[int, VideoFrame]]:
        frames = self._from(start)
        head = next(frames, None)
        if head is not None:
            before = 0 if self._zero is None or head.pts in (None, self._zero) else self._count_before(head.pts)
            yield from enumerate(chain([head], frames), before)

    def _count_before(self, stamp: int) -> int:
        """How many frames are shown before the time stamp. Nothing is decoded to know it."""
        with self._opened() as (container, stream):
            count = 0
            index = getattr(stream, "index_entries", ())  # older versions of PyAV do not show it
            if stream.frames and len(index) == stream.frames:
                # The index is whole (.mp4, .avi), so only the packets since the last key frame need be looked at.
                container.seek(stamp, stream=stream)
                head = next(container.demux(stream))
                count = sum(entry.timestamp < head.dts for entry in index) if head.dts is not None else 0
                container.seek(stamp, stream=stream)
            for packet in container.demux(stream):
                if packet.dts is not None and packet.dts > stamp:
                    break
                shown = packet.dts if packet.pts is None else packet.pts
                count += shown is not None and shown < stamp and not packet.is_discard
            return count

    def _key_near(self, container: InputContainer, stream: VideoStream, time: float) -> float | None:
        """When a key frame before the time is shown, or near it where the format does not know better."""
        if self._zero is None:
            return None
        container.seek(self._stamp(time), stream=stream)
        packets = islice(container.demux(stream), UNTIL_KEY)
        stamps = (packet.pts for packet in packets if packet.is_keyframe and packet.pts is not None)
        stamp = next(stamps, None)
        return None if stamp is None else (stamp - self._zero) * self._tick


def _expected_frames(container: InputContainer, stream: VideoStream, fps: float) -> int | None:
    if stream.duration and stream.time_base:
        return round(stream.duration * stream.time_base * fps)
    return round(container.duration / av.time_base * fps) if container.duration else None


def _decoded(container: InputContainer, stream: VideoStream) -> Iterator[VideoFrame]:
    """Frames in the order in which they are shown. Where the file breaks, FFmpegError after the last good one."""
    begun = False
    try:
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except av.FFmpegError:
                # A recording may begin, and a jump end, amid frames that need others before them.
                if begun:
                    raise
                continue
            begun = begun or bool(frames)
            yield from frames
    except av.FFmpegError:
        with suppress(av.FFmpegError):
            yield from stream.codec_context.decode(None)
        raise


def _to_picture(frame: VideoFrame, reformatter: VideoReformatter) -> Picture:
    # A reformatter for each frame would take longer than decoding it.
    if any(component.is_alpha for component in frame.format.components):
        picture = over_black(reformatter.reformat(frame, format="rgba").to_ndarray())
    else:
        picture = reformatter.reformat(frame, format="rgb24").to_ndarray()
    matrix: Any = frame.side_data.get("DISPLAYMATRIX")
    return picture if matrix is None else turned(picture, np.frombuffer(bytes(matrix), np.int32).reshape(3, 3))


def turned(picture: Picture, matrix: Int32[np.ndarray, "3 3"]) -> Picture:
    """The picture as it is shown: turned by right angles and mirrored as ffmpeg's display matrix says.

    The pixel at (x, y) goes to x' = x m00 + y m10, y' = x m01 + y m11, up to a shift.
    """
    (m00, m01), (m10, m11) = matrix[:2, :2].astype(float)
    if abs(m01) > abs(m00):
        picture, across, down = picture.transpose(1, 0, 2), m10, m01
    else:
        across, down = m00, m11
    return np.ascontiguousarray(picture[:: -1 if down < 0 else 1, :: -1 if across < 0 else 1])
