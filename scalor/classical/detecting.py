"""Objects in a single frame without learning: pixels that stand out and hang together.

Two ways: `colour` joins neighbours of one colour, `foreground` all neighbours that stand out (a third, `motion`, has a
room of its own: `moving`). Sizes are height and width in pixels. The numbers were chosen on clips
of the training split, never on test clips.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import ndimage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from scalor.tracking.linking import Detections

Picture = Float[np.ndarray, "3 H W"]
Labels = Int[np.ndarray, "H W"]
"""0 where there is no object, else its number from 1 on."""

DETECTORS = ("colour", "foreground", "motion")
CONTRAST = 0.1
"""Nothing fainter than this stands out, pixels in [0, 1]."""
SMALLEST = 0.06
"""Of the area of a typical object's box; anything smaller is no object."""
LARGEST = 1.2
"""Pieces of one colour are one object if it is not larger than so many typical sizes."""
ONE_COLOUR = 0.08
"""Colours that differ by less may be one object's."""
RIM = 0.8
"""A pixel fainter than this share of its brightest neighbour is a blurred rim. Objects differ less in brightness."""
RIM_WIDTH = 1.5
"""Pixels."""


@dataclass(frozen=True)
class Detector:
    """One of the two ways, for objects of about one size."""

    way: str
    size: tuple[float, float]
    tolerance: float
    """`colour`: neighbours whose colours differ by less belong together."""

    def __call__(self, picture: Picture, background: Picture | None) -> Detections:
        """The objects of a frame; no background given means black."""
        contrast = picture.max(0) if background is None else np.abs(picture - background).max(0)
        outside = contrast > threshold(contrast)
        if self.way == "colour":
            tint = tints(picture)
            labels = same_colour(self.pieces(tint, outside), tint, self.size)
        else:
            brightest = ndimage.maximum_filter(contrast, 3)
            labels = connected(outside & (contrast >= RIM * brightest))
        labels = keep(labels, areas(labels) >= SMALLEST * self.size[0] * self.size[1])
        colour = means(tints(picture), labels) if self.way == "colour" else np.zeros((labels.max(), 3))
        labels = with_rims(labels, outside)
        return Detections(boxes(labels), colour)

    def pieces(self, tint: Picture, outside: Bool[np.ndarray, "H W"]) -> Labels:
        """Neighbours of one colour; single pixels are mixtures of two objects and left out."""
        pixel = np.arange(outside.size).reshape(outside.shape)
        pairs = []
        for here, there in ((np.s_[:, 1:], np.s_[:, :-1]), (np.s_[1:, :], np.s_[:-1, :])):
            alike = np.abs(tint[:, *here] - tint[:, *there]).max(0) < self.tolerance
            joined = alike & outside[here] & outside[there]
            pairs.append((pixel[here][joined], pixel[there][joined]))
        one, other = np.concatenate(pairs, 1)
        graph = coo_matrix((np.ones(len(one), bool), (one, other)), (outside.size, outside.size))
        labels = connected_components(graph, directed=False)[1].reshape(outside.shape)
        labels = np.where(outside, labels + 1, 0)
        return keep(labels, areas(labels) > 1)


def threshold(contrast: Float[np.ndarray, "H W"]) -> float:
    """Otsu's: the value that parts the pixels into two groups that differ most."""
    counts, edges = np.histogram(contrast, 64, (0, 1))
    below, sums = np.cumsum(counts), np.cumsum(counts * (edges[:-1] + edges[1:]) / 2)
    above = below[-1] - below
    gap = sums[-1] * below - sums * below[-1]
    parted = gap**2 / np.maximum(below * above, 1)
    return max(CONTRAST, float(edges[1:][parted == parted.max()].mean()))


def tints(picture: Picture) -> Picture:
    """Colours without their brightness: a rim over black has its object's."""
    tint: np.ndarray = picture / np.maximum(picture.max(0), 1e-6)
    return tint


def connected(inside: Bool[np.ndarray, "H W"]) -> Labels:
    labels: np.ndarray = ndimage.label(inside)[0]
    return labels


def same_colour(labels: Labels, tint: Picture, size: tuple[float, float]) -> Labels:
    """Pieces of one colour as one object, where together they are small enough: something lies across it."""
    box, area, colour = boxes(labels), areas(labels), means(tint, labels)
    largest = LARGEST * np.array(size[::-1])
    group, free = np.arange(len(box)), np.ones(len(box), bool)
    for piece in np.argsort(-area, kind="stable"):
        if not free[piece]:
            continue
        free[piece] = False
        alike = free & (np.abs(colour - colour[piece]).max(1) < ONE_COLOUR)
        for other in np.flatnonzero(alike)[np.argsort(-area[alike], kind="stable")]:
            low, high = np.minimum(box[piece, :2], box[other, :2]), np.maximum(box[piece, 2:], box[other, 2:])
            if (high - low <= largest).all():
                box[piece] = (*low, *high)
                group[other], free[other] = piece, False
    group = np.unique(group, return_inverse=True)[1]
    joined: np.ndarray = np.concatenate([[0], group + 1])[labels]
    return joined


def with_rims(labels: Labels, outside: Bool[np.ndarray, "H W"]) -> Labels:
    """Pixels that stand out and belong to nothing go to the nearest object, if it is near."""
    distance, (row, column) = ndimage.distance_transform_edt(labels == 0, return_indices=True)
    grown: np.ndarray = np.where(outside & (distance <= RIM_WIDTH), labels[row, column], labels)
    return grown


def keep(labels: Labels, wanted: Bool[np.ndarray, " M"]) -> Labels:
    """The wanted objects, numbered anew."""
    number = np.zeros(len(wanted) + 1, dtype=int)
    number[1:][wanted] = np.arange(1, wanted.sum() + 1)
    kept: np.ndarray = number[labels]
    return kept


def areas(labels: Labels) -> Int[np.ndarray, " M"]:
    return np.bincount(labels.ravel())[1:]


def means(picture: Picture, labels: Labels) -> Float[np.ndarray, "M 3"]:
    sums = [np.bincount(labels.ravel(), channel.ravel())[1:] for channel in picture]
    mean: np.ndarray = np.stack(sums, 1) / np.maximum(areas(labels), 1)[:, None]
    return mean


def boxes(labels: Labels) -> Float[np.ndarray, "M 4"]:
    found = [part for part in ndimage.find_objects(labels) if part is not None]
    sides = [(columns.start, rows.start, columns.stop, rows.stop) for rows, columns in found]
    return np.array(sides, dtype=float).reshape(-1, 4)
