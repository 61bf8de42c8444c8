"""Video files in and out: mp4, gif and other containers, folders of images, numpy arrays.

Reading is a stream of uint8 frames in constant memory (`iterate_frames`); `read_video` collects it. Files are
written under a temporary name first, so a run that fails leaves no broken file under the name asked for.
"""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float, UInt8

from scalor.errors import InputError
from scalor.files import replacing

CONTAINERS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".gif")
IMAGES = (".png", ".jpg", ".jpeg")
GIF_TICKS = 100
"""A gif counts time in hundredths of a second, and viewers slow down a frame shorter than two of them."""
SMPTE170M = 6
"""The RGB to YUV matrix ffmpeg converts with, written into the file so that players need not guess it."""
PALETTE_SAMPLES = 400_000
"""Pixels from which a gif's palette is computed: enough for every id's colour, little enough to be quick."""


def write_video(
    path: str | Path,
    frames: UInt8[np.ndarray, "T H W 3"] | Iterable[UInt8[np.ndarray, "H W 3"]],
    fps: int | float,
) -> None:
    """Write an .mp4 (H.264; odd sizes get one more row or column) or an endlessly looping .gif.

    An iterator of frames is written to .mp4 as it comes, without being held in memory.
    """
    path = Path(path)
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise InputError(f"path is {path}: give a file name that ends in .mp4 or .gif.")
    if not 0 < fps <= 1000:
        raise InputError(f"fps is {fps}: give frames per second above 0 and up to 1000.")
    stream = iter(frames)
    head = next(stream, None)
    if head is None:
        raise InputError("frames is empty: give at least one frame to write.")
    checked = _of_one_size(chain([head], stream), str(path))
    with replacing(path) as temporary:
        if path.suffix.lower() == ".mp4":
            _write_mp4(temporary, checked, fps)
        else:
            _write_gif(temporary, checked, fps)


def read_video(path: str | Path) -> Float[np.ndarray, "T 3 H W"]:
    """All frames of a video file, folder of images or array file, as float32 in [0, 1]."""
    frames = np.stack(list(iterate_frames(path)))
    return np.ascontiguousarray(frames.transpose(0, 3, 1, 2)) / np.float32(255)


