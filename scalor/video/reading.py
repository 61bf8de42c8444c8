"""Video files in: mp4, gif and other containers, folders of images, numpy arrays.

Reading is a stream of uint8 frames in constant memory (`iterate_frames`); `read_video` collects it.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float, UInt8

from scalor.errors import InputError, without_extra

CONTAINERS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".gif")
IMAGES = (".png", ".jpg", ".jpeg")


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
