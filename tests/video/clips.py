"""Small videos for the tests, drawn and written through the real codecs."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np


def movie(count: int = 8, height: int = 48, width: int = 64) -> np.ndarray:
    """A bright square moving over a soft slope, in uint8 [T, H, W, 3]. No two of sixty frames are the same."""
    y, x = np.mgrid[:height, :width]
    frames = np.stack([np.stack([60 + x, 80 + y, 0 * x + 100], axis=-1)] * count).astype(np.uint8)
    for t, frame in enumerate(frames):
        row, left = divmod(4 * t, width - 12)
        frame[10 + 6 * row : 22 + 6 * row, left : left + 12] = (240, 200, 40)
    return frames


def write_container(
    path: Path,
    frames: np.ndarray,
    codec: str = "libx264",
    pixels: str = "yuv420p",
    options: dict[str, str] | None = None,
    milliseconds: Sequence[int] | None = None,
    turned: float | None = None,
    **opening: Any,
) -> Path:
    """A video of ten frames per second, or with a time for each frame; `turned` by degrees when it is shown."""
    with av.open(str(path), "w", **opening) as container:
        stream = container.add_stream(codec, 10, options or {}, pix_fmt=pixels)
        stream.height, stream.width = frames.shape[1:3]
        if milliseconds is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if turned is not None:
            stream.set_display_rotation(turned)
        for t, picture in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(picture, format="rgba" if picture.shape[-1] == 4 else "rgb24")
            if milliseconds is not None:
                frame.pts, frame.time_base = milliseconds[t], Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(float) - b.astype(float)).mean())
