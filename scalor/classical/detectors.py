"""Detect objects in single frames without learning: connected components of the foreground, or round bright spots.

`colour` connects neighbouring pixels of one colour, and `foreground` connects all neighbouring foreground pixels; a
third method, `motion`, is in the module `motion`. `trackpy_tracks` calls trackpy, which detects and links round bright
spots (method of Crocker and Grier). M objects in a frame of H by W pixels; sizes are height and width in pixels. The
constants were chosen on clips of the training split, never on test clips.
"""

import importlib
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import ndimage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from scalor.boxes import check_object_size
from scalor.data.observation import check_frames
from scalor.errors import InputError
from scalor.tracking.kalman import GATE, PATIENCE, Detections
from scalor.tracks import Tracks

Picture = Float[np.ndarray, "3 H W"]
Labels = Int[np.ndarray, "H W"]
"""Label image: 0 for the background, 1 to M for the objects."""

DETECTORS = ("colour", "foreground", "motion")
CONTRAST = 0.1
"""Smallest difference from the background of a foreground pixel, for pixels in [0, 1]."""
SMALLEST = 0.06
"""Smallest area of an object, as a share of the area of a typical object's box."""
LARGEST = 1.2
"""Largest height and width of an object that is joined from pieces of one colour, in typical heights and widths."""
ONE_COLOUR = 0.08
"""Difference of the mean colours of two pieces below which they may be one object."""
RIM = 0.8
"""Share of its brightest neighbour's contrast below which a pixel belongs to a blurred rim. Within an object, the
contrast varies less."""
RIM_WIDTH = 1.5
"""Largest distance of a rim pixel from its object, in pixels."""


@dataclass(frozen=True)
class Detector:
    """Detector by colour or by foreground, for objects of about one size."""

    way: str
    """The method: `colour` or `foreground`."""
    size: tuple[float, float]
    """Typical height and width of an object, in pixels."""
    tolerance: float
    """`colour`: difference of colour below which neighbouring pixels are connected."""

    def __call__(self, picture: Picture, background: Picture | None) -> Detections:
        """Detect the objects of a frame. Without a background, the background is black."""
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
        """Return the connected components of one colour.

        Components of a single pixel are left out: they are mixtures of two objects.
        """
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
    """Return Otsu's threshold, which maximises the variance between the two classes, but at least CONTRAST."""
    counts, edges = np.histogram(contrast, 64, (0, 1))
    below, sums = np.cumsum(counts), np.cumsum(counts * (edges[:-1] + edges[1:]) / 2)
    above = below[-1] - below
    gap = sums[-1] * below - sums * below[-1]
    parted = gap**2 / np.maximum(below * above, 1)
    return max(CONTRAST, float(edges[1:][parted == parted.max()].mean()))


def tints(picture: Picture) -> Picture:
    """Normalise colours to a largest channel of 1. A blurred rim over black then has the colour of its object."""
    tint: np.ndarray = picture / np.maximum(picture.max(0), 1e-6)
    return tint


def connected(inside: Bool[np.ndarray, "H W"]) -> Labels:
    """Return the connected components of a mask."""
    labels: np.ndarray = ndimage.label(inside)[0]
    return labels


def same_colour(labels: Labels, tint: Picture, size: tuple[float, float]) -> Labels:
    """Join pieces of one colour into one object if their common bounding box is small enough.

    An object that is partly occluded may be visible in several pieces.
    """
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
    """Assign foreground pixels without a label to the nearest object within RIM_WIDTH."""
    distance, (row, column) = ndimage.distance_transform_edt(labels == 0, return_indices=True)
    grown: np.ndarray = np.where(outside & (distance <= RIM_WIDTH), labels[row, column], labels)
    return grown


def keep(labels: Labels, wanted: Bool[np.ndarray, " M"]) -> Labels:
    """Keep the wanted objects and renumber them from 1 on."""
    number = np.zeros(len(wanted) + 1, dtype=int)
    number[1:][wanted] = np.arange(1, wanted.sum() + 1)
    kept: np.ndarray = number[labels]
    return kept


