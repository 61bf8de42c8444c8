"""A training step beside the dense yardstick's: what the formulation alone is worth."""

import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from benchmarks import subjects
from benchmarks.plan import Plan, scene_config
from benchmarks.timing import Memory, clean_up, seconds
from benchmarks.training import counting, live_objects, make_step, settled
from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.model import reference
from scalor.nn.distributions import Relaxed


@dataclass(frozen=True)
class DenseRow:
    scene: str
    formulation: str
    batch: int
    proposals: int
    """Looked at closely after the first frame."""
    live: float | None
    ms_per_step: float | None
    spread: float | None
    """Longest less shortest round, against the median: large where the machine was disturbed."""
    peak_gib: float | None
    ours_is_faster: float | None
    """By this factor."""
    weights: str


def rows(plan: Plan) -> list[DenseRow]:
    """A training step beside the dense yardstick's, in turns: the same scenes, networks, weights and mathematics.

    "every cell" is the yardstick with a close look at all cells in all frames, as it was published.
    """
    return [row for scene, batch in plan.densities for row in compare(plan, scene, batch)]


def compare(plan: Plan, scene: str, batch: int | None = None) -> list[DenseRow]:
    config = scene_config(plan, scene, batch)
    config = replace(config, train=config.train.without_relative_clipping())  # as the yardstick is
    cells = config.model.grid[0] * config.model.grid[1]
    entered = {
        "ours": enter(plan, lambda: OurStep(plan, config)),
        "dense": enter(plan, lambda: DenseStep(plan, config)),
        "dense, every cell": enter(plan, lambda: DenseStep(plan, config, cells)),
    }
    times = race(plan, {name: one.step for name, one in entered.items() if one.step})
    made = []
    for name, (step, peak) in entered.items():
        proposals = config.model.proposals if step is None else step.proposals or config.model.proposals
        row = DenseRow(scene, name, config.train.batch, proposals, None, None, None, None, None, "out of memory")
        if step is not None:
            row = with_times(replace(row, live=step.live, peak_gib=peak, weights=step.weights), times)
        made.append(row)
    return made


def with_times(row: DenseRow, times: dict[str, list[float]]) -> DenseRow:
    several = times[row.formulation]
    middle = statistics.median(several)
    factor = None if row.formulation == "ours" else middle / statistics.median(times["ours"])
    return replace(row, ms_per_step=1e3 * middle, spread=(max(several) - min(several)) / middle, ours_is_faster=factor)


class Contender(NamedTuple):
    step: "OurStep | DenseStep | None"
    """None: it does not fit into the memory."""
    peak_gib: float | None


def enter(plan: Plan, make: "Callable[[], OurStep | DenseStep]") -> Contender:
    """Made and warmed up."""
    clean_up(plan.where)
    memory = Memory(plan.where)
    try:
        step = make()
        step()
    except torch.OutOfMemoryError:
        return Contender(None, None)
    return Contender(step, memory.peak_gib())


def race(plan: Plan, steps: "dict[str, OurStep | DenseStep]") -> dict[str, list[float]]:
    """Seconds of each, in turns: whatever else the machine does meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(plan.dense_rounds):
        for name, step in steps.items():
            times[name].append(seconds(step, plan.where))
    return times


class OurStep:
    """The real training step."""

    proposals = None

    def __init__(self, plan: Plan, config: Config) -> None:
        self.now = settled(config, plan)
        self.step, self.weights = make_step(plan, config)
        self.numbers = counting()

    def __call__(self) -> None:
        self.step(next(self.numbers), self.now)

    @property
    def live(self) -> float:
        return live_objects(self.step)


class DenseStep:
    """The yardstick's training step, with the same parts as ours."""

    def __init__(self, plan: Plan, config: Config, proposals: int | None = None) -> None:
        self.plan, self.config, self.now, self.proposals = plan, config, settled(config, plan), proposals
        self.model, self.weights = subjects.make(config.model, plan.where, plan.seed)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.0, fused=True)
        self.scenes = Scenes(config.scene, plan.seed, "train", plan.where)
        self.numbers = counting()
        self.live = 0.0

    def __call__(self) -> None:
        batch = self.config.train.batch
        video = self.scenes.clips(next(self.numbers) * batch, batch, self.now.length).observation
        with precision(self.plan):
            estimator = Relaxed(self.now.temperature)
            bound = reference.elbo(self.model, video, estimator, self.now.presence_prior, self.proposals)
        self.optimizer.zero_grad()
        (-bound.terms.elbo.mean() / video.values_per_clip).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.train.clip_norm)
        self.optimizer.step()
        self.live = bound.objects


def precision(plan: Plan) -> AbstractContextManager[object]:
    """What training uses by itself: bf16 on a GPU."""
    return torch.autocast("cuda", torch.bfloat16) if plan.device == "cuda" else nullcontext()
