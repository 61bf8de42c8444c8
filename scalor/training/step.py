"""One optimiser step: scenes, bound, gradients, clipping, update. No value is looked at on the host.

On the GPU the whole step is captured once per sequence length as a CUDA graph and replayed; on the CPU the
same function runs as it is. A step whose gradient is not finite leaves weights and optimiser untouched.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.distributions import Relaxed
from scalor.model.elbo import Activity, ElboTerms
from scalor.model.scalor import SCALOR
from scalor.schedule import Anneals

METRICS = (
    "elbo",
    *ElboTerms.__dataclass_fields__,
    *Activity.__dataclass_fields__,
    "gradient_norm",
    "skipped",
)
"""The names of the numbers a step reports, in order."""


class TrainingStep:
    """Callable: `step(number, anneals)` trains once and returns the metrics as a tensor on the device."""

    def __init__(self, config: Config, model: SCALOR, scenes: Scenes, device: torch.device) -> None:
        self.config, self.model, self.scenes, self.device = config, model, scenes, device
        self.learning_rate = torch.zeros((), device=device)
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=self.learning_rate, fused=True, capturable=device.type == "cuda"
        )
        self.index = torch.zeros(config.train.batch, dtype=torch.int64, device=device)
        self.temperature = torch.ones((), device=device)
        self.presence_prior = torch.ones((), device=device)
        self.bad_in_a_row = torch.zeros((), device=device)
        self.metrics = torch.zeros(len(METRICS), device=device)
        self.graph: tuple[tuple[int, bool], torch.cuda.CUDAGraph] | None = None
        self.prepare_optimizer()

    def prepare_optimizer(self) -> None:
        """Make the optimiser's state now, by a step that changes nothing (capture must not make it)."""
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.update(torch.ones((), device=self.device))

    def __call__(self, number: int, now: Anneals) -> Tensor:
        first = number * self.config.train.batch
        self.index.copy_(torch.arange(first, first + self.config.train.batch))
        self.learning_rate.fill_(now.learning_rate)
        self.temperature.fill_(now.temperature)
        self.presence_prior.fill_(now.presence_prior)
        if self.device.type == "cuda":
            self.replay(now)
        else:
            self.run(now)
        return self.metrics

    def run(self, now: Anneals, learn: bool = True) -> None:
        """The step itself."""
        video = self.scenes.clips(self.index, length=now.length).frames
        with self.autocast():
            bound = self.model.elbo(video, Relaxed(self.temperature), self.presence_prior, now.cut_gradients)
        elbo = bound.terms.elbo.mean()
        for parameter in self.model.parameters():
            parameter.grad = None
        (-elbo / video[0].numel()).backward()
        norm = torch.nn.utils.clip_grad_norm_(
            [p for p in self.model.parameters() if p.grad is not None], self.config.train.clip_norm
        )
        skipped = 1 - torch.isfinite(norm).float()
        if learn:
            self.update(skipped)
            self.bad_in_a_row.copy_((self.bad_in_a_row + 1) * skipped)
        values = [*bound.terms.to_dict().values(), *bound.activity.to_dict().values()]
        self.metrics.copy_(torch.stack([elbo, *(value.mean() for value in values), norm, skipped]).detach())

    def update(self, skipped: Tensor) -> None:
        """Adam, doing nothing where `skipped` is 1 (the hook that gradient scalers use)."""
        self.optimizer.found_inf = skipped  # type: ignore[attr-defined]
        self.optimizer.grad_scale = None  # type: ignore[attr-defined]
        self.optimizer.step()

    def replay(self, now: Anneals) -> None:
        key = (now.length, now.cut_gradients)
        if self.graph is None or self.graph[0] != key:
            self.graph = None  # frees the last length's memory first
            self.graph = key, self.capture(lambda learn: self.run(now, learn))
        self.graph[1].replay()

    def capture(self, run: Callable[[bool], None]) -> torch.cuda.CUDAGraph:
        state = torch.cuda.get_rng_state(self.device)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # kernels load and libraries plan here, not in the capture
                run(False)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.set_rng_state(state, self.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run(True)
        return graph

    def autocast(self) -> AbstractContextManager[object]:
        precision = self.config.train.precision
        if precision == "auto":
            precision = "bf16" if self.device.type == "cuda" else "float32"
        return torch.autocast(self.device.type, torch.bfloat16) if precision == "bf16" else nullcontext()
