"""Sequences whose law is known, for systems that see frames whole."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scalor import Config, SceneConfig, TrainConfig, systems
from scalor.config import SystemConfig
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.nn.interface import Model
from scalor.training.step import TrainingStep, anneals

CPU = torch.device("cpu")
SIGMA = 0.2
LENGTH = 4
KEPT, SPREAD = 0.8, 0.12
"""How much of a grey level's distance from the middle a frame keeps, and how far levels go from it."""


@dataclass(frozen=True)
class Frames:
    """What a training step wants of a clip."""

    observation: Observation


class Sequences(Scenes):
    """Sequences as scenes: other clips for every step, the same ones for the same step."""

    def __init__(self, draw: Callable[[int, int, torch.Generator], Tensor]) -> None:
        self.draw = draw

    def clips(self, index: Tensor, length: int) -> Frames:  # type: ignore[override]
        return Frames(Observation(self.draw(len(index), length, torch.Generator().manual_seed(int(index[0])))))


def train(config: SystemConfig, draw: Callable[[int, int, torch.Generator], Tensor], steps: int, **more: Any) -> Model:
    """A model of the config, trained on what `draw` draws."""
    settings = {"steps": steps, "cooldown": steps // 3, "batch": 32, "learning_rate": 4e-3, "lengths": ((0, LENGTH),)}
    scene = SceneConfig(frame=config.frame, length=20)
    whole = Config(config, scene, scene, TrainConfig(**{**settings, **more}))
    torch.manual_seed(0)
    model = systems.build(config)
    step = TrainingStep(whole, model, Sequences(draw), CPU)
    for number in range(steps):
        step(number, anneals(whole.train, number))
    return model.eval()


def stripes(side: int = 4) -> Tensor:
    """A picture of -1 and 1."""
    picture = torch.ones(3, side, side)
    picture[:, :, ::2] = -1
    return picture


def wandering(clips: int, length: int, chance: torch.Generator) -> Tensor:
    """Linear and Gaussian: stripes whose strength wanders about zero, on grey, with the pixel noise of the models."""
    levels = [SPREAD * torch.randn(clips, generator=chance)]
    for _ in range(length - 1):
        fresh = SPREAD * math.sqrt(1 - KEPT**2) * torch.randn(clips, generator=chance)
        levels.append(KEPT * levels[-1] + fresh)
    mean = 0.5 + torch.stack(levels, 1)[..., None, None, None] * stripes()
    return mean + SIGMA * torch.randn(mean.shape, generator=chance)


def exact_log_likelihood(video: Tensor) -> Tensor:
    """Of clips that `wandering` drew, nats a clip: all their pixels are one normal."""
    length, picture = video.shape[1], stripes().double().flatten()
    lags = (torch.arange(length)[:, None] - torch.arange(length)).abs()
    levels = SPREAD**2 * KEPT ** lags.double()
    shared = torch.kron(levels, picture[:, None] * picture)
    law = torch.distributions.MultivariateNormal(
        torch.full((len(shared),), 0.5, dtype=torch.double), shared + SIGMA**2 * torch.eye(len(shared))
    )
    found: Tensor = law.log_prob(video.double().flatten(1))
    return found


def going_round(clips: int, length: int, chance: torch.Generator) -> Tensor:
    """Nothing is left to chance but the start: a bright bar moves a pixel a frame, and comes in again on the left."""
    start = torch.randint(8, (clips, 1), generator=chance)
    place = (start + torch.arange(length)) % 8
    columns = (torch.arange(8) - place[..., None]) % 8
    bar = (columns < 2).float()
    return bar[:, :, None, None, :].expand(clips, length, 3, 8, 8).contiguous()
