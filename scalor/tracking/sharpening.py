"""Refinement of boxes at the video's own resolution, from the foreground.

A model sees a downscaled video, so its boxes are off by one of its pixels, which is several pixels of the video. The
difference from the background shows where an object ends. Where objects touch, the model's boxes decide which object a
pixel belongs to. Where nothing differs from the background, there is no object: a model may mistake a dark window for
an object if it has seen little of it. The numbers were set by eye on PETS 2009 S2L1, view 1 (docs/log.md).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from scipy import ndimage

from scalor.still import foreground
from scalor.tracks import Tracks
from scalor.video.pixels import Picture, amplify_difference
from scalor.video.resize import downsample

MARGIN = 0.2
"""Margin around a box in which its object may lie, as a share of the box's sides."""
MIN_PIECE = 0.1
"""Smallest area of a connected component that is part of an object, as a share of the largest component."""
DROP_SHARE, KEEP_SHARE = 0.05, 0.15
"""Foreground shares of a box below which the box is dropped (DROP_SHARE) or left unchanged (KEEP_SHARE)."""
THIN_SHARE = 0.05
"""Rows and columns in which the object fills at most this share of the box's width or height lie outside its box."""


@dataclass(frozen=True)
class Sharpener:
    """Refinement of the boxes of one video."""

    still: Picture
    """The background of the visible region."""
    object_size: tuple[float, float]
    """Typical height and width of an object, in pixels of the video."""
    corner: tuple[int, int] = (0, 0)
    """x and y of the upper left pixel of the visible region."""
    contrast: float = 1.0
    """Factor by which differences from the background are amplified."""
    test: foreground.ForegroundTest = foreground.DEFAULT_TEST
    """Foreground test, applied after the amplification."""

    @property
    def coarse(self) -> int:
        """Factor by which images are reduced."""
        return foreground.coarseness(self.object_size)

    @cached_property
    def scene(self) -> foreground.FloatPicture:
        """The reduced background."""
        return self.coarsened(self.still)

    def coarsened(self, picture: Picture) -> Float[np.ndarray, "3 h w"]:
        """Return a picture at the resolution at which objects are looked for."""
        return downsample(foreground.to_floats(picture), self.coarse)

    def __call__(
        self, tracks: Tracks, picture: Picture, background: UInt8[np.ndarray, "h w 3"] | None = None
    ) -> Tracks:
        """Return a frame's tracks with refined boxes, without those that show nothing.

        Parameters
        ----------
        tracks
            Tracks in pixels of the video.
        picture
            The full image.
        background
            The background in the lighting of this image, as large as `still` (`StillBackground.at`). None for the usual
            lighting.
        """
        if len(tracks) == 0:
            return tracks
        (x, y), (height, width) = self.corner, self.still.shape[:2]
        usual = background is None or background is self.still
        behind = self.still if background is None else background
        seen = self.coarsened(amplify_difference(picture[y : y + height, x : x + width], behind, self.contrast))
        scene = self.scene if usual else self.coarsened(behind)
        size = (self.object_size[0] / self.coarse, self.object_size[1] / self.coarse)
        outside = foreground.close(self.test(seen, scene), size)
        shift = np.array([x, y, x, y])
        box = (tracks.box - shift) / self.coarse
        tight = [refine_box(row, box, outside) for row in range(len(box))]
        shown = np.array([one is not None for one in tight])
        sharp = np.array([one for one in tight if one is not None]).reshape(-1, 4)
        return replace(tracks.select(shown), box=sharp * self.coarse + shift)


def refine_box(
    row: int, boxes: Float[np.ndarray, "N 4"], outside: Bool[np.ndarray, "H W"]
) -> Float[np.ndarray, " 4"] | None:
    """Return one box refined to the foreground near it, or None if there is almost none.

    Foreground that is nearer to another box is excluded. With little foreground, the box is returned unchanged.
    """
    box: np.ndarray = boxes[row]
    side = np.maximum(box[2:] - box[:2], 1)
    height, width = outside.shape
    x0, y0 = np.clip(box[:2] - MARGIN * side, 0, (width, height)).astype(int)
    x1, y1 = np.clip(np.ceil(box[2:] + MARGIN * side), 0, (width, height)).astype(int)
    window = outside[y0:y1, x0:x1]
    if window.size == 0:
        return None
    x, y = np.arange(x0, x1) + 0.5, np.arange(y0, y1)[:, None] + 0.5
    beside = (boxes[:, 0] < x1) & (boxes[:, 2] > x0) & (boxes[:, 1] < y1) & (boxes[:, 3] > y0)
    beside[row] = False
    own = distance(box, x, y)
    mine = window & np.all([distance(other, x, y) >= own for other in boxes[beside]], axis=0)
    labels, _ = ndimage.label(mine)
    areas: Int[np.ndarray, " M"] = np.bincount(labels.ravel())[1:]
    large = np.append(False, areas >= MIN_PIECE * areas.max(initial=0))[labels]
    columns = np.flatnonzero(large.sum(0) > THIN_SHARE * side[1])
    rows = np.flatnonzero(large.sum(1) > THIN_SHARE * side[0])
    share = large.sum() / side.prod()
    if share < DROP_SHARE:
        return None
    if share < KEEP_SHARE or len(columns) == 0 or len(rows) == 0:
        return box
    return np.array([x0 + columns[0], y0 + rows[0], x0 + columns[-1] + 1, y0 + rows[-1] + 1], float)


def distance(box: Float[np.ndarray, " 4"], x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "h w"]:
    """Return the distance of pixels from the centre of a box, scaled to 1 at its edges."""
    middle, half = (box[:2] + box[2:]) / 2, np.maximum(box[2:] - box[:2], 1) / 2
    away: np.ndarray = np.maximum(np.abs(x - middle[0]) / half[0], np.abs(y - middle[1]) / half[1])
    return away
