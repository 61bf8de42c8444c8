"""What a training step costs: by scene, by batch, and several side by side.

The step is the whole one: scenes, bound, gradients, clipping, update. The learning rate is zero, so that the model
stays as it was made and the number of live objects with it.
"""

import statistics
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import torch

from benchmarks import subjects
from benchmarks.plan import NATURAL, Plan, natural_config, training_config
from benchmarks.timing import Memory, clean_up, median, seconds, synchronise
from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.training.step import Anneals, TrainingStep, anneals

LATE = 8_000
"""The step whose temperature and presence prior are in force: all annealing is over."""


@dataclass(frozen=True)
class StepRow:
    scene: str
    frame: str
    batch: int
    T: int
    slots: int
    background: bool
    ms_per_step: float
    steps_per_s: float
    frames_per_s: float
    peak_gib: float | None
    first_step_s: float
    """Compiling (from a warm cache) and capturing included."""
    live: float
    """Objects alive a clip and frame."""
    weights: str


@dataclass(frozen=True)
class TogetherRow:
    runs: int
    batch: int
    ms_per_round: float
    """One step of every run."""
    steps_per_s: float
    """Of all runs together."""
    frames_per_s: float
    against_one: float
    """All runs' steps a second against those of one run alone."""
    peak_gib: float | None


def step_configs(plan: Plan) -> dict[str, Config]:
    configs = {
        "shapes-md": training_config(plan, "shapes-md"),
        "shapes-md, background": training_config(plan, "shapes-md", background=True),
    }
    if plan.device == "cuda" or plan.tiny:  # a minute would go into it on the CPU, and nobody trains it there
        configs[NATURAL] = natural_config(plan)
    return configs


def batch_configs(plan: Plan) -> dict[str, Config]:
    return {f"shapes-md, {batch}": training_config(plan, "shapes-md", batch=batch) for batch in plan.batches}


def steps(plan: Plan) -> list[StepRow]:
    """A training step at medium density, without and with background, and at the paper's natural sizes."""
    return [step_row(plan, name, config) for name, config in step_configs(plan).items()]


def batches(plan: Plan) -> list[StepRow]:
    """A training step at medium density by batch: where most frames a second are seen."""
    return [step_row(plan, name, config) for name, config in batch_configs(plan).items()]


def step_row(plan: Plan, name: str, config: Config) -> StepRow:
    clean_up(plan.where)
    memory = Memory(plan.where)
    step, weights = make_step(plan, config)
    now = settled(config, plan)
    first = seconds(lambda: step(0, now), plan.where)
    took = step_seconds(step, now, plan)
    return StepRow(
        scene=name,
        frame=by(config.scene.frame),
        batch=config.train.batch,
        T=now.length,
        slots=config.model.slots,
        background=config.model.background,
        ms_per_step=1e3 * took,
        steps_per_s=1 / took,
        frames_per_s=config.train.batch * now.length / took,
        peak_gib=memory.peak_gib(),
        first_step_s=first,
        live=live_objects(step),
        weights=weights,
    )


def together(plan: Plan) -> list[TogetherRow]:
    """Several trainings in one process, each on a stream of its own."""
    config = training_config(plan, "shapes-md")
    now = settled(config, plan)
    clean_up(plan.where)
    memory = Memory(plan.where)
    lanes: list[Lane] = []
    rows: list[TogetherRow] = []
    for runs in plan.side_by_side:
        while len(lanes) < runs:  # one after the other: a capture wants the device for itself
            lanes.append(Lane(make_step(plan, config)[0], plan.where))
            lanes[-1].go(0, now)
            synchronise(plan.where)
        took = median(partial(rounds, lanes, now, plan.steps), plan.where, plan.rounds) / plan.steps
        rate = runs / took
        alone = rows[0].steps_per_s if rows else rate
        frames = rate * config.train.batch * now.length
        rows.append(TogetherRow(runs, config.train.batch, 1e3 * took, rate, frames, rate / alone, memory.peak_gib()))
    return rows


class Lane:
    """A training on a stream of its own; on the CPU there is only the one stream."""

    def __init__(self, step: TrainingStep, device: torch.device) -> None:
        self.step = step
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        if self.stream:
            self.stream.wait_stream(torch.cuda.current_stream(device))  # which still makes the model
        self.done = 0

    def go(self, number: int, now: Anneals) -> None:
        with torch.cuda.stream(self.stream) if self.stream else nullcontext():
            self.step(number, now)
        self.done = number + 1


def rounds(lanes: list[Lane], now: Anneals, steps: int) -> None:
    for _ in range(steps):
        for lane in lanes:
            lane.go(lane.done, now)


def make_step(plan: Plan, config: Config) -> tuple[TrainingStep, str]:
    model, weights = subjects.make(config.model, plan.where, plan.seed)
    scenes = Scenes(config.scene, plan.seed, "train", plan.where)
    return TrainingStep(config, model, scenes, plan.where), weights


def live_objects(step: TrainingStep) -> float:
    """Objects alive a clip and frame in the last step."""
    return float(step.metrics[step.names.index("objects")])


def settled(config: Config, plan: Plan) -> Anneals:
    return replace(anneals(config.train, LATE), learning_rate=0.0, length=plan.length)


def step_seconds(step: TrainingStep, now: Anneals, plan: Plan) -> float:
    """Seconds of a step that has been called once."""
    numbers = counting()

    def round_of_steps() -> None:
        for _ in range(plan.steps):
            step(next(numbers), now)

    for _ in range(plan.warmup):
        step(next(numbers), now)
    return statistics.median(seconds(round_of_steps, plan.where) for _ in range(plan.rounds)) / plan.steps


def counting() -> Iterator[int]:
    """The numbers of the steps to come, after the first."""
    return iter(range(1, 10**9))


def by(frame: tuple[int, int]) -> str:
    return f"{frame[0]}x{frame[1]}"
