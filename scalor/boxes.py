"""Boxes as arrays: overlap, distance, assignment, and how large objects are at each row of a picture.

Boxes are x0, y0, x1, y1 in pixels; pixel i covers [i, i + 1).
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

Perspective = tuple[float, float]
"""The size of objects at the upper and at the lower edge of a picture, in sizes of a typical one."""
FLAT: Perspective = (1.0, 1.0)
SMALLEST, LARGEST = 0.4, 3.0
"""Nothing is taken for smaller or larger than this, wherever it is."""
FULL = 4.0
"""The size for which the ruler's channel of a frame is 1: pixels lie between 0 and 1."""


def centre_distances(true: Float[np.ndarray, "N 2"], pred: Float[np.ndarray, "M 2"]) -> Float[np.ndarray, "N M"]:
    """Euclidean distances, pixels."""
    true, pred = true.astype(np.float64), pred.astype(np.float64)
    x, y = (true[:, axis, None] - pred[:, axis] for axis in (0, 1))  # each [N, M]
    distance: np.ndarray = np.sqrt(x * x + y * y)
    return distance


def box_ious(true: Float[np.ndarray, "N 4"], pred: Float[np.ndarray, "M 4"]) -> Float[np.ndarray, "N M"]:
    """Intersection over union; 0 where both boxes are empty."""
    true, pred = true.astype(np.float64), pred.astype(np.float64)
    # Axis by axis: numpy is slow over a last axis of two.
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
    """The parts of the boxes inside a view of the given height and width."""
    height, width = view
    clipped: np.ndarray = np.clip(box, 0, np.array([width, height, width, height], dtype=box.dtype))
    return clipped


def assign(cost: Float[np.ndarray, "N M"]) -> Int[np.ndarray, " N"]:
    """The column of each row, -1 for none: as many finite pairs as possible, then the least total cost."""
    partner = np.full(len(cost), -1, dtype=np.int64)
    inside = np.isfinite(cost)
    if not inside.any():
        return partner
    # One forbidden pair costs more than any number of allowed ones, so no match is given up for a nearer one.
    forbidden = 1 + cost[inside].max() * (min(cost.shape) + 1)
    rows, columns = linear_sum_assignment(np.where(inside, cost, forbidden))
    allowed = inside[rows, columns]
    partner[rows[allowed]] = columns[allowed]
    return partner


def sizes_at(rows: Float[np.ndarray, "*N"], height: int, perspective: Perspective) -> Float[np.ndarray, "*N"]:
    """How large objects are whose centres lie at these rows (pixel i from i to i + 1) of a picture of this height."""
    top, bottom = perspective
    sizes: np.ndarray = (top + (bottom - top) * rows / height).clip(SMALLEST, LARGEST)
    return sizes
