"""`Lens`: between the pictures of a video and the frames that a model sees."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from scalor.tracks import Tracks
from scalor.video.sources import Picture


@dataclass(frozen=True)
class Lens:
    """Turns pictures into frames, and tracks in frames into tracks in pictures.

    A frame is the region of a picture that is looked at. Where that is not a whole number of cells, its last column
    and its last row are repeated until it is.
    """

    full_size: tuple[int, int]
    """Height and width of a whole picture."""
    region: tuple[int, int, int, int] | None = None
    """x0, y0, x1, y1 in pixels of the whole picture (none given: all of it)."""
    cell: tuple[int, int] = (1, 1)
    """Height and width that a frame must be a multiple of."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        """The region, whether it was given or not."""
        height, width = self.full_size
        return self.region or (0, 0, width, height)

    @property
    def repeated(self) -> tuple[int, int]:
        """How often the last row and the last column are repeated."""
        x0, y0, x1, y1 = self.corners
        return -(y1 - y0) % self.cell[0], -(x1 - x0) % self.cell[1]

    def to_frame(self, picture: Picture) -> Float[Tensor, "3 h w"]:
        """A whole picture as the model is to see it."""
        x0, y0, x1, y1 = self.corners
        # A copy: arrays that were read from a file may not be writable, and a tensor must be.
        frame = torch.tensor(picture[y0:y1, x0:x1]).permute(2, 0, 1).float() / 255
        below, beside = self.repeated
        return pad(frame, (0, beside, 0, below), mode="replicate") if below or beside else frame

    def to_original(self, tracks: Tracks) -> Tracks:
        """Tracks of a frame in pixels of the whole picture, without those whose centre lies in the repeated part."""
        x0, y0, x1, y1 = self.corners
        below, beside = self.repeated
        # Where nothing is repeated, an object may leave the picture at the right and the bottom as it may at the left.
        ends = (x1 - x0 if beside else np.inf, y1 - y0 if below else np.inf)
        tracks = tracks.select(np.all(tracks.centre < ends, axis=1))
        masks = None
        if tracks.masks is not None:
            masks = np.zeros((len(tracks), *self.full_size), bool)
            masks[:, y0:y1, x0:x1] = tracks.masks[:, : y1 - y0, : x1 - x0]
        offset = np.array([x0, y0, x0, y0], tracks.box.dtype)
        return replace(tracks, box=tracks.box + offset, size=self.full_size, masks=masks)
