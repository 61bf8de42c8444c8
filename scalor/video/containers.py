"""Decode video files with PyAV: .mp4, .mov, .mkv, .webm, .avi, .gif and many more.

Frames are rotated and mirrored as the file's display matrix says, because phones store portrait videos sideways.
Transparent frames are composited over black. Frames of more than 8 bits are converted to 8 bits by ffmpeg. Times are
presentation timestamps, which need not be regular.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream
from jaxtyping import Int32, UInt8

from scalor.errors import InputError
from scalor.video.completeness import broken_frame, what_is_missing
from scalor.video.decoding import check_frame_size, decoding, decoding_error
from scalor.video.pixels import Picture, over_black
from scalor.video.sources import TIME_TOLERANCE_S, Frame, Selection, check_size, no_frames

SEEK_BACK_SECONDS = (0, 2, 10, 60)
"""Seconds before the wanted time to seek to, tried in this order.

Some formats find a key frame only near the given time, not before it, so earlier times are tried.
"""
PLAYLIST_MARKS = (b"ffconcat", b"#EXTM3U")
"""Beginnings of text files that name other files. ffmpeg would open these."""
LONGEST_PLAYLIST_MARK = 8
CONTAINERS = (
    *("mov", "matroska", "avi", "asf", "flv", "gif", "apng", "mpegts", "mpeg", "ogg", "mxf", "nut", "rm", "wtv", "nsv"),
    *("ivf", "dv", "yuv4mpegpipe", "amv", "dhav", "film_cpk", "flic", "swf", "bink", "smk", "tty"),
)
"""ffmpeg's names for the containers that are read. "tty" is text, which gets an error of its own."""
RAW_STREAMS = (
    *("h261", "h263", "h264", "hevc", "vvc", "av1", "obu", "avs2", "avs3", "cavsvideo", "dirac", "dnxhd", "evc"),
    *("m4v", "mjpeg", "mjpeg_2000", "mpegvideo", "rawvideo", "vc1"),
)
"""ffmpeg's names for compressed pictures without a container."""
OPTIONS = {"protocol_whitelist": "file", "format_whitelist": ",".join((*CONTAINERS, *RAW_STREAMS))}
"""What ffmpeg may open: files of these formats, which name no other files and no addresses on a network."""
RAW_SUFFIXES = (
    ".h263",
    ".h264",
    ".264",
    ".h265",
    ".hevc",
    ".m4v",
    ".mjpg",
    ".mjpeg",
    ".m1v",
    ".m2v",
    ".mpg",
    ".mpeg",
    ".yuv",
)
CONSTANT_RATES = ("matroska,webm", "flv")
"""ffmpeg's names for containers that state a duration and no number of frames."""
KIND = "a video", "it may be cut short or not a video; copy or export it again"
MAX_FRAMES_TO_KEY = 600
"""Largest number of frames or packets read after a seek in search of a key frame.

If every seek fails to find one, the video is decoded from its start.
"""