def areas(labels: Labels) -> Int[np.ndarray, " M"]:
    """Return the number of pixels of each object."""
    return np.bincount(labels.ravel())[1:]


def means(picture: Picture, labels: Labels) -> Float[np.ndarray, "M 3"]:
    """Return the mean colour of each object."""
    sums = [np.bincount(labels.ravel(), channel.ravel())[1:] for channel in picture]
    mean: np.ndarray = np.stack(sums, 1) / np.maximum(areas(labels), 1)[:, None]
    return mean


def boxes(labels: Labels) -> Float[np.ndarray, "M 4"]:
    """Return the bounding box of each object: x0, y0, x1, y1 in pixels."""
    found = [part for part in ndimage.find_objects(labels) if part is not None]
    sides = [(columns.start, rows.start, columns.stop, rows.stop) for rows, columns in found]
    return np.array(sides, dtype=float).reshape(-1, 4)


APART = 0.3
"""Smallest distance of two spots, in object sizes. It was chosen on clips of the training split."""


def trackpy_tracks(frames: object, object_size: tuple[float, float]) -> Tracks:
    """Track a video or a batch of videos with trackpy.

    Parameters
    ----------
    frames : array or tensor
        Pixels in [0, 1], of shape [T, 3, H, W] or [B, T, 3, H, W].
    object_size : tuple of float
        Height and width of every box, in pixels. trackpy gives centres only.
    """
    check_object_size(object_size)
    videos = check_frames(frames, cell=(1, 1)).amax(2).cpu().numpy()  # [B, T, H, W], the brightest channel
    rows = np.concatenate([particles(video, clip, object_size) for clip, video in enumerate(videos)])
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    clip, frame, number = rows[:, :3].T.astype(int)
    centre, half = rows[:, 3:], np.array(object_size[::-1]) / 2
    first = np.full((clip.max(initial=0) + 1, number.max(initial=0) + 1), len(videos[0]))
    np.minimum.at(first, (clip, number), frame)
    return Tracks(
        clip=clip,
        frame=frame,
        id=number + 1,
        box=np.concatenate([centre - half, centre + half], 1),
        confidence=np.ones(len(rows)),
        discovered=first[clip, number] == frame,
        size=(videos.shape[2], videos.shape[3]),
    )


def particles(video: np.ndarray, clip: int, object_size: tuple[float, float]) -> np.ndarray:
    """Track one video of shape [T, H, W] and return rows of clip, frame, particle number, x and y."""
    trackpy = load_trackpy()
    unit = math.sqrt(object_size[0] * object_size[1])
    diameter = tuple(2 * max(1, round((side - 1) / 2)) + 1 for side in object_size)  # trackpy requires odd numbers
    apart = tuple(APART * side for side in object_size)
    margin = max(diameter)  # trackpy ignores spots near the border
    wider = np.pad(video, ((0, 0), (margin, margin), (margin, margin)))
    with warnings.catch_warnings(action="ignore"):  # warnings about frames without objects
        found = trackpy.batch(wider, diameter, separation=apart, processes=1)
    if not len(found):
        return np.zeros((0, 5))
    # In a crowd, the adaptive search range shrinks: linking would take too long otherwise.
    linked = trackpy.link(found, GATE * unit, memory=PATIENCE, adaptive_stop=0.1 * unit, adaptive_step=0.9)
    middle = linked[["x", "y"]].to_numpy() + 0.5 - margin  # trackpy's pixel i is centred on i
    number = linked[["frame", "particle"]].to_numpy()
    return np.column_stack([np.full(len(linked), clip), number, middle])


def load_trackpy() -> Any:
    """Import trackpy, or raise an InputError if it is not installed."""
    try:
        trackpy = importlib.import_module("trackpy")
    except ImportError as error:
        raise InputError("trackpy is not installed: install it with `pip install 'scalor[trackpy]'`.") from error
    trackpy.quiet()
    return trackpy
