"""Errors of forecasts, step by step: pixels against the true frames, centres against the true centres.

A forecast observes the first `observe` frames and predicts the rest, as in the paper's conditional generation (section
5.1, experiment 3). Identities are matched at the last observed frame (strict gate, counted objects) and then kept. A
forecast is a `Tracks` that continues after `observe`, from a model or a baseline, so that one function measures all of
them. h = 0, 1, ... counts the steps after the last observed frame.

B clips, T frames, S forecast steps.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from scalor.boxes import assign
from scalor.data.clip import Truth
from scalor.errors import InputError
from scalor.evaluation.matching import pair_up, strict_gate
from scalor.tracks import Tracks, join_tracks


def frame_errors(predicted: Float[Tensor, "B T 3 H W"], true: Float[Tensor, "B T 3 H W"]) -> Float[np.ndarray, " T"]:
    """Return the mean squared pixel error of every frame, over clips, channels and pixels."""
    error: np.ndarray = (predicted.float() - true.float()).square().mean(dim=(0, 2, 3, 4)).cpu().numpy()
    return error


def copy_last_frame(frames: Float[Tensor, "B T 3 H W"], observe: int) -> Float[Tensor, "B S 3 H W"]:
    """Return the baseline forecast that repeats the last observed frame for S = T - observe steps."""
    _check_observed(observe, frames.shape[1])
    return frames[:, observe - 1 : observe].expand(-1, frames.shape[1] - observe, -1, -1, -1)


def copy_last_boxes(tracks: Tracks, observe: int, frames: int) -> Tracks:
    """Return the baseline forecast in which every object of the last observed frame stands still."""
    return _extrapolate(tracks, observe, frames, moving=False)


def constant_velocity(tracks: Tracks, observe: int, frames: int) -> Tracks:
    """Return the baseline forecast in which every object keeps its velocity between the last two observed frames.

    Positions are the tracked ones, not the ground truth. An object found only in the last observed frame stands still.
    """
    return _extrapolate(tracks, observe, frames, moving=True)


def _extrapolate(tracks: Tracks, observe: int, frames: int, moving: bool) -> Tracks:
    """Return the observed tracks, continued to `frames` frames with constant velocity, or without motion."""
    _check_observed(observe, frames)
    tracks = replace(tracks, masks=None)
    seen = tracks.select(tracks.frame < observe)
    last = tracks.select(tracks.frame == observe - 1)
    before = tracks.select(tracks.frame == observe - 2)
    step = np.zeros((len(last), 2))
    if moving:
        position = {(c, i): xy for c, i, xy in zip(before.clip, before.id, before.centre, strict=True)}
        for row, (c, i, xy) in enumerate(zip(last.clip, last.id, last.centre, strict=True)):
            step[row] = xy - position.get((c, i), xy)
    parts = [seen]
    for h in range(frames - observe):
        box = (last.box + (h + 1) * np.tile(step, 2)).astype(last.box.dtype)
        parts.append(
            replace(
                last,
                frame=np.full_like(last.frame, observe + h),
                box=box,
                discovered=np.zeros_like(last.discovered),
            )
        )
    return join_tracks(parts)


@dataclass(frozen=True)
class CentreErrors:
    """Centre distances of a forecast, one entry per step. The sum of two covers the clips of both."""

    distance: Float[np.ndarray, " S"]
    """Sum of the distances in pixels over the objects followed at this step."""
    followed: Int[np.ndarray, " S"]
    """Number of objects in view whose forecast is present."""
    lost: Int[np.ndarray, " S"]
    """Number of objects in view whose forecast is absent. They have no distance, so report this beside the mean."""

    def __add__(self, other: "CentreErrors") -> "CentreErrors":
        return CentreErrors(self.distance + other.distance, self.followed + other.followed, self.lost + other.lost)

    @property
    def mean(self) -> Float[np.ndarray, " S"]:
        """Mean distance per step in pixels; nan at a step at which no object is followed."""
        return np.where(self.followed > 0, self.distance / np.maximum(self.followed, 1), np.nan)


def centre_errors(tracks: Tracks, truth: Truth, size: float, observe: int) -> CentreErrors:
    """Return the centre errors of a forecast, from the first forecast frame to the end of the ground truth.

    Objects matched at frame `observe - 1` are measured while they are in view, occluded or not. An object that leaves
    the view and returns has a new id and is not measured. A forecast counts while its presence is above 0.5, wherever
    it is: a forecast that leaves the view has an error and is not lost.

    Parameters
    ----------
    tracks : Tracks
        Observed and forecast objects of exactly these clips.
    truth : Truth
        Ground truth of the clips.
    size : float
        Size of an object in pixels, which sets the gate.
    observe : int
        Number of observed frames.
    """
    _check_observed(observe, truth.id.shape[1])
    gate = strict_gate(size)
    sure = tracks.select((tracks.confidence > 0.5) & (tracks.frame >= observe))
    forecasts = dict(
        zip(
            zip(sure.clip.tolist(), sure.frame.tolist(), sure.id.tolist(), strict=True),
            sure.centre,
            strict=True,
        )
    )
    steps = truth.id.shape[1] - observe
    distance, followed, lost = np.zeros(steps), np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    for clip, sequence in enumerate(pair_up(tracks, truth, size)):
        start = sequence[observe - 1]
        rows = np.flatnonzero(~start.ignored)
        partner = assign(start.cost(gate)[rows])
        known = {int(start.true_id[i]): int(start.pred_id[j]) for i, j in zip(rows, partner, strict=True) if j >= 0}
        for h, pair in enumerate(sequence[observe:]):
            for identity, xy in zip(pair.true_id.tolist(), pair.true_centre, strict=True):
                if identity not in known:
                    continue
                forecast = forecasts.get((clip, observe + h, known[identity]))
                if forecast is None:
                    lost[h] += 1
                else:
                    followed[h] += 1
                    distance[h] += np.hypot(*(xy - forecast))
    return CentreErrors(distance, followed, lost)


def _check_observed(observe: int, frames: int) -> None:
    """Raise an InputError unless frames are left to forecast."""
    if not 0 < observe < frames:
        raise InputError(f"observe is {observe}: it must lie between 1 and {frames - 1}, one less than the frames.")
