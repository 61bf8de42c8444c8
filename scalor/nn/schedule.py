"""What changes during training, as pure functions of the step."""

import math
from dataclasses import dataclass

from scalor.config import TrainConfig
from scalor.nn.distributions import log_odds


@dataclass(frozen=True)
class Anneals:
    """The values in force at one step."""

    learning_rate: float
    temperature: float
    presence_prior: float
    length: int
    """Frames in a training sequence."""
    cut_gradients: bool
    """Whether gradients end at each frame."""


def anneals(train: TrainConfig, step: int) -> Anneals:
    first, last, steps = train.temperature
    temperature = first + (last - first) * progress(step, steps)
    first, last, steps = train.presence_prior
    presence_prior = sigmoid(log_odds(first) + (log_odds(last) - log_odds(first)) * progress(step, steps))
    length = next(frames for start, frames in reversed(train.lengths) if step >= start)
    left = max(0, train.steps - step) / train.cooldown if train.cooldown else 1.0
    learning_rate = train.learning_rate * min(1.0, left)
    return Anneals(learning_rate, temperature, presence_prior, length, step < train.gradients_through_time)


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def progress(step: int, steps: int) -> float:
    """0 at the first step, 1 from `steps` on."""
    return min(1.0, step / steps) if steps else 1.0
