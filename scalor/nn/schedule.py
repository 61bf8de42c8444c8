"""Training schedules as pure functions of the step: learning rate, temperature, presence prior, sequence length."""

import math
from dataclasses import dataclass

from scalor.config import TrainConfig
from scalor.nn.distributions import log_odds


@dataclass(frozen=True)
class Anneals:
    """The scheduled values at one step."""

    learning_rate: float
    temperature: float
    """Gumbel temperature of relaxed presence."""
    presence_prior: float
    """Prior probability of a discovery per cell."""
    length: int
    """Number of frames in a training sequence."""
    cut_gradients: bool
    """True where gradients between frames are cut."""


def anneals(train: TrainConfig, step: int) -> Anneals:
    """Return the scheduled values at a step.

    The temperature changes linearly. The presence prior changes linearly in log-odds. The learning rate is constant and
    falls linearly to zero over the last `train.cooldown` steps.
    """
    first, last, steps = train.temperature
    temperature = first + (last - first) * progress(step, steps)
    first, last, steps = train.presence_prior
    presence_prior = sigmoid(log_odds(first) + (log_odds(last) - log_odds(first)) * progress(step, steps))
    length = next(frames for start, frames in reversed(train.lengths) if step >= start)
    left = max(0, train.steps - step) / train.cooldown if train.cooldown else 1.0
    learning_rate = train.learning_rate * min(1.0, left)
    return Anneals(learning_rate, temperature, presence_prior, length, step < train.gradients_through_time)


def sigmoid(logit: float) -> float:
    """Return the probability of a logit."""
    return 1 / (1 + math.exp(-logit))


def progress(step: int, steps: int) -> float:
    """Return the progress of a schedule: 0 at the first step, 1 from `steps` on."""
    return min(1.0, step / steps) if steps else 1.0
