"""One optimiser step: scenes, bound, gradients, clipping, update. No value is read on the host.

The schedules (learning rate, temperature, presence prior, sequence length) are pure functions of the step.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from scalor.config import Config, TrainConfig
from scalor.data import hashing
from scalor.data.clip import Truth
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.model.lesson import LESSON_TERMS
from scalor.nn import ranks
from scalor.nn.distributions import Noise, log_odds
from scalor.nn.interface import Annealed, Model
from scalor.nn.records import copied, tensors


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
    colour_counts: float = 1.0
    """How far colour counts in what propagated objects explain."""
    parts_alone: bool = False
    """True where the background and the appearance of glimpses are learned apart, without objects."""


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
    cut, alone = step < train.gradients_through_time, step < train.parts_first
    first_step, last_step = train.colour_counts
    colour_counts = progress(max(0, step - first_step), last_step - first_step)
    return Anneals(learning_rate, temperature, presence_prior, length, cut, colour_counts, alone)


def sigmoid(logit: float) -> float:
    """Return the probability of a logit."""
    return 1 / (1 + math.exp(-logit))


def progress(step: int, steps: int) -> float:
    """Return the progress of a schedule: 0 at the first step, 1 from `steps` on."""
    return min(1.0, step / steps) if steps else 1.0


class TrainingStep:
    """A callable training step.

    `step(number, anneals)` trains once and returns the metrics as a tensor on the device, in the order of `names`.
    """

    def __init__(self, config: Config[Any], model: Model, scenes: Scenes, device: torch.device) -> None:
        self.config, self.model, self.scenes, self.device = config, model, scenes, device
        self.learning_rate = torch.zeros((), device=device)
        self.optimizer = torch.optim.Adam(
            model.parameters(),
            lr=self.learning_rate,
            betas=config.train.betas,
            eps=config.train.epsilon,
            fused=True,
            capturable=device.type == "cuda",
        )
        self.random = torch.Generator(device)
        ranks.check_batch(config.train.batch)
        # Rank r of N has the clips r, r + N, ... of every batch, so N ranks together learn from the same clips as one.
        self.within_batch = torch.arange(ranks.rank(), config.train.batch, ranks.count(), device=device)
        self.index = torch.zeros_like(self.within_batch)
        self.temperature = torch.ones((), device=device)
        self.presence_prior = torch.ones((), device=device)
        self.colour_counts = torch.ones((), device=device)
        self.bad_in_a_row = torch.zeros((), device=device)
        self.usual_norm = torch.zeros((), device=device)
        self.taught = config.train.lesson > 0
        self.reported = (*model.reported, *(LESSON_TERMS if self.taught else ()))
        self.names = ("elbo", *self.reported, "gradient_norm", "skipped")
        self.metrics = torch.zeros(len(self.names), device=device)
        self.captured: Captured | None = None
        self.bound = model.compiled_bound() if device.type == "cuda" and config.train.compile else model.bound
        if device.type == "cuda":
            self.main, self.beside = torch.cuda.Stream(device), torch.cuda.Stream(device)
        else:
            # Gradients become denormal numbers, with which a CPU takes many times as long.
            torch.set_flush_denormal(True)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.prepare_optimizer()

    def prepare_optimizer(self) -> None:
        """Create the state of the optimiser by a step that changes nothing, because a capture must not create it."""
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.update(torch.ones((), device=self.device))

    def __call__(self, number: int, now: Anneals) -> Tensor:
        """Run one step and return its metrics. On a GPU, replay the graph that was captured for its length of clips."""
        self.learning_rate.fill_(now.learning_rate)
        self.temperature.fill_(now.temperature)
        self.presence_prior.fill_(now.presence_prior)
        self.colour_counts.fill_(now.colour_counts)
        if self.device.type == "cuda":
            key = (now.length, now.cut_gradients, now.parts_alone)
            if self.captured is None or self.captured.key != key:
                self.captured = None  # frees the last length's memory first
                self.captured = Captured(self, now, number)
            self.captured.replay(number)
        else:
            self.count_clips(number)
            self.run(self.draw_batch(now.length), self.draw_noise(number, now), now)
        return self.metrics

    def count_clips(self, number: int) -> None:
        """Set `index` to the numbers of the clips of a step; every step has its own clips.

        They are computed on the device, because a copy from the host would wait for the device.
        """
        torch.add(self.within_batch, number * self.config.train.batch, out=self.index)

    def draw_batch(self, length: int) -> "Batch":
        """Return the clips whose numbers are in `index`."""
        clip = self.scenes.clips(self.index, length=length)
        return Batch(clip.observation, clip.truth if self.taught else None)

    def draw_noise(self, number: int, now: Anneals) -> Noise:
        """Return the noise of a step. On one kind of device it is always the same."""
        normals, uniforms = self.empty_noise(now.length)
        self.fill_noise(number, normals, uniforms)
        return Noise(normals, uniforms)

    def empty_noise(self, length: int) -> tuple[Tensor, Tensor]:
        """Return memory for the normal and uniform numbers of a step."""
        normals, uniforms = self.model.noise_per_frame(self.config.scene.frame)
        shape = (length, len(self.within_batch))
        return (
            torch.empty(*shape, normals, device=self.device),
            torch.empty(*shape, uniforms, device=self.device),
        )

    def fill_noise(self, number: int, normals: Tensor, uniforms: Tensor) -> None:
        """Draw the noise of a step in place, from its number and the seed of the training.

        Several ranks draw the noise of the whole batch, and each keeps that of its own clips.
        """
        self.random.manual_seed(hashing.mix(hashing.number(self.config.train.seed) ^ hashing.number(number)))
        if ranks.count() == 1:
            normals.normal_(generator=self.random)
            uniforms.uniform_(generator=self.random)
            return
        for own, draw in ((normals, Tensor.normal_), (uniforms, Tensor.uniform_)):
            whole = own.new_empty(len(own), self.config.train.batch, own.shape[-1])
            own.copy_(draw(whole, generator=self.random)[:, ranks.rank() :: ranks.count()])

    def run(self, batch: "Batch", noise: Noise, now: Anneals, learn: bool = True) -> None:
        """Run the step. If `learn` is false, the weights and the optimiser do not change."""
        video = batch.video
        annealed = Annealed(
            self.temperature,
            self.presence_prior,
            now.cut_gradients,
            self.config.train.clip_object,
            self.colour_counts,
            now.parts_alone,
        )
        with self.autocast():
            bound = self.bound(video, noise, annealed, batch.truth)
        elbo = bound.elbo.mean()
        loss = -elbo / video.values_per_clip
        if bound.lesson is not None:
            loss = loss + self.config.train.lesson * bound.lesson.mean()
        values = torch.stack([bound.numbers[name] for name in self.reported]).mean(1)
        for parameter in self.model.parameters():
            parameter.grad = None
        # Run the backward pass in this thread: with torch 2.11 a backward pass in autograd's own thread sometimes
        # crashed while it was being compiled or captured.
        with torch.autograd.set_multithreading_enabled(False):
            loss.backward()
        numbers = torch.cat([elbo[None], values]).detach()
        numbers = ranks.average_gradients(self.model.parameters(), numbers)
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        largest = self.max_norm()
        torch._foreach_mul_(gradients, (largest / (norm + 1e-6)).clamp(max=1))
        skipped = 1 - torch.isfinite(norm).float()
        if learn:
            self.update(skipped)
            self.update_norm_ema(torch.where(norm.isfinite(), torch.minimum(norm, largest), norm))
            self.bad_in_a_row.copy_((self.bad_in_a_row + 1) * skipped)
        self.metrics.copy_(torch.cat([numbers, norm[None], skipped[None]]).detach())

    def max_norm(self) -> Tensor:
        """Return the norm to which longer gradients are clipped.

        It is `train.clip_norm` or, if smaller, `train.clip_usual` times the usual norm. Gradients far above the usual
        norm were seen before trainings collapsed (docs/log.md).
        """
        train = self.config.train
        fixed = torch.full_like(self.usual_norm, train.clip_norm)
        if train.clip_usual == 0:
            return fixed
        usual = torch.where(self.usual_norm > 0, train.clip_usual * self.usual_norm, fixed)
        return torch.minimum(usual, fixed)

    def update_norm_ema(self, norm: Tensor) -> None:
        """Update the usual norm, an exponential moving average (geometric) of the norms.

        Norms that are not finite are ignored.
        """
        usual = torch.where(self.usual_norm > 0, self.usual_norm, norm)
        usual = usual * (norm / usual) ** self.config.train.clip_usual_rate
        self.usual_norm.copy_(torch.where(usual.isfinite(), usual, self.usual_norm))

    def update(self, skipped: Tensor) -> None:
        """Run a step of Adam that does nothing if `skipped` is 1. It uses the hook of gradient scalers."""
        self.optimizer.found_inf = skipped  # type: ignore[attr-defined]
        self.optimizer.grad_scale = None  # type: ignore[attr-defined]
        self.optimizer.step()

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context of the precision to compute in; "auto" is bfloat16 on a GPU and float32 elsewhere."""
        precision = self.config.train.precision
        if precision == "auto":
            precision = "bf16" if self.device.type == "cuda" else "float32"
        return torch.autocast(self.device.type, torch.bfloat16) if precision == "bf16" else nullcontext()