def iterate_frames(path: str | Path) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    """The frames one after the other. Raises InputError at once, or where the file turns out to be broken."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist: give a video file, a folder of images or a .npy or .npz file.")
    suffix = path.suffix.lower()
    if path.is_dir():
        frames = _from_folder(path)
    elif suffix in (".npy", ".npz"):
        frames = _from_array(path)
    elif suffix in CONTAINERS:
        frames = _from_container(path)
    else:
        raise InputError(
            f"{path} ends in {suffix or 'nothing'!r}: give a video ({', '.join(CONTAINERS)}), a folder of "
            "images or a .npy or .npz file."
        )
    head = next(frames, None)
    if head is None:
        raise InputError(f"{path} holds no frame that can be decoded: it may be cut short; copy or export it again.")
    return _of_one_size(chain([head], frames), str(path))


def without_extra(doing: str, package: str) -> InputError:
    """The error for a missing optional package."""
    return InputError(f"{doing} needs the package {package}: run pip install 'scalor[video]'.")


def _of_one_size(frames: Iterator[np.ndarray], source: str) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    size = None
    for t, frame in enumerate(frames):
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise InputError(
                f"frame {t} for {source} is {frame.dtype} of shape {list(frame.shape)}: give uint8 [H, W, 3]."
            )
        size = size or frame.shape
        if frame.shape != size:
            raise InputError(
                f"frame {t} of {source} is {frame.shape[1]} x {frame.shape[0]} pixels and frame 0 is "
                f"{size[1]} x {size[0]}: bring all frames to one size."
            )
        yield frame


def _write_mp4(path: Path, frames: Iterator[UInt8[np.ndarray, "H W 3"]], fps: int | float) -> None:
    try:
        import av
    except ImportError as error:
        raise without_extra("writing .mp4", "av") from error
    head = next(frames)
    # yuv420p halves the colour planes, so both sides must be even.
    height, width = head.shape[0] + head.shape[0] % 2, head.shape[1] + head.shape[1] % 2
    # faststart: a web page can play the file while it loads.
    with av.open(path, "w", format="mp4", options={"movflags": "faststart"}) as container:
        # Quality 16 (lower is better; 23 is usual): thin coloured lines keep their colour.
        options = {"crf": "16", "preset": "fast"}
        rate = Fraction(float(fps)).limit_denominator(1001)
        stream = container.add_stream("libx264", rate, options, pix_fmt="yuv420p", height=height, width=width)
        stream.codec_context.colorspace = SMPTE170M
        for frame in chain([head], frames):
            rest = ((0, height - frame.shape[0]), (0, width - frame.shape[1]), (0, 0))
            padded = np.pad(frame, rest, mode="edge")
            container.mux(stream.encode(av.VideoFrame.from_ndarray(padded, format="rgb24")))
        container.mux(stream.encode(None))


def _write_gif(path: Path, frames: Iterator[UInt8[np.ndarray, "H W 3"]], fps: int | float) -> None:
    try:
        from PIL import Image
    except ImportError as error:
        raise without_extra("writing .gif", "pillow") from error
    if fps > GIF_TICKS / 2:
        raise InputError(f"fps is {fps}: a gif plays at most {GIF_TICKS // 2} frames per second; write .mp4 instead.")
    pictures = list(frames)
    # One palette for all frames and no dithering: a still background must not flicker. "Maximum coverage"
    # keeps rare colours, so thin box lines stay what they are (median cut moves them by some 40 levels);
    # the k-means pass then fits the palette to the background.
    pixels = np.stack(pictures).reshape(-1, 3)
    if len(pixels) > PALETTE_SAMPLES:
        # At random rather than every n-th: n may be a multiple of the width and see one column only.
        pixels = pixels[np.random.default_rng(0).integers(len(pixels), size=PALETTE_SAMPLES)]
    palette = Image.fromarray(pixels[None]).quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1)
    images = [Image.fromarray(p).quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    ticks = np.round(np.arange(len(images) + 1) * GIF_TICKS / fps).astype(int)
    durations = [int(1000 / GIF_TICKS * d) for d in np.diff(ticks)]
    images[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=durations,
        loop=0,
        optimize=False,
    )


def _from_container(path: Path) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    try:
        import av
    except ImportError as error:
        raise without_extra(f"reading {path.suffix}", "av") from error
    try:
        with av.open(path) as container:
            if not container.streams.video:
                raise InputError(f"{path} holds no pictures, only other streams: give a file with a video stream.")
            for frame in container.decode(video=0):
                yield frame.to_ndarray(format="rgb24")
    except av.FFmpegError as error:
        raise InputError(
            f"{path} cannot be decoded as a video ({error.strerror}): it may be cut short or not a video; "
            "copy or export it again."
        ) from error


def _natural(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Sort key under which frame2 comes before frame10."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], path.name


def _from_folder(path: Path) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    try:
        from PIL import Image
    except ImportError as error:
        raise without_extra("reading images", "pillow") from error
    files = [file for file in path.iterdir() if file.suffix.lower() in IMAGES and not file.name.startswith(".")]
    if not files:
        raise InputError(f"{path} holds no images: give a folder with files that end in {', '.join(IMAGES)}.")
    for file in sorted(files, key=_natural):
        try:
            with Image.open(file) as image:
                mode = image.mode
                picture = np.asarray(image.convert("RGB"))
        except OSError as error:
            raise InputError(f"{file} cannot be decoded as an image: remove it or export it again.") from error
        if mode.startswith(("I", "F")):
            raise InputError(f"{file} has more than 8 bits per channel (mode {mode}): convert it to 8 bits.")
        yield picture


def _from_array(path: Path) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    """Arrays of uint8, or of floats in [0, 1], colour last or second. A .npy is read piece by piece."""
    array = _load(path)
    floats = array.dtype.kind == "f"
    if array.ndim != 4 or 3 not in (array.shape[-1], array.shape[1]) or not (floats or array.dtype == np.uint8):
        raise InputError(
            f"{path} holds {array.dtype} of shape {list(array.shape)}: give uint8, or floats in [0, 1], of "
            "shape [T, H, W, 3] or [T, 3, H, W]."
        )
    for t, frame in enumerate(array):
        picture = frame if array.shape[-1] == 3 else frame.transpose(1, 2, 0)
        if floats:
            if not (picture.min() >= 0 and picture.max() <= 1):
                raise InputError(
                    f"frame {t} of {path} holds values from {picture.min():g} to {picture.max():g}: "
                    "scale them to [0, 1]."
                )
            picture = (picture * 255 + 0.5).astype(np.uint8)
        yield np.array(picture)


def _load(path: Path) -> np.ndarray:
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded as archive:
            names = list(archive)
            if "frames" in names or len(names) == 1:
                array: np.ndarray = archive["frames" if "frames" in names else names[0]]
                return array
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InputError(f"{path} cannot be read as a numpy array: write it again with numpy.save.") from error
    raise InputError(f"{path} holds the arrays {names}: name the one with the video 'frames'.")
