"""Collect the training frames of a video, at the scale and contrast of the model, and save them in one file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Bool
from tqdm import tqdm

from scalor.config import Config
from scalor.data.footage import Frames, Labels
from scalor.errors import InputError
from scalor.files import replacing
from scalor.still.blobs import find_blobs, large_enough
from scalor.still.survey import changes_in
from scalor.tracking.lens import Lens
from scalor.tracking.view import VideoView
from scalor.video.resize import amplify_difference, shrink
from scalor.video.sources import Picture

MAX_BYTES = 2**30
"""Largest total size of the kept frames. More frames of a long video do not improve the training."""
STRETCH = 40
"""Number of consecutive frames in each part that is kept of a video too long to be kept as a whole."""


class FrameCollector:
    """Collector of the training frames of one video.

    Every frame is corrected to the light of its background picture, so that one background picture serves a whole
    stretch of consecutive frames.
    """

    def __init__(self, view: VideoView, config: Config) -> None:
        video, scene = view.steady, config.scene
        assert view.background is not None
        assert view.found is not None
        size, region, cell = video.full_size, video.selection.region, config.model.cell
        self.lens = Lens(size, region, cell, scene.scale, scene.stretch, view.background)
        self.view, self.found, self.contrast = view, view.found, scene.contrast
        self.background = view.background.shrunken(self.lens.seen)
        self.object_size = (
            view.found.object_size[0] * self.lens.scales[0],
            view.found.object_size[1] * self.lens.scales[1],
        )
        self.frames: list[np.ndarray] = []
        self.starts: list[int] = []
        self.epochs: list[int] = []
        self.spots: list[tuple[int, int, int]] = []
        self.last = (-2, -1)

    @property
    def most(self) -> int:
        """Largest number of frames that may be kept."""
        return max(2 * STRETCH, MAX_BYTES // self.background.still.nbytes)

    def add(self, picture: Picture, number: int) -> Bool[np.ndarray, "h w"]:
        """Keep a picture of the region and return its foreground mask.

        Pictures with consecutive numbers and the same background picture form a stretch.
        """
        small = shrink(picture, self.lens.seen)
        empty = self.background.at(small)
        assert self.background.light is not None
        now = (number, self.background.light.epoch)
        if self.last != (number - 1, now[1]):
            self.starts.append(len(self.frames))
            self.epochs.append(now[1])
        self.last = now
        foreground = changes_in(small, empty, self.found.test)
        blobs = find_blobs(foreground)
        large = large_enough(blobs, self.object_size, self.lens.seen[0], self.found.perspective)
        self.spots += [(len(self.frames), int(y), int(x)) for x, y in blobs.centre[large]]
        evened = self.background.light.light.inverse().applied(small)
        self.frames.append(amplify_difference(evened, self.background.epochs[now[1]], self.contrast).transpose(2, 0, 1))
        return foreground

    def kept(self, labels: Labels | None = None) -> Frames:
        """Return everything that was kept, with labels where given.

        Raises an InputError if no object-sized foreground was found.
        """
        if not self.spots:
            height, width = self.object_size
            raise InputError(
                f"{self.view.video.name} shows nothing of about {height:.0f}x{width:.0f} px that moves: say another "
                "--object-size, or choose another part of it with --start, --end or --region."
            )
        stills = np.stack([picture.transpose(2, 0, 1) for picture in self.background.epochs])
        starts, epochs, spots = (np.array(values) for values in (self.starts, self.epochs, self.spots))
        return Frames(np.stack(self.frames), stills, starts, epochs, spots, labels)


def keep(view: VideoView, config: Config) -> Frames:
    """Keep every frame of a short video, or evenly spread stretches of a long one."""
    video, keeper = view.steady, FrameCollector(view, config)
    count = sum(1 for _ in video) if video.frames is None else video.frames
    stretches = max(1, count // STRETCH)
    taken = set(range(stretches)) if count <= keeper.most else set(spread(keeper.most // STRETCH, stretches))
    for number, frame in enumerate(tqdm(video, "reading", count, file=sys.stderr, unit="frame", leave=False)):
        if min(number // STRETCH, stretches - 1) in taken:
            keeper.add(frame.picture, number)
    return keeper.kept()


def spread(count: int, room: int) -> Iterator[int]:
    """Yield `count` evenly spaced integers below `room`. They differ as long as `count` is at most `room`."""
    return (int((number + 0.5) * room / count) for number in range(count))


def save(frames: Frames, path: Path) -> None:
    """Write the frames to a file atomically."""
    with replacing(path) as temporary:
        frames.save(temporary)
