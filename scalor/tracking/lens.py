"""`Lens`: between the pictures of a video and the frames that a model sees."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from scalor.boxes import FLAT, FULL, Perspective, sizes_at
from scalor.still.background import Background
from scalor.tracks import Tracks
from scalor.video.resize import shrink, shrunken_size, strengthen
from scalor.video.sources import Picture


@dataclass(frozen=True)
class Lens:
    """Turns pictures into frames, and tracks in frames into tracks in pictures.

    A frame is the region of a picture that is looked at, at the model's scale. Where that is not a whole number of
    cells, its last column and its last row are repeated until it is.
    """

    full_size: tuple[int, int]
    """Height and width of a whole picture."""
    region: tuple[int, int, int, int] | None = None
    """x0, y0, x1, y1 in pixels of the whole picture (none given: all of it)."""
    cell: tuple[int, int] = (1, 1)
    """Height and width that a frame must be a multiple of."""
    scale: float = 1.0
    """Pixels of a frame for each pixel of the picture, along its height,"""
    stretch: float = 1.0
    """and how many times more than that along its width."""
    background: Background | None = None
    """The region without objects, for models of a camera that stands still: it goes with every frame."""
    contrast: float = 1.0
    """How many times as strong as in the picture things differ from the still scene."""
    perspective: Perspective = FLAT
    """How large objects are at the region's upper and lower edge."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        height, width = self.full_size
        return self.region or (0, 0, width, height)

    @property
    def seen(self) -> tuple[int, int]:
        """Height and width of the region as it is seen, without what is repeated."""
        x0, y0, x1, y1 = self.corners
        return shrunken_size((y1 - y0, x1 - x0), self.scale, self.stretch)

    @cached_property
    def behind(self) -> Background | None:
        """The background as it is seen, if there is one."""
        return None if self.background is None else self.background.shrunken(self.seen)

    @cached_property
    def ruler(self) -> Float[Tensor, "1 h 1"]:
        """How large objects are at each row of a frame, for models of a camera that stands still."""
        rows = self.seen[0] + -self.seen[0] % self.cell[0]
        sizes = sizes_at(np.arange(rows) + 0.5, self.seen[0], self.perspective)
        return torch.from_numpy(sizes / FULL).float()[None, :, None]

    @property
    def scales(self) -> tuple[float, float]:
        """Pixels of a frame for each pixel of the picture, along its height and its width."""
        return self.scale, self.scale * self.stretch

    def to_frame(self, picture: Picture) -> Float[Tensor, "C h w"]:
        """A whole picture as the model is to see it. Call it once for each frame, in their order: the background
        follows the light."""
        return self.look(picture).frame

    def look(self, picture: Picture) -> "Looked":
        """The same, with the pictures that the frame was made of."""
        x0, y0, x1, y1 = self.corners
        small = shrink(picture[y0:y1, x0:x1], self.seen)
        if self.behind is None:
            return Looked(self._frame(small), small, None)
        empty = self.behind.at(small)
        seen = self._frame(strengthen(small, empty, self.contrast))
        frame = torch.cat([seen, self._frame(empty), self.ruler.expand(1, *seen.shape[1:])])
        return Looked(frame, small, empty)

    def to_original(self, tracks: Tracks) -> Tracks:
        """Tracks of a frame in pixels of the whole picture, without those whose centre lies in the repeated part."""
        (x0, y0, x1, y1), (height, width) = self.corners, self.seen
        edge = np.where([width % self.cell[1], height % self.cell[0]], (width, height), np.inf)
        tracks = tracks.select(np.all(tracks.centre < edge, axis=1))
        masks = None
        if tracks.masks is not None:
            rows, columns = nearest(y1 - y0, height), nearest(x1 - x0, width)
            masks = np.zeros((len(tracks), *self.full_size), bool)
            masks[:, y0:y1, x0:x1] = tracks.masks[:, rows[:, None], columns]
        grown = tracks.box * np.tile([(x1 - x0) / width, (y1 - y0) / height], 2)
        return replace(tracks, box=grown + np.array([x0, y0, x0, y0]), size=self.full_size, masks=masks)

    def to_picture(self, frame: Float[Tensor, "3 h w"], around: Picture) -> Picture:
        """A frame that a model drew, in its place in a whole picture."""
        (x0, y0, x1, y1), (height, width) = self.corners, self.seen
        drawn = (frame[:, :height, :width].clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()
        if self.behind is not None:
            drawn = strengthen(drawn, self.behind.still, 1 / self.contrast)
        whole = around.copy()
        whole[y0:y1, x0:x1] = shrink(drawn, (y1 - y0, x1 - x0))
        return whole

    def _frame(self, picture: Picture) -> Float[Tensor, "3 h w"]:
        # A copy: arrays that were read from a file may not be writable, and a tensor must be.
        frame = torch.tensor(picture).permute(2, 0, 1).float() / 255
        below, beside = (-side % step for side, step in zip(self.seen, self.cell, strict=True))
        return pad(frame, (0, beside, 0, below), mode="replicate") if below or beside else frame


class Looked(NamedTuple):
    """A picture as a model is to see it."""

    frame: Float[Tensor, "C h w"]
    small: Picture
    """The region at the model's scale;"""
    empty: Picture | None
    """and its background in the same light, where there is one."""


def nearest(count: int, seen: int) -> Int[np.ndarray, " count"]:
    """For each of `count` pixels the one of `seen` that it lies in."""
    places: np.ndarray = ((np.arange(count) + 0.5) * seen / count).astype(int)
    return places
