"""Evaluate a model on unseen clips of its test scenes, with all metrics in one record.

A system without objects is evaluated by its frames alone.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from scalor.config import Config, SceneConfig, SystemConfig
from scalor.data.clip import Clip
from scalor.data.scenes import Scenes
from scalor.evaluation import TrackingCounts, TrackingReport, count_tracks
from scalor.evaluation.prediction import (
    CentreErrors,
    centre_errors,
    constant_velocity,
    copy_last_boxes,
    copy_last_frame,
    frame_errors,
)
from scalor.nn.distributions import Mode
from scalor.nn.interface import Model, Tracker
from scalor.tracks import Tracks

TEST_SEED = 0
"""Seed of the test scenes. It does not depend on the training, so that all models are tested on the same clips."""


@dataclass(frozen=True)
class Forecast:
    """Errors of generated frames, one entry per step after the last observed frame.

    The errors of objects are None for a system without objects.
    """

    observe: int
    """Number of observed frames."""
    mse: list[float]
    """Mean squared error of the model's frames, with pixels in [0, 1]."""
    mse_copy_last: list[float]
    """Mean squared error of the baseline that repeats the last observed frame."""
    centre: list[float] | None
    """Mean distance between forecast and true centres in pixels, over the objects that are not lost."""
    centre_copy_last: list[float] | None
    """The same for the baseline in which objects stand still."""
    centre_constant_velocity: list[float] | None
    """The same for the baseline of constant velocity."""
    lost: list[int] | None
    """Number of objects that were matched at the last observed frame, are in view, and are absent from the forecast."""


@dataclass(frozen=True)
class Report:
    """All metrics of a model on a test set."""

    tracking: TrackingReport | None
    """Tracking metrics; None for a system without objects."""
    clips: int
    """Number of clips."""
    mse: float
    """Mean squared error of the reconstruction, with pixels in [0, 1]."""
    nll: float | None
    """Upper bound of the negative log-likelihood in nats per pixel over the whole sequence; None if not computed."""
    nll_samples: int
    """Number of importance samples of `nll`."""
    forecast: Forecast | None
    """Forecast errors; None if the clips are too short."""

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as a dictionary for JSON."""
        return {
            **(self.tracking.to_dict() if self.tracking else {}),
            "clips": self.clips,
            "mse": self.mse,
            "nll": self.nll,
            "nll_samples": self.nll_samples,
            "forecast": vars(self.forecast) if self.forecast else None,
        }


def evaluate(
    model: Model,
    config: Config[SystemConfig],
    clips: int = 64,
    batch: int = 32,
    nll_samples: int = 0,
    observe: int = 5,
    quiet: bool = False,
) -> Report:
    """Evaluate a model on the first `clips` clips of the config's test scenes, which are the same for every model.

    Parameters
    ----------
    model : Model
        The model to evaluate.
    config : Config
        Its config.
    clips : int
        Number of clips.
    batch : int
        Number of clips evaluated at a time.
    nll_samples : int
        Number of importance samples of the negative log-likelihood; 0 leaves it out.
    observe : int
        Number of frames that a forecast observes.
    quiet : bool
        Hide the progress bar.

    Returns
    -------
    Report
        All metrics.
    """
    counts, squared, nats = TrackingCounts(), 0.0, 0.0
    forecast = ForecastSums(observe)
    for clip in test_clips(model, config, clips, batch, quiet):
        if isinstance(model, Tracker):
            tracked = model.reconstruct(clip.observation)
            counts += count_tracks(tracked.tracks, clip.truth, config.test.size)
            pictures = tracked.frames
        else:
            pictures = model.reconstruct(clip.observation).frames
        squared += float((pictures - clip.frames).square().mean((1, 2, 3, 4)).sum())
        if nll_samples:
            nats -= float(log_likelihood(model, config, clip, nll_samples).sum())
        if config.test.length > observe:
            forecast.add(model, clip, config.test.size)
    pixels = config.test.frame[0] * config.test.frame[1]
    return Report(
        tracking=counts.report() if isinstance(model, Tracker) else None,
        clips=clips,
        mse=squared / clips,
        nll=nats / clips / pixels if nll_samples else None,
        nll_samples=nll_samples,
        forecast=forecast.result() if config.test.length > observe else None,
    )


def log_likelihood(model: Model, config: Config[SystemConfig], clip: Clip, samples: int) -> Float[Tensor, " B"]:
    """Return the importance-weighted bound on the log-likelihood of each clip, in nats."""
    if isinstance(model, Tracker):
        return model.log_likelihood(clip.observation, samples, config.train.presence_prior[1])
    return model.log_likelihood(clip.observation, samples)


def test_clips(model: Model, config: Config[SystemConfig], clips: int, batch: int, quiet: bool) -> Iterator[Clip]:
    """Yield the test set in batches, on the model's device."""
    device = next(model.parameters()).device
    scenes = Scenes(config.test, TEST_SEED, "test", device)
    for first in tqdm(range(0, clips, batch), disable=quiet, file=sys.stderr, unit="batch", leave=False):
        yield scenes.clips(first, min(batch, clips - first))


