"""Small scenes for the metrics' tests: frames told by hand, and noisy clips from a seed."""

from collections.abc import Iterable

import numpy as np
import torch

from scalor.data.clip import Truth
from scalor.evaluation.matching import FramePair
from scalor.tracks import Tracks

SIDE = 4.0
VIEW = (64, 64)
Places = dict[int, tuple[float, float]]


def boxes(centre: np.ndarray, side: float = SIDE) -> np.ndarray:
    return np.concatenate([centre - side / 2, centre + side / 2], axis=-1)


def frame(true: Places, pred: Places, ignored: Iterable[int] = ()) -> FramePair:
    """Objects and predictions by id and centre, all of them squares of side 4."""
    true_centre = np.array(list(true.values()), dtype=float).reshape(-1, 2)
    pred_centre = np.array(list(pred.values()), dtype=float).reshape(-1, 2)
    true_id = np.array(list(true), dtype=np.int64)
    return FramePair(
        true_id,
        boxes(true_centre),
        true_centre,
        np.isin(true_id, list(ignored)),
        np.array(list(pred), dtype=np.int64),
        boxes(pred_centre),
        pred_centre,
    )


def noisy_clip(seed: int, frames: int = 12, objects: int = 6) -> list[FramePair]:
    """Walkers in 40 by 40 pixels whose predictions tremble, go missing, swap identities and see ghosts.

    Only numpy's default_rng and the order of the draws below matter: golden numbers depend on them.
    """
    rng = np.random.default_rng(seed)
    start, velocity = rng.uniform(0, 40, (objects, 2)), rng.normal(0, 1, (objects, 2))
    predicted = np.arange(objects) + 100
    sequence = []
    for t in range(frames):
        centre = start + t * velocity
        present = rng.uniform(size=objects) < 0.95
        found = present & (rng.uniform(size=objects) < 0.8)
        if rng.uniform() < 0.4:
            a, b = rng.choice(objects, 2, replace=False)
            predicted[[a, b]] = predicted[[b, a]]
        if rng.uniform() < 0.3:
            predicted[rng.integers(objects)] = 200 + t
        ghosts = rng.uniform(0, 40, (rng.integers(0, 3), 2))
        pred_centre = np.concatenate([centre[found] + rng.normal(0, 0.8, (int(found.sum()), 2)), ghosts])
        pred_id = np.concatenate([predicted[found], 300 + np.arange(len(ghosts))])
        sequence.append(
            FramePair(
                np.flatnonzero(present),
                boxes(centre[present], 6.0),
                centre[present],
                np.zeros(int(present.sum()), dtype=bool),
                pred_id,
                boxes(pred_centre, 6.0),
                pred_centre,
            )
        )
    return sequence


def truth_of(centre: np.ndarray, present: np.ndarray | None = None, visible: np.ndarray | None = None) -> Truth:
    """`centre` is [B, T, N, 2]; everything is there and fully visible unless told."""
    clips, frames, objects, _ = centre.shape
    present = np.ones((clips, frames, objects), dtype=bool) if present is None else present
    visible = np.ones((clips, frames, objects)) if visible is None else visible
    return Truth(
        id=torch.from_numpy(np.where(present, np.arange(objects), -1)),
        centre=torch.from_numpy(centre),
        box=torch.from_numpy(boxes(centre)),
        visible=torch.from_numpy(visible),
        order=torch.arange(objects).expand(clips, -1),
        owner=torch.full((clips, frames, *VIEW), -1),
    )


def tracks_of(
    centre: np.ndarray,
    present: np.ndarray | None = None,
    identity: np.ndarray | None = None,
    presence: float = 1.0,
) -> Tracks:
    """`centre` is [B, T, M, 2] and `identity` [B, T, M]. An object is discovered in its first frame."""
    clips, frames, objects, _ = centre.shape
    present = np.ones((clips, frames, objects), dtype=bool) if present is None else present
    identity = np.broadcast_to(np.arange(objects), present.shape) if identity is None else identity
    clip, time, slot = np.nonzero(present)
    order = np.lexsort((identity[present], time, clip))
    return Tracks(
        clip=clip[order],
        frame=time[order],
        id=identity[present][order],
        box=boxes(centre[present])[order],
        confidence=np.full(len(clip), presence),
        discovered=~(np.cumsum(present, axis=1)[clip, time, slot] > 1)[order],
        size=VIEW,
    )
