"""Boxes at the video's own resolution: drawn anew around what stands out from the still scene.

A model sees a shrunken video, so its boxes are off by a pixel of that, which is several of the video's. What differs
from the scene shows where an object ends; whose pixel it is, where objects touch, the model's boxes say. Where nothing
differs there is no object: a model may take a dark window, of which it has seen little, for one.
The numbers were set by eye on PETS 2009 S2L1, view 1 (docs/log.md).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import ndimage

from scalor.still import foreground
from scalor.tracks import Tracks
from scalor.video.resize import strengthen
from scalor.video.sources import Picture

AROUND = 0.2
"""Of its sides: how far beyond a box its object may reach."""
PIECE = 0.1
"""Of the largest piece of an object; smaller ones are no part of it."""
NOTHING, LITTLE = 0.05, 0.15
"""Where less than these shares of a box stand out, there is no object, or its box is left as it is."""
THIN = 0.05
"""Rows and columns with less of the object than this share of them lie outside its box."""


@dataclass(frozen=True)
class Sharpener:
    """For the boxes of one video."""

    still: Picture
    """What is seen of the video without objects."""
    object_size: tuple[float, float]
    """Typical height and width, pixels of the video."""
    corner: tuple[int, int] = (0, 0)
    """x and y of the upper left pixel that is seen."""
    contrast: float = 1.0
    """How many times stronger than in the video things should differ from the scene."""
    test: foreground.ForegroundTest = foreground.ORDINARY
    """What stands out from the scene once it is so strong."""

    @property
    def coarse(self) -> int:
        return foreground.coarseness(self.object_size)

    @cached_property
    def scene(self) -> foreground.Picture:
        return self.coarsened(self.still)

    def coarsened(self, picture: Picture) -> foreground.Picture:
        return foreground.shrink(foreground.to_floats(picture), self.coarse)

    def __call__(self, tracks: Tracks, picture: Picture, background: Picture | None = None) -> Tracks:
        """The tracks of a frame with boxes that fit the whole picture better, without those that show nothing.

        `background` is the scene, as large as `still`, in the light of this picture (`Background.at`); none given
        means that the light is the usual one.
        """
        if len(tracks) == 0:
            return tracks
        (x, y), (height, width) = self.corner, self.still.shape[:2]
        usual = background is None or background is self.still
        behind = self.still if background is None else background
        seen = self.coarsened(strengthen(picture[y : y + height, x : x + width], behind, self.contrast))
        scene = self.scene if usual else self.coarsened(behind)
        size = (self.object_size[0] / self.coarse, self.object_size[1] / self.coarse)
        outside = foreground.close(self.test(seen, scene), size)
        shift = np.array([x, y, x, y])
        box = (tracks.box - shift) / self.coarse
        tight = [tightened(row, box, outside) for row in range(len(box))]
        shown = np.array([one is not None for one in tight])
        sharp = np.array([one for one in tight if one is not None]).reshape(-1, 4)
        return replace(tracks.select(shown), box=sharp * self.coarse + shift)


def tightened(
    row: int, boxes: Float[np.ndarray, "N 4"], outside: Bool[np.ndarray, "H W"]
) -> Float[np.ndarray, " 4"] | None:
    """One of the boxes, around what stands out near it and is nearer to it than to any other; none around nothing."""
    box: np.ndarray = boxes[row]
    side = np.maximum(box[2:] - box[:2], 1)
    height, width = outside.shape
    x0, y0 = np.clip(box[:2] - AROUND * side, 0, (width, height)).astype(int)
    x1, y1 = np.clip(np.ceil(box[2:] + AROUND * side), 0, (width, height)).astype(int)
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
    large = np.append(False, areas >= PIECE * areas.max(initial=0))[labels]
    columns = np.flatnonzero(large.sum(0) > THIN * side[1])
    rows = np.flatnonzero(large.sum(1) > THIN * side[0])
    share = large.sum() / side.prod()
    if share < NOTHING:
        return None
    if share < LITTLE or len(columns) == 0 or len(rows) == 0:
        return box
    return np.array([x0 + columns[0], y0 + rows[0], x0 + columns[-1] + 1, y0 + rows[-1] + 1], float)


def distance(box: Float[np.ndarray, " 4"], x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "h w"]:
    """Of pixels from the middle of a box: 1 at its edges."""
    middle, half = (box[:2] + box[2:]) / 2, np.maximum(box[2:] - box[:2], 1) / 2
    away: np.ndarray = np.maximum(np.abs(x - middle[0]) / half[0], np.abs(y - middle[1]) / half[1])
    return away
