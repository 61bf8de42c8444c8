"""The frames of a video that a model learns from, as it is to see them, kept in one file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from scalor.config import Config
from scalor.data.footage import Frames
from scalor.errors import InputError
from scalor.files import replacing
from scalor.still.blobs import find_blobs, large_enough
from scalor.still.survey import changes_in
from scalor.tracking.lens import Lens
from scalor.tracking.view import VideoView
from scalor.video.resize import shrink, strengthen

MOST_BYTES = 2**30
"""Of kept frames. More of a long video would not teach more."""
STRETCH = 40
"""Frames in a row that are kept of a video too long to be kept whole."""


def keep(view: VideoView, config: Config) -> Frames:
    """Every frame of a short video; of a long one, stretches spread evenly over it, as the model is to see them.

    All are brought to the light of the background's own picture, so that one picture serves a whole stretch.
    """
    video, scene = view.steady, config.scene
    assert view.background is not None
    assert view.found is not None
    lens = Lens(video.full_size, video.selection.region, config.model.cell, scene.scale, scene.stretch, view.background)
    behind = view.background.shrunken(lens.seen)
    object_size = (view.found.object_size[0] * lens.scales[0], view.found.object_size[1] * lens.scales[1])
    count = sum(1 for _ in video) if video.frames is None else video.frames
    most = max(2 * STRETCH, MOST_BYTES // behind.still.nbytes)
    stretches = max(1, count // STRETCH)
    taken = set(range(stretches)) if count <= most else set(spread(most // STRETCH, stretches))
    frames: list[np.ndarray] = []
    starts: list[int] = []
    epochs: list[int] = []
    spots: list[tuple[int, int, int]] = []
    last = (-2, -1)
    for number, frame in enumerate(tqdm(video, "reading", count, file=sys.stderr, unit="frame", leave=False)):
        if min(number // STRETCH, stretches - 1) not in taken:
            continue
        picture = shrink(frame.picture, lens.seen)
        empty = behind.at(picture)
        assert behind.light is not None
        now = (number, behind.light.epoch)
        if last != (number - 1, now[1]):
            starts.append(len(frames))
            epochs.append(now[1])
        last = now
        blobs = find_blobs(changes_in(picture, empty, view.found.test))
        large = large_enough(blobs, object_size, lens.seen[0], view.found.perspective)
        spots += [(len(frames), int(y), int(x)) for x, y in blobs.centre[large]]
        evened = behind.light.light.inverse().applied(picture)
        frames.append(strengthen(evened, behind.epochs[now[1]], scene.contrast).transpose(2, 0, 1))
    if not spots:
        raise InputError(
            f"{video.name} shows nothing of about {object_size[0]:.0f}x{object_size[1]:.0f} px that moves: say another "
            "--object-size, or choose another part of it with --start, --end or --region."
        )
    stills = np.stack([picture.transpose(2, 0, 1) for picture in behind.epochs])
    return Frames(np.stack(frames), stills, np.array(starts), np.array(epochs), np.array(spots))


def spread(count: int, room: int) -> Iterator[int]:
    """`count` different numbers below `room`, evenly apart."""
    return (int((number + 0.5) * room / count) for number in range(count))


def save(frames: Frames, path: Path) -> None:
    with replacing(path) as temporary:
        frames.save(temporary)