class Container:
    """A video file as a `Source`. `fps` is used only if the file does not state its frame rate."""

    def __init__(self, path: Path, fps: float) -> None:
        self.name = str(path)
        with decoding(self.name, *KIND), self._opened() as (container, stream):
            head = next(_decoded(container, stream), None)
            if head is None:
                raise no_frames(self.name)
            height, width, _ = _to_picture(head, VideoReformatter()).shape
            self.size = (height, width)
            self._coded_size = (head.height, head.width)
            # .avi has no presentation timestamps. If frames are decoded in another order than they are shown
            # (B-frames), times are computed by counting frames.
            shuffled = container.format.name == "avi" and stream.codec_context.has_b_frames
            self._zero = None if shuffled else head.pts
            self._tick = float(stream.time_base or 0)
            rate = stream.guessed_rate if self._zero is None else stream.average_rate
            self.fps = float(rate or fps)
            self.count, self.counted = stream.frames or None, stream.frames > 0
            if not stream.frames:
                self.count, self.counted = _expected_frames(container, stream, self.fps)
            self._format = container.format.name

    @cached_property
    def lacking(self) -> str | None:
        """What the file lacks, in words, if its structure shows that it is cut short or damaged."""
        path = Path(self.name)
        if self._format in RAW_STREAMS and path.suffix.lower() not in RAW_SUFFIXES:
            return "its beginning, which says how long it is, is missing"
        return what_is_missing(path) or (broken_frame(path) if self._format == "gif" else None)

    def frames(self, selection: Selection) -> Iterator[Frame]:
        """Decode the selected frames in order."""
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
        except Exception as error:
            end = math.floor(seconds * 100) / 100
            raise decoding_error(
                f"frame {reached + 1} of {self.name}",
                "a picture",
                error,
                f"choose an end of {end} seconds, or copy or export the file again",
            ) from error

    def near(self, times: Iterable[float], selection: Selection, run: int = 1) -> Iterator[Picture]:
        """Yield `run` consecutive pictures from near each of `times`, as described in `Source.near`.

        Each run starts at the key frame found near its time, if that lies in the selection and after the previous run,
        because a key frame can be decoded without any other frame. The iterator ends early if the file cannot be
        searched, cannot be decoded for whatever reason, or changes its picture size.
        """
        now, frames = -math.inf, None
        reformatter = VideoReformatter()
        with self._opened() as (container, stream), suppress(Exception):
            for time in times:
                key = self._key_near(container, stream, time)
                if key is None:
                    return
                target = time if selection.is_before(key) or selection.is_after(key) or key <= now else key
                if frames is None or key > now:
                    frames = self._from(target)
                found = dropwhile(lambda frame: self._seconds(frame, 0) < target - TIME_TOLERANCE_S, frames)  # noqa: B023
                for _ in range(run):
                    frame = next(found, None)
                    if frame is None or (frame.height, frame.width) != self._coded_size:
                        return
                    now = self._seconds(frame, 0)
                    yield _to_picture(frame, reformatter)

    @contextmanager
    def _opened(self) -> Iterator[tuple[InputContainer, VideoStream]]:
        with open(self.name, "rb") as file:
            if file.read(LONGEST_PLAYLIST_MARK).startswith(PLAYLIST_MARKS):
                raise InputError(f"{self.name} is a list of files, not a video: give one of the files it names.")
        # "file:" because a file name may contain a colon. A title in an unknown encoding must not cause a failure.
        with av.open(f"file:{self.name}", options=dict(OPTIONS), metadata_errors="replace") as container:
            stream = container.streams.best("video")
            if container.format.name == "tty":  # ffmpeg renders text files as pictures of their text
                raise InputError(f"{self.name} cannot be decoded as a video (it is text): give a video file.")
            if not isinstance(stream, VideoStream):
                raise InputError(f"{self.name} holds no pictures, only other streams: give a file with a video stream.")
            context = stream.codec_context
            if context is not None and context.width and context.height:  # some files tell only with the first frame
                check_frame_size((context.height, context.width), self.name)
            # Slice threads only. With frame threads, the last frames before a broken part of the file and the error
            # itself are lost.
            stream.thread_type = "SLICE"
            yield container, stream

    def _seconds(self, frame: VideoFrame, index: int) -> float:
        """Return the time of a frame in seconds from the first frame."""
        if frame.pts is None or self._zero is None:
            return index / self.fps
        return (frame.pts - self._zero) * self._tick

    def _stamp(self, seconds: float) -> int:
        """Return the presentation timestamp of a time in seconds from the first frame."""
        return (self._zero or 0) + round(seconds / self._tick)

    def _from(self, start: float) -> Iterator[VideoFrame]:
        """Yield frames from a key frame at or before `start` seconds on, or from the first frame if none is found."""
        for back in SEEK_BACK_SECONDS:
            if self._zero is None or start <= back:
                break
            with self._opened() as (container, stream):
                frames, head = _decoded(container, stream), None
                with suppress(av.FFmpegError):
                    container.seek(self._stamp(start - back), stream=stream)
                    head = next((frame for frame in islice(frames, MAX_FRAMES_TO_KEY) if frame.key_frame), None)
                if head is not None and head.pts is not None and head.pts <= self._stamp(start):
                    yield head
                    yield from frames
                    return
        with self._opened() as (container, stream):
            yield from _decoded(container, stream)

    def _numbered_from(self, start: float) -> Iterator[tuple[int, VideoFrame]]:
        """Yield the frames of `_from` with their numbers in the video."""
        frames = self._from(start)
        head = next(frames, None)
        if head is not None:
            before = 0 if self._zero is None or head.pts in (None, self._zero) else self._count_before(head.pts)
            yield from enumerate(chain([head], frames), before)

    def _count_before(self, stamp: int) -> int:
        """Return the number of frames shown before the timestamp, without decoding any."""
        with self._opened() as (container, stream):
            count = 0
            index = getattr(stream, "index_entries", ())  # older versions of PyAV lack it
            if stream.frames and len(index) == stream.frames:
                # The index lists every frame (.mp4, .avi), so only the packets since the last key frame must be read.
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
        """Return the time in seconds of the key frame found by seeking to `time`, or None if none is found.

        It lies at or before `time`, or only near it in formats that cannot seek more exactly.
        """
        if self._zero is None:
            return None
        container.seek(self._stamp(time), stream=stream)
        packets = islice(container.demux(stream), MAX_FRAMES_TO_KEY)
        stamps = (packet.pts for packet in packets if packet.is_keyframe and packet.pts is not None)
        stamp = next(stamps, None)
        return None if stamp is None else (stamp - self._zero) * self._tick