class Batch(NamedTuple):
    """The clips of a step."""

    video: Observation
    """[B, T]."""
    truth: Truth | None
    """Ground truth of the clips; None unless `train.lesson` is on."""


class Captured:
    """A training step of one sequence length as a CUDA graph.

    The graph has two parallel branches: the step itself, and the drawing of the next step's scenes.
    """

    def __init__(self, step: TrainingStep, now: Anneals, number: int) -> None:
        self.key = (now.length, now.cut_gradients, now.parts_alone)
        self.step, self.length = step, now.length
        self.noise = step.empty_noise(now.length)
        step.fill_noise(number, *self.noise)
        self.batch = copied(self.draw(number))
        self.ready = number  # the step whose scenes `batch` holds
        step.main.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(step.main):
            for _ in range(2):  # warm-up: kernels load and libraries plan here, not in the capture
                self.run(now, learn=False)
        torch.cuda.current_stream().wait_stream(step.main)
        self.graph = torch.cuda.CUDAGraph()
        # cuBLAS keeps one workspace per stream. This graph must have its own, because many runs share few streams.
        torch._C._cuda_clearCublasWorkspaces()
        with torch.cuda.graph(self.graph, stream=step.main):
            step.beside.wait_stream(step.main)
            with torch.cuda.stream(step.beside):
                upcoming = step.draw_batch(self.length)
            self.run(now, learn=True)
            step.main.wait_stream(step.beside)
            self.keep(upcoming)
        torch._C._cuda_clearCublasWorkspaces()

    def run(self, now: Anneals, learn: bool) -> None:
        """Run the step on the batch and the noise that the graph reads."""
        self.step.run(self.batch, Noise(*self.noise), now, learn)

    def draw(self, number: int) -> Batch:
        """Draw the batch of a step."""
        self.step.count_clips(number)
        return self.step.draw_batch(self.length)

    def keep(self, batch: Batch) -> None:
        """Copy the clips of the next step into `batch`, in place."""
        for old, new in zip(tensors(self.batch), tensors(batch), strict=True):
            old.copy_(new)

    def replay(self, number: int) -> None:
        """Run a step, and draw the scenes of the next one."""
        if self.ready != number:
            self.keep(self.draw(number))
        self.step.count_clips(number + 1)
        self.step.fill_noise(number, *self.noise)
        self.graph.replay()
        self.ready = number + 1
