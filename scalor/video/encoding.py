"""Write video files: .mp4 (H.264) frame by frame, and .gif.

Files are written under a temporary name first, so a run that fails leaves no broken file under the final name.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from jaxtyping import UInt8

from scalor.errors import InputError, without_extra
from scalor.files import replacing

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.stream import VideoStream

GIF_TICKS = 100
"""Ticks per second: a gif counts time in hundredths of a second. Viewers slow down frames of less than two ticks."""
SMPTE170M = 6
"""Code of the RGB to YUV matrix that ffmpeg uses. It is written into the file so that players need not guess it."""
PALETTE_SAMPLES = 400_000
"""Number of pixels from which a gif's palette is computed: enough for the colour of every id, yet quick."""


def write_video(
    path: str | Path,
    frames: UInt8[np.ndarray, "T H W 3"] | Iterable[UInt8[np.ndarray, "H W 3"]],
    fps: int | float,
) -> None:
    """Write frames to an .mp4 (H.264) or to an endlessly looping .gif.

    Parameters
    ----------
    path : str or Path
        File name that ends in .mp4 or .gif.
    frames : array or iterable of arrays
        Frames as uint8 [H, W, 3], all of one size. An iterator is written to .mp4 frame by frame, without being held
        in memory. In an .mp4, odd heights and widths are padded by one row or column.
    fps : int or float
        Frames per second, at most 1000 for .mp4 and 50 for .gif.
    """
    path = Path(path)
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise InputError(f"path is {path}: give a file name that ends in .mp4 or .gif.")
    if path.suffix.lower() == ".gif":
        _write_gif(path, frames, fps)
        return
    with VideoWriter(path, fps) as writer:
        for frame in frames:
            writer.write(frame)


class VideoWriter:
    """Writer of an .mp4 file, frame by frame, in constant memory.

    The complete file appears when the block ends without an error. If the block fails, an earlier file of the same name
    is kept.

    Parameters
    ----------
    path : str or Path
        File name that ends in .mp4.
    fps : int or float
        Frames per second, at most 1000.

    Examples
    --------
    >>> with VideoWriter("seen.mp4", fps=25) as writer:
    ...     writer.write(frame)  # uint8 [H, W, 3]
    """

    def __init__(self, path: str | Path, fps: int | float) -> None:
        self.path = Path(path)
        if self.path.suffix.lower() != ".mp4":
            raise InputError(f"path is {path}: give a file name that ends in .mp4.")
        _check_rate(fps)
        self.fps = fps
        self.count = 0
        self._size: tuple[int, int] = (0, 0)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            import av  # noqa: F401 (so that a missing package raises before any work is done)
        except ImportError as error:
            raise without_extra("writing .mp4", "av") from error
        self._temporary = self._stack.enter_context(replacing(self.path))
        return self

    def write(self, frame: UInt8[np.ndarray, "H W 3"]) -> None:
        """Append a frame; all frames must have the size of the first one."""
        import av

        _check_frame(frame, self._size if self.count else None, self.count, self.path)
        with encoding(self.path):
            if not self.count:
                self._size = (frame.shape[0], frame.shape[1])
                self._container, self._stream = self._open()
            height, width = self._size
            if height % 2 or width % 2:
                frame = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
            self._container.mux(self._stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        self.count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self.count:
            empty = InputError(f"frames is empty: give at least one frame to write to {self.path}.")
            self._stack.__exit__(InputError, empty, None)
            raise empty
        self._stack.__exit__(kind, error, trace)

    def _open(self) -> "tuple[OutputContainer, VideoStream]":
        import av

        # faststart: a web page can play the file while it loads.
        output = av.open(self._temporary, "w", format="mp4", options={"movflags": "faststart"})
        container = self._stack.enter_context(output)
        # Quality 17 (lower is better; 23 is usual): thin coloured lines keep their colour.
        # Without mbtree, because x264 with it and B-frames writes other bytes each time (docs/log.md).
        options = {"crf": "17", "preset": "veryfast", "x264-params": "mbtree=0"}
        rate = Fraction(float(self.fps)).limit_denominator(1001)
        # yuv420p halves the height and width of the colour planes, so both must be even.
        height, width = self._size[0] + self._size[0] % 2, self._size[1] + self._size[1] % 2
        stream = container.add_stream("libx264", rate, options, pix_fmt="yuv420p", height=height, width=width)
        stream.codec_context.colorspace = SMPTE170M
        self._stack.push(self._flush)
        return container, stream

    def _flush(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Write the frames that the encoder still holds."""
        if error is None:
            with encoding(self.path):
                self._container.mux(self._stream.encode(None))


@contextmanager
def encoding(path: Path) -> Iterator[None]:
    """Convert errors of an encoder, which has no words for too little memory, to an InputError."""
    import av

    try:
        yield
    except av.FFmpegError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): free memory or disk space, or give smaller frames."
        ) from error


def _check_rate(fps: int | float) -> None:
    if not 0 < fps <= 1000:
        raise InputError(f"fps is {fps}: give frames per second above 0 and up to 1000.")


def _check_frame(frame: np.ndarray, size: tuple[int, int] | None, number: int, path: Path) -> None:
    """Raise InputError if the frame is not uint8 [H, W, 3] or differs from `size`."""
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        raise InputError(
            f"frame {number} for {path} is {frame.dtype} of shape {list(frame.shape)}: give uint8 [H, W, 3]."
        )
    if size is not None and frame.shape[:2] != size:
        raise InputError(
            f"frame {number} of {path} is {frame.shape[1]} x {frame.shape[0]} pixels and frame 0 is "
            f"{size[1]} x {size[0]}: bring all frames to one size."
        )


def _write_gif(path: Path, frames: Iterable[UInt8[np.ndarray, "H W 3"]], fps: int | float) -> None:
    try:
        from PIL import Image
    except ImportError as error:
        raise without_extra("writing .gif", "pillow") from error
    _check_rate(fps)
    if fps > GIF_TICKS / 2:
        raise InputError(f"fps is {fps}: a gif plays at most {GIF_TICKS // 2} frames per second; write .mp4 instead.")
    pictures: list[np.ndarray] = []
    for frame in frames:
        _check_frame(frame, pictures[0].shape[:2] if pictures else None, len(pictures), path)
        pictures.append(frame)
    if not pictures:
        raise InputError(f"frames is empty: give at least one frame to write to {path}.")
    # One palette for all frames and no dithering, because a still background must not flicker. "Maximum coverage"
    # keeps rare colours, so thin box lines keep their colour (median cut changes it by some 40 levels).
    # The k-means pass then fits the palette to the background.
    pixels = np.stack(pictures).reshape(-1, 3)
    if len(pixels) > PALETTE_SAMPLES:
        # Random pixels rather than every n-th: n may be a multiple of the width and sample a single column.
        pixels = pixels[np.random.default_rng(0).integers(len(pixels), size=PALETTE_SAMPLES)]
    palette = Image.fromarray(pixels[None]).quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1)
    images = [Image.fromarray(p).quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    ticks = np.round(np.arange(len(images) + 1) * GIF_TICKS / fps).astype(int)
    durations = [int(1000 / GIF_TICKS * d) for d in np.diff(ticks)]
    with replacing(path) as temporary:
        images[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=images[1:],
            duration=durations,
            loop=0,
            optimize=False,
        )
