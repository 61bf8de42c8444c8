"""Long rollouts as G-SWM and DDLP measure them: centres, PSNR and SSIM of every generated frame.

A rollout observes the first frames of a clip and generates all others, the most likely future. True and predicted
objects are paired once, in the first generated frame, and keep their partners. G-SWM calls the mean distance of the
pairs MED; its unit is the side of the frame.

B clips, T frames, S generated frames.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from scalor.boxes import assign
from scalor.config import Config, SystemConfig
from scalor.data.clip import Clip, Truth
from scalor.evaluation.image_quality import psnr, ssim
from scalor.evaluation.prediction import constant_velocity, copy_last_boxes, copy_last_frame
from scalor.evaluation.report import test_clips
from scalor.nn.distributions import Mode
from scalor.nn.interface import Tracker
from scalor.tracks import Tracks

SURE = 0.5
"""Presence above which a predicted object counts."""


@dataclass(frozen=True)
class Rollouts:
    """Means over clips, one entry per generated frame; None where nothing is left to measure."""

    observe: int
    """Number of observed frames."""
    med: list[float | None]
    """Mean distance of paired centres, in sides of the frame."""
    med_constant_velocity: list[float | None]
    """The same if objects keep the velocity of the last two observed frames."""
    med_copy_last: list[float | None]
    """The same if objects stand still."""
    unpaired: float
    """Share of the true objects that have no partner in the first generated frame."""
    lost: list[float]
    """Share of the pairs of which the predicted object is gone."""
    psnr: list[float]
    """Peak signal-to-noise ratio, dB."""
    ssim: list[float]
    """Structural similarity."""
    psnr_copy_last: list[float]
    """PSNR of the last observed frame, repeated."""
    ssim_copy_last: list[float]
    """SSIM of the last observed frame, repeated."""


@dataclass(frozen=True)
class PairDistances:
    """Distances of paired centres. The sum of two covers the clips of both."""

    distance: Float[np.ndarray, " S"]
    """Sum over the pairs of which both objects are there, in sides of the frame."""
    followed: Int[np.ndarray, " S"]
    """Number of these pairs."""
    pairs: int
    objects: int
    """Number of true objects in the first generated frame."""

    def __add__(self, other: "PairDistances") -> "PairDistances":
        return PairDistances(
            self.distance + other.distance,
            self.followed + other.followed,
            self.pairs + other.pairs,
            self.objects + other.objects,
        )

    @property
    def mean(self) -> list[float | None]:
        """Return the mean distance in each generated frame."""
        found = zip(self.distance.tolist(), self.followed.tolist(), strict=True)
        return [distance / count if count else None for distance, count in found]


def evaluate_rollouts(
    model: Tracker, config: Config[SystemConfig], clips: int, observe: int = 10, batch: int = 32, quiet: bool = False
) -> Rollouts:
    """Measure rollouts of a model on the first test clips of its config.

    Parameters
    ----------
    model : Tracker
        The model.
    config : Config
        Its config. Its test scenes must be longer than `observe`.
    clips : int
        Number of clips.
    observe : int
        Number of frames that the model observes.
    batch : int
        Number of clips at a time.
    quiet : bool
        Hide the progress bar.
    """
    distances: dict[str, PairDistances] = {}
    quality: dict[str, np.ndarray] = {}
    length = config.test.length
    for clip in test_clips(model, config, clips, batch, quiet):
        rollout = model.generate(clip.observation, observe, length - observe, estimator=Mode())
        tracks = {
            "model": rollout.tracks,
            "constant_velocity": constant_velocity(rollout.tracks, observe, length),
            "copy_last": copy_last_boxes(rollout.tracks, observe, length),
        }
        for name, one in tracks.items():
            found = pair_distances(one, clip.truth, observe, config.test.frame[1])
            distances[name] = distances[name] + found if name in distances else found
        for name, values in frame_quality(rollout.frames[:, observe:], clip, observe).items():
            quality[name] = quality.get(name, 0) + values
    own = distances["model"]
    return Rollouts(
        observe=observe,
        med=own.mean,
        med_constant_velocity=distances["constant_velocity"].mean,
        med_copy_last=distances["copy_last"].mean,
        unpaired=1 - own.pairs / max(1, own.objects),
        lost=(1 - own.followed / max(1, own.pairs)).tolist(),
        **{name: (values / clips).tolist() for name, values in quality.items()},
    )


def frame_quality(generated: Float[Tensor, "B S 3 H W"], clip: Clip, observe: int) -> dict[str, np.ndarray]:
    """Return PSNR and SSIM of each generated frame, and of the last observed frame, as sums over the clips."""
    true = clip.frames[:, observe:]
    copied = copy_last_frame(clip.frames, observe)
    return {
        f"{name}{end}": measure(frames, true).sum(0).cpu().numpy()
        for end, frames in (("", generated), ("_copy_last", copied))
        for name, measure in (("psnr", psnr), ("ssim", ssim))
    }


def pair_distances(tracks: Tracks, truth: Truth, observe: int, side: int) -> PairDistances:
    """Pair objects in the first generated frame by the least sum of distances, and follow the pairs to the end.

    Every true object in view counts, hidden or not, and no distance is too large for a pair, as in G-SWM. A true object
    that leaves the view, or a predicted one that is gone, has no distance from then on.
    """
    steps = truth.id.shape[1] - observe
    distance, followed, pairs, objects = np.zeros(steps), np.zeros(steps, np.int64), 0, 0
    sure = tracks.select((tracks.confidence > SURE) & (tracks.frame >= observe))
    rows = zip(sure.clip.tolist(), sure.frame.tolist(), sure.id.tolist(), strict=True)
    predicted: dict[tuple[int, int], dict[int, np.ndarray]] = {}
    for (clip, frame, name), centre in zip(rows, sure.centre, strict=True):
        predicted.setdefault((clip, frame), {})[name] = centre
    ids, centres = truth.id.cpu().numpy(), truth.centre.cpu().numpy()
    for clip in range(len(ids)):
        there = np.flatnonzero(ids[clip, observe] >= 0)
        first = predicted.get((clip, observe), {})
        found = np.array(list(first.values())).reshape(-1, 2)
        partner = assign(np.linalg.norm(centres[clip, observe, there][:, None] - found, axis=-1))
        names = list(first)
        known = {int(which): names[j] for which, j in zip(there, partner, strict=True) if j >= 0}
        pairs, objects = pairs + len(known), objects + len(there)
        for h in range(steps):
            now = predicted.get((clip, observe + h), {})
            for which, name in known.items():
                if name in now and ids[clip, observe + h, which] == ids[clip, observe, which]:
                    distance[h] += float(np.hypot(*(centres[clip, observe + h, which] - now[name]))) / side
                    followed[h] += 1
    return PairDistances(distance, followed, pairs, objects)
