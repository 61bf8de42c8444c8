"""`Lens`: conversion between the images of a video and the input frames of a model."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from scalor.boxes import FLAT, RULER_SCALE, Perspective, sizes_at
from scalor.still.background import Background
from scalor.tracks import Tracks
from scalor.video.pixels import amplify_difference, shrink, shrunken_size
from scalor.video.sources import Picture


@dataclass(frozen=True)
class Lens:
    """Conversion of images to model frames, and of a model's tracks back to image coordinates.

    A frame is the selected region of an image, resized to the model's scale. If it is not a whole number of grid cells,
    it is padded by repeating its last row and column.
    """

    full_size: tuple[int, int]
    """Height and width of a full image."""
    region: tuple[int, int, int, int] | None = None
    """x0, y0, x1, y1 of the region in pixels of the full image; None for all of it."""
    cell: tuple[int, int] = (1, 1)
    """Height and width of a grid cell in pixels of a frame. The size of a frame is a multiple of it."""
    scale: float = 1.0
    """Frame pixels per image pixel, vertically."""
    stretch: float = 1.0
    """Ratio of the horizontal to the vertical scale."""
    background: Background | None = None
    """Background of the region, for models of a still camera: it is part of every frame."""
    contrast: float = 1.0
    """Factor by which differences from the background are amplified."""
    perspective: Perspective = FLAT
    """Relative size of objects at the upper and lower edge of the region."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        """x0, y0, x1, y1 of the region in pixels of the full image."""
        height, width = self.full_size
        return self.region or (0, 0, width, height)

    @property
    def seen(self) -> tuple[int, int]:
        """Height and width of the region at the model's scale, without padding."""
        x0, y0, x1, y1 = self.corners
        return shrunken_size((y1 - y0, x1 - x0), self.scale, self.stretch)

    @cached_property
    def behind(self) -> Background | None:
        """The background at the model's scale, if there is one."""
        return None if self.background is None else self.background.shrunken(self.seen)

    @cached_property
    def ruler(self) -> Float[Tensor, "1 h 1"]:
        """Relative size of objects at each row of a frame, divided by `RULER_SCALE`, for models of a still camera."""
        rows = self.seen[0] + -self.seen[0] % self.cell[0]
        sizes = sizes_at(np.arange(rows) + 0.5, self.seen[0], self.perspective)
        return torch.from_numpy(sizes / RULER_SCALE).float()[None, :, None]

    @property
    def scales(self) -> tuple[float, float]:
        """Frame pixels per image pixel, vertically and horizontally."""
        return self.scale, self.scale * self.stretch

    def to_frame(self, picture: Picture) -> Float[Tensor, "C h w"]:
        """Return the model's frame for a full image.

        Call it once for each frame, in order, because the background follows the lighting.
        """
        return self.look(picture).frame

    def look(self, picture: Picture) -> "LensOutput":
        """Return the model's frame for a full image, with the images it is made of."""
        x0, y0, x1, y1 = self.corners
        small = shrink(picture[y0:y1, x0:x1], self.seen)
        if self.behind is None:
            return LensOutput(self._frame(small), small, None)
        empty = self.behind.at(small)
        seen = self._frame(amplify_difference(small, empty, self.contrast))
        frame = torch.cat([seen, self._frame(empty), self.ruler.expand(1, *seen.shape[1:])])
        return LensOutput(frame, small, empty)

    def to_original(self, tracks: Tracks) -> Tracks:
        """Return tracks in pixels of the full image, without those whose centre lies in the padding."""
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
        """Return a copy of `around` with a frame that the model drew in place of the region."""
        (x0, y0, x1, y1), (height, width) = self.corners, self.seen
        drawn = (frame[:, :height, :width].clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()
        if self.behind is not None:
            drawn = amplify_difference(drawn, self.behind.still, 1 / self.contrast)
        whole = around.copy()
        whole[y0:y1, x0:x1] = shrink(drawn, (y1 - y0, x1 - x0))
        return whole

    def _frame(self, picture: Picture) -> Float[Tensor, "3 h w"]:
        # Copy, because arrays read from a file may be read-only and a tensor must be writable.
        frame = torch.tensor(picture).permute(2, 0, 1).float() / 255
        below, beside = (-side % step for side, step in zip(self.seen, self.cell, strict=True))
        return pad(frame, (0, beside, 0, below), mode="replicate") if below or beside else frame


class LensOutput(NamedTuple):
    """A model's frame, and the images it is made of."""

    frame: Float[Tensor, "C h w"]
    small: Picture
    """The region at the model's scale, not amplified."""
    empty: Picture | None
    """The background of the region in the same lighting, if there is one."""


def nearest(count: int, seen: int) -> Int[np.ndarray, " count"]:
    """Return, for each of `count` pixels along a side, which of `seen` pixels it lies in."""
    places: np.ndarray = ((np.arange(count) + 0.5) * seen / count).astype(int)
    return places
