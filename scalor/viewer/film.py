"""The video that the viewer's page plays: small, with a key frame every half second, and no boxes burnt in.

All common browsers play H.264. Frames are exact: there are no reordered frames, so the frame at
position k is shown from k / rate on, and a seek to its middle shows it.
"""

from contextlib import ExitStack
from fractions import Fraction
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from jaxtyping import UInt8

from scalor.errors import without_extra
from scalor.video.encoding import SMPTE170M, encoding

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.stream import VideoStream

LARGEST = 720
"""Largest longer side in pixels: larger videos are reduced."""
SMALLEST = 320
"""Smaller videos are enlarged by a whole factor to about this longer side, because H.264 blurs small pictures."""
KEY_FRAME_EVERY = 15
"""Number of frames between key frames: a seek decodes at most this many."""


def film_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return the height and width of the film of a video of this height and width. Both are even."""
    longer = max(size)
    scale = min(1.0, LARGEST / longer) if longer >= SMALLEST else ceil(SMALLEST / longer)
    height, width = (max(2, 2 * round(side * scale / 2)) for side in size)
    return height, width


def film_rate(fps: float) -> Fraction:
    """Return the exact number of frames per second of the film."""
    return Fraction(float(fps)).limit_denominator(1001)


class FilmWriter:
    """Writer of the page's video, frame by frame."""

    def __init__(self, path: Path, rate: Fraction) -> None:
        self.path = path
        self.rate = rate
        self.size = (0, 0)
        """Height and width, known after the first frame."""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def write(self, picture: UInt8[np.ndarray, "H W 3"]) -> None:
        """Append a frame."""
        try:
            import av
        except ImportError as error:
            raise without_extra("writing .mp4", "av") from error

        with encoding(self.path):
            if self.size == (0, 0):
                self.size = film_size((picture.shape[0], picture.shape[1]))
                self._container, self._stream = self._open()
            height, width = self.size
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            sharp = "POINT" if height > picture.shape[0] + 1 else "BICUBIC"
            self._container.mux(self._stream.encode(frame.reformat(width, height, "yuv420p", interpolation=sharp)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _open(self) -> "tuple[OutputContainer, VideoStream]":
        import av

        output = av.open(self.path, "w", format="mp4", options={"movflags": "faststart"})
        container = self._stack.enter_context(output)
        # Without mbtree, as in `VideoWriter`, so that the same pictures give the same bytes.
        options = {"crf": "28", "preset": "veryfast", "g": str(KEY_FRAME_EVERY), "bf": "0", "x264-params": "mbtree=0"}
        height, width = self.size
        stream = container.add_stream("libx264", self.rate, options, pix_fmt="yuv420p", height=height, width=width)
        stream.codec_context.colorspace = SMPTE170M
        self._stack.push(self._flush)
        return container, stream

    def _flush(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Write the frames that the encoder still holds."""
        if error is None:
            with encoding(self.path):
                self._container.mux(self._stream.encode(None))