def _expected_frames(container: InputContainer, stream: VideoStream, fps: float) -> tuple[int | None, bool]:
    """Estimate the number of frames from the duration of the stream or the file; None if neither is known.

    Return also whether it is exact: if the file states a constant rate, and the duration is the stream's alone.
    """
    if stream.duration and stream.time_base:
        return round(stream.duration * stream.time_base * fps), False
    if not container.duration:
        return None, False
    constant = stream.average_rate == stream.base_rate and container.format.name in CONSTANT_RATES
    return round(container.duration / av.time_base * fps), constant and len(container.streams) == 1


def _decoded(container: InputContainer, stream: VideoStream) -> Iterator[VideoFrame]:
    """Yield frames in display order; if the file is broken, raise FFmpegError after the last good frame."""
    begun = False
    try:
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except av.FFmpegError:
                # At the start of a recording and after a seek, frames may refer to earlier frames that are missing.
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
    # The reformatter is shared, because creating one for each frame would take longer than decoding it.
    if any(component.is_alpha for component in frame.format.components):
        picture = over_black(reformatter.reformat(frame, format="rgba").to_ndarray())
    else:
        picture = reformatter.reformat(frame, format="rgb24").to_ndarray()
    matrix: Any = frame.side_data.get("DISPLAYMATRIX")
    return picture if matrix is None else turned(picture, np.frombuffer(bytes(matrix), np.int32).reshape(3, 3))


def turned(picture: Picture, matrix: Int32[np.ndarray, "3 3"]) -> UInt8[np.ndarray, "h w 3"]:
    """Return the picture as it is shown: rotated by right angles and mirrored as ffmpeg's display matrix says.

    The pixel at (x, y) moves to x' = x m00 + y m10, y' = x m01 + y m11, up to a translation.
    """
    (m00, m01), (m10, m11) = matrix[:2, :2].astype(float)
    if abs(m01) > abs(m00):
        picture, across, down = picture.transpose(1, 0, 2), m10, m01
    else:
        across, down = m00, m11
    return np.ascontiguousarray(picture[:: -1 if down < 0 else 1, :: -1 if across < 0 else 1])
