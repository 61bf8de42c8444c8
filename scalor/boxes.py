"""Arrays of bounding boxes: overlap, distance, assignment, and the object size expected at each row of a picture.

Boxes are x0, y0, x1, y1 in pixels; pixel i covers [i, i + 1).
"""

import math

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from scalor.errors import require

Perspective = tuple[float, float]
"""Object size at the upper and at the lower edge of a picture, as multiples of the typical object size."""
FLAT: Perspective = (1.0, 1.0)
"""No perspective: the same object size at every row."""
MIN_SIZE, MAX_SIZE = 0.4, 3.0
"""Smallest and largest object size at any row, as multiples of the typical object size."""
MAX_RULER = 4.0
"""Largest object size at any row of an enlarged clip, as a multiple of the typical object size."""


def check_object_size(size: object) -> None:
    """Raise InputError unless `size` is the height and the width of an object."""
    sides = size if isinstance(size, tuple | list) else ()
    good = len(sides) == 2 and all(isinstance(side, int | float | np.number) and 0 < side < math.inf for side in sides)
    require(good, "object_size", size, "give a height and a width, positive and finite")


def centre_distances(true: Float[np.ndarray, "N 2"], pred: Float[np.ndarray, "M 2"]) -> Float[np.ndarray, "N M"]:
    """Return the Euclidean distance between every pair of centres, in pixels."""
    true, pred = true.astype(np.float64), pred.astype(np.float64)
    x, y = (true[:, axis, None] - pred[:, axis] for axis in (0, 1))  # each [N, M]
    distance: np.ndarray = np.sqrt(x * x + y * y)
    return distance


def box_ious(true: Float[np.ndarray, "N 4"], pred: Float[np.ndarray, "M 4"]) -> Float[np.ndarray, "N M"]:
    """Return the intersection over union of every pair of boxes; 0 where both boxes are empty."""
    true, pred = true.astype(np.float64), pred.astype(np.float64)
    # Computed for each axis separately, because numpy is slow over a last axis of two.
    x, y = (
        np.maximum(np.minimum(true[:, a + 2, None], pred[:, a + 2]) - np.maximum(true[:, a, None], pred[:, a]), 0)
        for a in (0, 1)
    )
    intersection = x * y  # [N, M]
    true_area = (true[:, 2] - true[:, 0]) * (true[:, 3] - true[:, 1])
    pred_area = (pred[:, 2] - pred[:, 0]) * (pred[:, 3] - pred[:, 1])
    union = true_area[:, None] + pred_area - intersection
    iou: np.ndarray = intersection / np.where(union > 0, union, 1.0)
    return iou


def clip_boxes(box: Float[np.ndarray, "N 4"], view: tuple[int, int]) -> Float[np.ndarray, "N 4"]:
    """Return the boxes clipped to a view of the given height and width."""
    height, width = view
    clipped: np.ndarray = np.clip(box, 0, np.array([width, height, width, height], dtype=box.dtype))
    return clipped


def assign(cost: Float[np.ndarray, "N M"]) -> Int[np.ndarray, " N"]:
    """Return the column assigned to each row, or -1 for none.

    The assignment has as many pairs of finite cost as possible and, among those assignments, the lowest total cost.
    """
    partner = np.full(len(cost), -1, dtype=np.int64)
    inside = np.isfinite(cost)
    if not inside.any():
        return partner
    # A forbidden pair costs more than all allowed pairs together, so no match is given up to make another one cheaper.
    forbidden = 1 + cost[inside].max() * (min(cost.shape) + 1)
    rows, columns = linear_sum_assignment(np.where(inside, cost, forbidden))
    allowed = inside[rows, columns]
    partner[rows[allowed]] = columns[allowed]
    return partner


def sizes_at(rows: Float[np.ndarray, "*N"], height: int, perspective: Perspective) -> Float[np.ndarray, "*N"]:
    """Return the object size expected at each row of a picture, as a multiple of the typical object size.

    `rows` are y coordinates of object centres (pixel i covers [i, i + 1)). `height` is the height of the picture in
    pixels. The size changes linearly between the upper and the lower edge. It is limited to MIN_SIZE and MAX_SIZE.
    """
    top, bottom = perspective
    sizes: np.ndarray = (top + (bottom - top) * rows / height).clip(MIN_SIZE, MAX_SIZE)
    return sizes