class WholeClipTracker(Protocol):
    """What tracks whole clips without a trained model, such as the classical trackers."""

    def track(self, frames: object) -> Tracks:
        """Return every object of every frame."""


def evaluate_tracker(tracker: WholeClipTracker, scene: SceneConfig, clips: int, batch: int = 32) -> TrackingReport:
    """Return the tracking metrics on the first `clips` clips of the test scenes, on which models are also tested."""
    scenes, counts = Scenes(scene, TEST_SEED, "test"), TrackingCounts()
    for first in tqdm(range(0, clips, batch), file=sys.stderr, unit="batch", leave=False):
        clip = scenes.clips(first, min(batch, clips - first))
        counts += count_tracks(tracker.track(clip.frames), clip.truth, scene.size)
    return counts.report()


class ForecastSums:
    """Sums of forecast errors over batches."""

    def __init__(self, observe: int) -> None:
        self.observe, self.clips = observe, 0
        self.squares: dict[str, np.ndarray] = {}
        self.centres: dict[str, CentreErrors] = {}

    def add(self, model: Model, clip: Clip, size: float) -> None:
        """Forecast a batch of clips with the model and add all errors. `size` is that of an object in pixels."""
        horizon = clip.frames.shape[1] - self.observe
        if isinstance(model, Tracker):
            rollout = model.generate(clip.observation, self.observe, horizon, estimator=Mode())
            self.add_centres(rollout.tracks, clip, size)
            frames = rollout.frames
        else:
            frames = model.generate(clip.observation, self.observe, horizon, estimator=Mode()).frames
        self.add_frames(frames, clip)

    def add_frames(self, imagined: Float[Tensor, "B T 3 H W"], clip: Clip) -> None:
        """Add the pixel errors of the model and of the baseline."""
        future = clip.frames[:, self.observe :]
        self.clips += len(future)
        for name, frames in {
            "model": imagined[:, self.observe :],
            "copy_last": copy_last_frame(clip.frames, self.observe),
        }.items():
            errors = frame_errors(frames, future) * len(future)
            self.squares[name] = self.squares.get(name, 0.0) + errors

    def add_centres(self, imagined: Tracks, clip: Clip, size: float) -> None:
        """Add the centre errors of the model and of the baselines."""
        observe, length = self.observe, clip.frames.shape[1]
        for name, tracks in {
            "model": imagined,
            "copy_last": copy_last_boxes(imagined, observe, length),
            "constant_velocity": constant_velocity(imagined, observe, length),
        }.items():
            found = centre_errors(tracks, clip.truth, size, observe)
            self.centres[name] = self.centres[name] + found if name in self.centres else found

    def result(self) -> Forecast:
        """Return the mean errors."""
        return Forecast(
            observe=self.observe,
            mse=(self.squares["model"] / self.clips).tolist(),
            mse_copy_last=(self.squares["copy_last"] / self.clips).tolist(),
            centre=self.centre("model"),
            centre_copy_last=self.centre("copy_last"),
            centre_constant_velocity=self.centre("constant_velocity"),
            lost=self.centres["model"].lost.tolist() if self.centres else None,
        )

    def centre(self, name: str) -> list[float] | None:
        """Return the mean centre error of the model or of a baseline."""
        return self.centres[name].mean.tolist() if self.centres else None
