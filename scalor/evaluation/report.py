"""Run a model on unseen clips of its test scenes and put every metric into one record."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from scalor.config import Config
from scalor.data.clip import Clip
from scalor.data.scenes import Scenes
from scalor.distributions import Mode
from scalor.evaluation import TrackingCounts, TrackingReport, count_tracks
from scalor.evaluation.prediction import (
    CentreErrors,
    centre_errors,
    constant_velocity,
    copy_last_boxes,
    copy_last_frame,
    frame_errors,
)
from scalor.model.scalor import SCALOR

TEST_SEED = 0
"""Whatever a model was trained with, it is tested on the same clips."""


@dataclass(frozen=True)
class Forecast:
    """Errors of imagined frames, step by step after the last observed one."""

    observe: int
    mse: list[float]
    mse_copy_last: list[float]
    centre: list[float]
    """Mean distance of forecast and true centres, pixels, over the objects not lost."""
    centre_copy_last: list[float]
    centre_constant_velocity: list[float]
    lost: list[int]
    """Objects followed when the forecast began that it no longer shows."""


@dataclass(frozen=True)
class Report:
    """Everything measured on a test set."""

    tracking: TrackingReport
    mse: float
    """Mean squared error of the reconstruction, pixels in [0, 1]."""
    nll: float | None
    """Negative log-likelihood bound, nats per pixel over the whole sequence, when asked for."""
    nll_samples: int
    forecast: Forecast | None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.tracking.to_dict(),
            "mse": self.mse,
            "nll": self.nll,
            "nll_samples": self.nll_samples,
            "forecast": vars(self.forecast) if self.forecast else None,
        }


def evaluate(
    model: SCALOR,
    config: Config,
    clips: int = 64,
    batch: int = 32,
    nll_samples: int = 0,
    observe: int = 5,
    quiet: bool = False,
) -> Report:
    """Metrics on the first `clips` clips of the config's test scenes; the same clips for every model."""
    counts, squared, nats = TrackingCounts(), 0.0, 0.0
    forecast = ForecastSums(observe)
    for clip in test_clips(model, config, clips, batch, quiet):
        seen = model.reconstruct(clip.frames)
        counts += count_tracks(seen.tracks, clip.truth, config.test.size)
        squared += float((seen.frames - clip.frames).square().mean((1, 2, 3, 4)).sum())
        if nll_samples:
            nats -= float(model.log_likelihood(clip.frames, nll_samples, config.train.presence_prior[1]).sum())
        if config.test.length > observe:
            forecast.add(model, clip, config.test.size)
    pixels = config.test.frame[0] * config.test.frame[1]
    return Report(
        tracking=counts.report(),
        mse=squared / clips,
        nll=nats / clips / pixels if nll_samples else None,
        nll_samples=nll_samples,
        forecast=forecast.result() if config.test.length > observe else None,
    )


def test_clips(model: SCALOR, config: Config, clips: int, batch: int, quiet: bool) -> Iterator[Clip]:
    """The test set in batches, on the model's device."""
    device = next(model.parameters()).device
    scenes = Scenes(config.test, TEST_SEED, "test", device)
    for first in tqdm(range(0, clips, batch), disable=quiet, file=sys.stderr, unit="batch", leave=False):
        yield scenes.clips(first, min(batch, clips - first))


class ForecastSums:
    """Adds up forecast errors batch by batch."""

    def __init__(self, observe: int) -> None:
        self.observe, self.clips = observe, 0
        self.squares: dict[str, np.ndarray] = {}
        self.centres: dict[str, CentreErrors] = {}

    def add(self, model: SCALOR, clip: Clip, size: float) -> None:
        observe, length = self.observe, clip.frames.shape[1]
        future = clip.frames[:, observe:]
        rollout = model.generate(clip.frames, observe, length - observe, estimator=Mode())
        self.clips += len(future)
        for name, frames in {
            "model": rollout.frames[:, observe:],
            "copy_last": copy_last_frame(clip.frames, observe),
        }.items():
            errors = frame_errors(frames, future) * len(future)
            self.squares[name] = self.squares.get(name, 0.0) + errors
        for name, tracks in {
            "model": rollout.tracks,
            "copy_last": copy_last_boxes(rollout.tracks, observe, length),
            "constant_velocity": constant_velocity(rollout.tracks, observe, length),
        }.items():
            found = centre_errors(tracks, clip.truth, size, observe)
            self.centres[name] = self.centres[name] + found if name in self.centres else found

    def result(self) -> Forecast:
        return Forecast(
            observe=self.observe,
            mse=(self.squares["model"] / self.clips).tolist(),
            mse_copy_last=(self.squares["copy_last"] / self.clips).tolist(),
            centre=self.centres["model"].mean.tolist(),
            centre_copy_last=self.centres["copy_last"].mean.tolist(),
            centre_constant_velocity=self.centres["constant_velocity"].mean.tolist(),
            lost=self.centres["model"].lost.tolist(),
        )
