"""The training loop, for one run or several side by side: readable in one sitting, safe to kill at any moment."""

import math
import sys
import time
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

import torch
from tqdm import tqdm

from scalor import checkpoint, systems
from scalor.config import Config, SystemConfig, TrainConfig
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation import report
from scalor.nn.interface import Model
from scalor.nn.schedule import anneals
from scalor.provenance import commit
from scalor.signals import stop_signals
from scalor.training import guards
from scalor.training.folder import History, Log, alone_in_all, claim_all, read_saved, restore, save, write_config
from scalor.training.pictures import Pictures
from scalor.training.step import TrainingStep
from scalor.training.warming import warming

BAD_STEPS = 50
"""So many steps without a finite gradient in a row end the run."""
EVALUATED = (
    *("strict_mota", "paper_mota", "iou_mota", "propagation_rate", "discoveries_per_clip", "count_mae", "mse"),
)
"""What an evaluation during training writes down, besides the step and the seconds of training so far; without objects
only the last."""


TOGETHER = 8
"""Trainings side by side, where nothing else is said."""
AHEAD = 2
"""Steps of a run that a GPU is asked for before they are done."""
SHORTLY = 1e-4
"""Seconds until a step may be done."""


@dataclass(frozen=True)
class Job:
    """What to train, and the folder to train it into."""

    config: Config[SystemConfig]
    folder: Path


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended."""

    model: Model
    step: int
    skipped: int
    seconds: float
    """Of this process, without evaluations; a resumed run counts from its resumption."""
    stopped: int | None
    """The signal that ended it early, if one did."""


class NotBegun(NamedTuple):
    """A training that a signal kept from beginning."""

    stopped: int
    """The signal."""


Outcome = TrainingResult | NotBegun | InputError


def make_scenes(config: Config[SystemConfig], split: str, device: torch.device) -> Scenes:
    return Scenes(config.scene if split == "train" else config.test, config.train.seed, split, device)


def train(
    config: Config[SystemConfig], folder: Path, device: torch.device, resume: bool = False, quiet: bool = False
) -> TrainingResult:
    """Train a model into `folder`; with `resume`, go on from what is there."""
    (outcome,) = train_together([Job(config, folder)], device, resume, quiet)
    if isinstance(outcome, InputError):
        raise outcome
    assert isinstance(outcome, TrainingResult)  # one alone begins at once
    return outcome


def train_together(
    jobs: Sequence[Job], device: torch.device, resume: bool = False, quiet: bool = False, together: int = TOGETHER
) -> list[Outcome]:
    """Train side by side, `together` at a time; every run is exactly what it would be alone.

    The next run begins when one has ended, and none before what it needs is compiled. On a GPU each has a stream of
    its own, so that the small kernels of all of them fill the chip, and whoever is done with a step goes on to the
    next. A run that breaks ends alone: its error takes the place of its result. Folders and checkpoints that will
    not do are refused before anything is trained. Memory that runs out ends them all.
    """
    claim_all([job.folder for job in jobs], resume)
    if resume:
        for job in jobs:
            read_saved(job.folder, job.config)
    commit()
    clock, side_by_side = Clock(device), min(together, len(jobs))
    waiting, live, outcomes = list(range(len(jobs))), dict[int, Lane](), dict[int, Outcome]()
    with (
        alone_in_all([job.folder for job in jobs]),
        stop_signals() as stop,
        progress_bars(jobs, quiet) as bars,
        warming([job.config for job in jobs], device, quiet) as warm,
    ):
        while waiting or live:
            for place in list(filter(warm, waiting))[: together - len(live)]:
                waiting.remove(place)
                label = f"{jobs[place].folder.name}: " if len(jobs) > 1 else ""
                try:
                    live[place] = Lane(jobs[place], label, device, resume, clock, side_by_side, bars[place], stop)
                except InputError as error:
                    outcomes[place] = error
            free = [place for place, lane in live.items() if lane.free()]
            for place in free:
                ended = live[place].advance()
                if ended is not None:
                    outcomes[place] = ended
                    del live[place]  # and with it what the run held on the device, but for its model
            if stop:
                outcomes |= {place: NotBegun(stop[0]) for place in waiting}
                waiting.clear()
            if not free:
                time.sleep(SHORTLY)
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # whoever takes the models does not know their streams
    return [outcomes[place] for place in range(len(jobs))]


class Run(NamedTuple):
    """A training that is ready for its next step."""

    config: Config[SystemConfig]
    folder: Path
    label: str
    """Tells the run from the others; empty when it is the only one."""
    step: TrainingStep
    before: History
    side_by_side: int
    """Runs that are trained together, this one counted."""
    clock: "Clock"
    log: Log
    evaluations: Log | None
    pictures: Pictures


def prepare(job: Job, device: torch.device, resume: bool, label: str, clock: "Clock", side_by_side: int) -> Run:
    config, folder = job.config, job.folder
    torch.manual_seed(config.train.seed)  # right here: the weights must not depend on who was made before
    model = systems.build(config.model).to(device)
    if config.train.start:
        checkpoint.fill_from(model, config.train.start)
    step = TrainingStep(config, model, make_scenes(config, "train", device), device)
    before = restore(folder, config, step) if resume else History()
    write_config(folder, config)
    log = Log(folder / "log.jsonl", before.step)
    path = folder / "evaluations.jsonl"
    evaluations = Log(path, before.step) if config.train.evaluate_every or path.exists() else None
    pictures = Pictures(folder, config, before.step)
    return Run(config, folder, label, step, before, side_by_side, clock, log, evaluations, pictures)


Training = Generator[None, None, TrainingResult]


class Lane:
    """A run among others. On a GPU it has a stream of its own, and no more than AHEAD steps are asked for before they
    are done: the host must not wait in one lane while another is free."""

    def __init__(
        self,
        job: Job,
        label: str,
        device: torch.device,
        resume: bool,
        clock: "Clock",
        side_by_side: int,
        bar: "tqdm[NoReturn]",
        stop: Sequence[int],
    ) -> None:
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.asked: deque[torch.cuda.Event] = deque()
        with torch.cuda.stream(self.stream):  # on the CPU there is none, and this does nothing
            run = prepare(job, device, resume, label, clock, side_by_side)
        bar.initial = bar.n = frames_before(job.config.train, run.before.step)
        bar.unpause()
        self.steps = training(run, bar, stop)

    def free(self) -> bool:
        while self.asked and self.asked[0].query():
            self.asked.popleft()
        return len(self.asked) < AHEAD

    def advance(self) -> TrainingResult | InputError | None:
        """One step; what the run ended with, if it did."""
        with torch.cuda.stream(self.stream):
            try:
                next(self.steps)
            except StopIteration as end:
                result: TrainingResult = end.value
                return result
            except InputError as error:
                return error
            if self.stream:
                self.asked.append(self.stream.record_event())
        return None


def training(run: Run, bar: "tqdm[NoReturn]", stop: Sequence[int]) -> Training:
    """The loop itself, with a pause after every step. A signal in `stop` ends it with the next one."""
    config, step, first = run.config, run.step, run.before.step
    start, skipped, done = run.clock.seconds(), 0, first
    sums = torch.zeros_like(step.metrics)
    warned: set[str] = set()
    for number in range(first, config.train.steps):
        now = anneals(config.train, number)
        sums += step(number, now)
        done = number + 1
        bar.update(now.length)
        last = done == config.train.steps or bool(stop)
        if done % config.train.log_every == 0 or last:
            steps_in_sum = min(number % config.train.log_every + 1, done - first)
            means = dict(zip(step.names, (sums / steps_in_sum).tolist(), strict=True))
            sums.zero_()
            skipped += round(means["skipped"] * steps_in_sum)
            run.log.write({"step": done, **means, "length": now.length, "temperature": now.temperature})
            objects = f", objects {means['objects']:.1f}" if "objects" in means else ""
            bar.set_postfix_str(f"step {done}, elbo {means['elbo']:.0f}{objects}")
            for sentence in guards.warnings(config, done, means):
                if sentence.split(":")[0] not in warned:
                    warned.add(sentence.split(":")[0])
                    tqdm.write(f"warning: {run.label}{sentence}", file=sys.stderr)
            if float(step.bad_in_a_row) >= BAD_STEPS:
                raise InputError(
                    f"train.learning_rate is {config.train.learning_rate}: the last {BAD_STEPS} steps had no "
                    f"finite gradient, so training ended at step {done}; lower it and go on with --resume "
                    "from the last good checkpoint."
                )
        run.pictures.maybe(done, step.model, step.scenes)
        every = config.train.evaluate_every
        if run.evaluations and every and (done % every == 0 or done == config.train.steps):
            evaluate(run, run.evaluations, history(run, done, start))
        # After the evaluation: should this be the last thing that happens, the line is cut and made again.
        if done % config.train.save_every == 0 or last:
            save(run.folder, config, step, history(run, done, start))
        if last:  # and not `if stop`: a signal since then waits for the next step's save
            break
        yield
    run.pictures.close()
    step.model.zero_grad()
    return TrainingResult(step.model, done, skipped, run.clock.seconds() - start, stop[0] if stop else None)


def history(run: Run, done: int, start: float) -> History:
    """What the run is now; `start` is when this process began with it, by its clock."""
    before = run.before
    seconds = None if before.seconds is None else before.seconds + run.clock.seconds() - start
    return History(done, seconds, max(before.side_by_side, run.side_by_side))


def evaluate(run: Run, log: Log, now: History) -> None:
    """A line on how well unseen clips are tracked and drawn, written while all training clocks stand still."""
    config = run.config
    with run.clock.standing_still(), warnings.catch_warnings(action="ignore"):  # the guards warn of full slots
        # All frames are observed: nothing is left to forecast.
        measured = report.evaluate(
            run.step.model, config, config.train.evaluate_clips, observe=config.test.length, quiet=True
        ).to_dict()
        seconds = math.nan if now.seconds is None else now.seconds
        figures = {name: measured[name] for name in EVALUATED if name in measured}
        log.write({"step": now.step, "seconds": seconds, **figures})


class Clock:
    """Seconds of training, for all runs side by side: it stands still while one of them is evaluated."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.start = device, time.monotonic()

    def seconds(self) -> float:
        return self.now() - self.start

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        since = self.now()
        try:
            yield
        finally:
            self.start += self.now() - since

    def now(self) -> float:
        """Not before a GPU has done what it was told to: time is counted where the work is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.monotonic()


def frames_before(train: TrainConfig, step: int) -> int:
    """Frames that a clip has had in all steps before one. Time goes with them, not with steps: clips grow longer."""
    ends = [*(start for start, _ in train.lengths[1:]), step]
    return sum(
        max(0, min(end, step) - start) * frames for (start, frames), end in zip(train.lengths, ends, strict=True)
    )


@contextmanager
def progress_bars(jobs: Sequence[Job], quiet: bool) -> Iterator[list["tqdm[NoReturn]"]]:
    """A bar a run. They end together: a bar that ends moves the lines of those below it."""
    several = len(jobs) > 1
    bars = [
        tqdm(
            desc=job.folder.name if several else None,
            total=frames_before(job.config.train, job.config.train.steps),
            position=place if several else None,
            disable=quiet,
            file=sys.stderr,
            unit="frame",
        )
        for place, job in enumerate(jobs)
    ]
    try:
        yield bars
    finally:
        for bar in bars:
            bar.close()
