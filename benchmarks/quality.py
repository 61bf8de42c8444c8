"""Whether a faster program learns as well: the same training by each, side by side, and how well it then tracks."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch

from benchmarks.plan import Plan, training_config
from benchmarks.timing import clean_up, synchronise
from benchmarks.training import Lane
from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.evaluation import report
from scalor.kernels import forced
from scalor.model.scalor import SCALOR
from scalor.training.step import TrainingStep, anneals

LENGTHS = ((0, 1), (400, 2), (1_000, 4))
"""A curriculum like that of the presets, in few steps."""


@dataclass(frozen=True)
class Program:
    name: str
    precision: str
    compile: bool
    reference_kernels: bool = False


PROGRAMS = (
    Program("captured", "float32", compile=False),
    Program("captured", "bf16", compile=False),
    Program("captured, reference crop and paste", "bf16", compile=False, reference_kernels=True),
    Program("captured, compiled (as it is trained)", "bf16", compile=True),
)


@dataclass(frozen=True)
class QualityRow:
    program: str
    precision: str
    seed: int
    steps: int
    strict_mota: float
    paper_mota: float
    mse: float


def rows(plan: Plan) -> list[QualityRow]:
    """The same training by each program: tracking after it, on unseen clips."""
    clean_up(plan.where)
    runs = [(program, seed) for program in PROGRAMS for seed in plan.quality_seeds]
    lanes = [Lane(make_step(plan, program, seed), plan.where) for program, seed in runs]
    for number in range(plan.quality_steps):
        for (program, _), lane in zip(runs, lanes, strict=True):
            with kernels_of(program):
                lane.go(number, anneals(lane.step.config.train, number))
    synchronise(plan.where)
    return [measured(plan, program, seed, lane.step) for (program, seed), lane in zip(runs, lanes, strict=True)]


def make_step(plan: Plan, program: Program, seed: int) -> TrainingStep:
    config = config_for(plan, program, seed)
    torch.manual_seed(seed)
    model = SCALOR(config.model).to(plan.where)
    return TrainingStep(config, model, Scenes(config.scene, seed, "train", plan.where), plan.where)


def config_for(plan: Plan, program: Program, seed: int = 0) -> Config:
    config = training_config(plan, "shapes-md")
    lengths = tuple((start, min(frames, plan.length)) for start, frames in LENGTHS)
    train = replace(
        config.train,
        steps=plan.quality_steps,
        cooldown=plan.quality_steps // 4,
        lengths=lengths,
        precision=program.precision,
        compile=program.compile,
        seed=seed,
    )
    return replace(config, train=train)


def kernels_of(program: Program) -> AbstractContextManager[None]:
    return forced("matmul") if program.reference_kernels else nullcontext()


def measured(plan: Plan, program: Program, seed: int, step: TrainingStep) -> QualityRow:
    found = report.evaluate(step.model, step.config, plan.quality_clips)
    tracking = found.tracking
    assert tracking is not None
    return QualityRow(
        program.name,
        program.precision,
        seed,
        plan.quality_steps,
        tracking.strict.mota,
        tracking.paper.mota,
        found.mse,
    )
