"""Whether the fast programs compute what the plain one does, and whether a seed gives one loss curve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from benchmarks import subjects
from benchmarks.plan import Plan, training_config
from benchmarks.timing import clean_up
from benchmarks.training import make_step, settled
from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.model import reference
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import Mode
from scalor.nn.interface import Model
from scalor.training.step import Batch, TrainingStep, anneals

NO_CLIPPING = 1e9


@dataclass(frozen=True)
class AgreementRow:
    program: str
    precision: str
    elbo: float | None
    """Nats a clip."""
    elbo_off: float | None
    """Relative difference from the first row."""
    gradient_off: float | None
    """Norm of the gradient's difference from the first row's, against that one's norm."""
    note: str


@dataclass(frozen=True)
class CurveRow:
    steps: int
    same: bool
    """Whether both runs gave the same losses to the last bit."""
    differing_steps: int
    largest_difference: float
    """Relative."""
    first_loss: float
    last_loss: float
    weights_same: bool


class Outcome:
    """A step's bound and gradient, on the host."""

    def __init__(self, elbo: float, model: Model) -> None:
        self.elbo = elbo
        self.gradient = torch.cat(
            [torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in model.parameters()]
        ).double()
        self.gradient = self.gradient.cpu()
        if not self.gradient.any():
            raise RuntimeError("the step left no gradient behind")


def agreement(plan: Plan) -> list[AgreementRow]:
    """The same training step by every program: bound and gradient against plain float32."""
    gpu = plan.device == "cuda"
    programs: list[tuple[str, str, Callable[[], Outcome]]] = [
        ("eager", "float32", lambda: by_hand(plan, "float32")),
        ("eager, again", "float32", lambda: by_hand(plan, "float32")),
        ("eager", "bf16", lambda: by_hand(plan, "bf16")),
        ("training step", "float32", lambda: by_itself(plan, "float32", compile=False)),
    ]
    if gpu:
        programs[3:] = [
            ("captured", "float32", lambda: by_itself(plan, "float32", compile=False)),
            ("compiled", "float32", lambda: by_hand(plan, "float32", compile=True)),
            ("compiled, captured", "float32", lambda: by_itself(plan, "float32", compile=True)),
            ("compiled, captured", "bf16", lambda: by_itself(plan, "bf16", compile=True)),
        ]
    rows = compared(programs, plan)
    modes: list[tuple[str, str, Callable[[], Outcome]]] = [
        ("eager, modes", "float32", lambda: by_modes(plan, yardstick=False)),
        ("reference yardstick, modes", "float32", lambda: by_modes(plan, yardstick=True)),
    ]
    return rows + compared(modes, plan)


def compared(programs: list[tuple[str, str, Callable[[], Outcome]]], plan: Plan) -> list[AgreementRow]:
    """One row each; the first is the truth for the others. A program that fails says so in its row."""
    truth: Outcome | None = None
    rows = []
    for name, precision, program in programs:
        clean_up(plan.where)
        try:
            made = program()
        except Exception as error:
            rows.append(AgreementRow(name, precision, None, None, None, f"failed: {str(error).splitlines()[:1]}"))
            continue
        truth = truth or made
        off = abs(made.elbo - truth.elbo) / abs(truth.elbo)
        gradient_off = float((made.gradient - truth.gradient).norm() / truth.gradient.norm())
        rows.append(AgreementRow(name, precision, made.elbo, off, gradient_off, "the truth" if made is truth else ""))
    return rows


def config_for(plan: Plan, precision: str, compile: bool) -> Config:
    config = training_config(plan, "shapes-md")
    train = replace(
        config.train.without_relative_clipping(), clip_norm=NO_CLIPPING, precision=precision, compile=compile
    )
    return replace(config, train=train)


def step_for(plan: Plan, precision: str, compile: bool) -> TrainingStep:
    return make_step(plan, config_for(plan, precision, compile))[0]


def by_itself(plan: Plan, precision: str, compile: bool) -> Outcome:
    """As training calls it: on a GPU captured and replayed."""
    step = step_for(plan, precision, compile)
    now = settled(step.config, plan)
    with full_float32():
        step(0, now)
        step(1, now)
    return outcome_of(step)


def by_hand(plan: Plan, precision: str, compile: bool = False) -> Outcome:
    """The step's inside, called as plain Python."""
    step = step_for(plan, precision, compile)
    now = settled(step.config, plan)
    step.temperature.fill_(now.temperature)
    step.presence_prior.fill_(now.presence_prior)
    step.count_clips(1)
    video = step.scenes.clips(step.index, length=now.length).observation
    with full_float32():
        step.run(Batch(video, None), step.draw_noise(1, now), now, learn=False)
    return outcome_of(step)


def by_modes(plan: Plan, yardstick: bool) -> Outcome:
    """Without noise, and without rejection, whose rule is the yardstick's own."""
    config = training_config(plan, "shapes-md")
    model = subjects.make(replace(config.model, rejection=False), plan.where, plan.seed).model
    video = Scenes(config.scene, plan.seed, "train", plan.where).clips(0, min(4, plan.batch), plan.length).observation
    with full_float32():
        bound = reference.elbo(model, video, Mode()) if yardstick else model.elbo(video, Mode())
        elbo = bound.terms.elbo.mean()
        elbo.backward()
    return Outcome(elbo.item(), model)


def outcome_of(step: TrainingStep) -> Outcome:
    return Outcome(float(step.metrics[step.names.index("elbo")]), step.model)


@contextmanager
def full_float32() -> Iterator[None]:
    """No TF32, which is a rounding of its own."""
    switches: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [switch.allow_tf32 for switch in switches]
    try:
        for switch in switches:
            switch.allow_tf32 = False
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.allow_tf32 = value


def curve(plan: Plan) -> list[CurveRow]:
    """A training from one seed, made twice."""
    config = training_config(plan, "shapes-md")
    one, other = (losses(plan, config) for _ in range(2))
    off = (one[0] - other[0]).abs() / one[0].abs()
    return [
        CurveRow(
            steps=plan.curve,
            same=bool((one[0] == other[0]).all()),
            differing_steps=int((one[0] != other[0]).sum()),
            largest_difference=float(off.max()),
            first_loss=float(one[0][0]),
            last_loss=float(one[0][-1]),
            weights_same=bool((one[1] == other[1]).all()),
        )
    ]


def losses(plan: Plan, config: Config) -> tuple[Tensor, Tensor]:
    """The loss of every step (nats a clip), and the weights after them, from random weights on."""
    clean_up(plan.where)
    torch.manual_seed(plan.seed)
    model = SCALOR(config.model).to(plan.where)
    step = TrainingStep(config, model, Scenes(config.scene, plan.seed, "train", plan.where), plan.where)
    values = []
    for number in range(plan.curve):
        now = replace(anneals(config.train, number), length=plan.length)
        values.append(-step(number, now)[step.names.index("elbo")].clone())
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    return torch.stack(values).double().cpu(), weights.cpu()
