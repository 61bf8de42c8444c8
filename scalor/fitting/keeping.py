"""The frames of a video that a model learns from, as it is to see them, kept in one file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from tqdm import tqdm

from scalor.config import Config
from scalor.data.footage import Frames
from scalor.errors import InputError
from scalor.files import replacing
from scalor.fitting.surveying import changes, find_blobs, large_enough
from scalor.video import Video
from scalor.video.shrinking import shrink, shrunken_size, strengthen

MOST_BYTES = 2**30
"""Of kept frames. More of a long video would not teach more."""
STRETCH = 40
"""Frames in a row that are kept of a video too long to be kept whole."""


def keep(video: Video, still: UInt8[np.ndarray, "H W 3"], config: Config, strength: float) -> Frames:
    """Every frame of a short video; of a long one, stretches spread evenly over it, as the model is to see them."""
    object_size = config.model.object_size
    size = shrunken_size(video.size, config.scene.scale)
    scene = shrink(still, size)
    count = sum(1 for _ in video) if video.frames is None else video.frames
    most = max(2 * STRETCH, MOST_BYTES // scene.nbytes)
    stretches = max(1, count // STRETCH)
    taken = set(range(stretches)) if count <= most else set(spread(most // STRETCH, stretches))
    frames: list[np.ndarray] = []
    starts: list[int] = []
    spots: list[tuple[int, int, int]] = []
    last = None
    for number, frame in enumerate(tqdm(video, "reading", count, file=sys.stderr, unit="frame", leave=False)):
        stretch = min(number // STRETCH, stretches - 1)
        if stretch not in taken:
            continue
        if last != number - 1:
            starts.append(len(frames))
        last = number
        picture = shrink(frame.picture, size)
        blobs = find_blobs(changes(picture, scene, strength))
        large = large_enough(blobs, object_size, size[0], config.scene.perspective)
        spots += [(len(frames), int(y), int(x)) for x, y in blobs.centre[large]]
        frames.append(strengthen(picture, scene, config.scene.contrast).transpose(2, 0, 1))
    if not spots:
        raise InputError(
            f"{video.name} shows nothing of about {object_size[0]:.0f}x{object_size[1]:.0f} px that moves: say another "
            "--object-size, or choose another part of it with --start, --end or --region."
        )
    only_video = np.zeros(len(starts), int)
    return Frames(np.stack(frames), scene.transpose(2, 0, 1)[None], np.array(starts), only_video, np.array(spots))


def spread(count: int, room: int) -> Iterator[int]:
    """`count` different numbers below `room`, evenly apart."""
    return (int((number + 0.5) * room / count) for number in range(count))


def save(frames: Frames, path: Path) -> None:
    with replacing(path) as temporary:
        frames.save(temporary)
