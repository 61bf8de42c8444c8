"""The training loop, for one run or several at the same time. It is safe to kill at any moment."""

import math
import signal
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
from scalor.config import MODEL_VERSION, SCENE_VERSION, Config, SystemConfig, TrainConfig
from scalor.data.scenes import Scenes
from scalor.errors import InputError, require
from scalor.evaluation import report
from scalor.files import stop_signals
from scalor.nn import ranks
from scalor.nn.interface import Model
from scalor.provenance import commit
from scalor.training import guards
from scalor.training.folder import History, Log, claimed, restore, save, write_config
from scalor.training.pictures import Pictures
from scalor.training.step import TrainingStep, anneals
from scalor.training.warmup import warming

MAX_BAD_STEPS = 50
"""Number of consecutive steps without a finite gradient that ends a run."""
LOGGED_METRICS = (
    *("strict_mota", "paper_mota", "iou_mota", "propagation_rate", "discoveries_per_clip", "count_mae", "mse"),
)
"""Metrics that an evaluation during training logs, besides the step and the seconds of training so far.

Systems without objects log only the last one.
"""


MAX_CONCURRENT_RUNS = 8
"""Default number of runs trained at the same time."""
MAX_QUEUED_STEPS = 2
"""Largest number of steps of a run that are queued on a GPU."""
POLL_SECONDS = 1e-4
"""Seconds to wait before asking again whether a step has finished."""


@dataclass(frozen=True)
class Job:
    """A training to run, and the folder it writes to."""

    config: Config[SystemConfig]
    folder: Path


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training."""

    model: Model
    step: int
    skipped: int
    seconds: float
    """Training time in this process, without evaluations. A resumed run counts from the resume."""
    stopped: int | None
    """Number of the signal that ended the training early, or None."""


class NotStarted(NamedTuple):
    """A training that did not begin, because a stop signal came first."""

    stopped: int
    """Number of the signal."""


Outcome = TrainingResult | NotStarted | InputError


def make_scenes(config: Config[SystemConfig], split: str, device: torch.device) -> Scenes:
    """Return the training scenes of a config if `split` is "train", otherwise its test scenes."""
    return Scenes(config.scene if split == "train" else config.test, config.train.seed, split, device)


def train(
    config: Config[SystemConfig], folder: Path, device: torch.device, resume: bool = False, quiet: bool = False
) -> TrainingResult:
    """Train a model and write it to `folder`. With `resume`, continue from the checkpoint in that folder, if any."""
    (outcome,) = train_together([Job(config, folder)], device, resume, quiet)
    if isinstance(outcome, InputError):
        raise outcome
    assert isinstance(outcome, TrainingResult)  # a single run always begins
    return outcome


def train_together(
    jobs: Sequence[Job],
    device: torch.device,
    resume: bool = False,
    quiet: bool = False,
    together: int = MAX_CONCURRENT_RUNS,
) -> list[Outcome]:
    """Train several runs at the same time, at most `together` at once. Each gives exactly the result it gives alone.

    A waiting run begins when another one has ended, but not before the code it needs is compiled. On a GPU each run has
    its own stream, so that the small kernels of all runs together fill the GPU. A run that has finished a step goes on
    to its next one without waiting for the others.

    An error ends only the run in which it occurs, and takes the place of its result. Unusable folders and checkpoints
    raise InputError before anything is trained. Running out of memory ends all runs.
    """
    first = ranks.is_first()
    require(len(jobs) == 1 or ranks.count() == 1, "the number of trainings", len(jobs), "torchrun trains one model")
    commit()
    clock, side_by_side = Clock(device), min(together, len(jobs))
    waiting, live, outcomes = list(range(len(jobs))), dict[int, Lane](), dict[int, Outcome]()
    with (
        claimed([(job.folder, job.config) for job in jobs], device, resume),
        stop_signals() as stop,
        progress_bars(jobs, quiet or not first) as bars,
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
                    del live[place]  # frees what the run held on the device, except its model
            if stop:
                outcomes |= {place: NotStarted(stop[0]) for place in waiting}
                waiting.clear()
            if not free:
                time.sleep(POLL_SECONDS)
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # the caller does not know the streams of the models
    return [outcomes[place] for place in range(len(jobs))]


class Run(NamedTuple):
    """A training that is ready for its next step."""

    config: Config[SystemConfig]
    folder: Path
    label: str
    """Prefix of messages that names the run; empty if it is the only one."""
    step: TrainingStep
    before: History
    side_by_side: int
    """Number of runs trained at the same time, this one included."""
    clock: "Clock"
    log: Log | None
    """None in all ranks but the first, which alone writes."""
    evaluations: Log | None
    pictures: Pictures | None


def prepare(job: Job, device: torch.device, resume: bool, label: str, clock: "Clock", side_by_side: int) -> Run:
    """Build the model and everything else a run needs; with `resume`, load its saved state."""
    config, folder = job.config, job.folder
    require(
        config.scene.version == SCENE_VERSION,
        "scene.version",
        config.scene.version,
        f"this version of scalor makes scenes of version {SCENE_VERSION} only, so set it to that",
    )
    version = getattr(config.model, "version", MODEL_VERSION)
    require(
        version == MODEL_VERSION,
        "model.version",
        version,
        f"this version of scalor trains models of version {MODEL_VERSION} only, so set it to that",
    )
    torch.manual_seed(config.train.seed)  # here, so that the weights do not depend on the runs prepared before
    with ranks.all_or_none(device):
        model = systems.build(config.model).to(device)
        if config.train.start:
            checkpoint.fill_from(model, config.train.start)
        step = TrainingStep(config, model, make_scenes(config, "train", device), device)
        before = restore(folder, config, step) if resume else History()
    ranks.check_same_step(before.step, folder, device)
    if not ranks.is_first():
        return Run(config, folder, label, step, before, side_by_side, clock, None, None, None)
    write_config(folder, config)
    log = Log(folder / "log.jsonl", before.step)
    path = folder / "evaluations.jsonl"
    evaluations = Log(path, before.step) if config.train.evaluate_every or path.exists() else None
    pictures = Pictures(folder, config, before.step)
    return Run(config, folder, label, step, before, side_by_side, clock, log, evaluations, pictures)


Training = Generator[None, None, TrainingResult]


class Lane:
    """One of several runs trained at the same time.

    On a GPU it has its own stream, and at most MAX_QUEUED_STEPS of its steps are queued: the host must not wait for one
    run while another one could go on.
    """

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
        with torch.cuda.stream(self.stream):  # on the CPU there is no stream, and this does nothing
            run = prepare(job, device, resume, label, clock, side_by_side)
        bar.initial = bar.n = frames_before(job.config.train, run.before.step)
        bar.unpause()
        self.steps = training(run, bar, stop)

    def free(self) -> bool:
        """Return whether another step may be queued."""
        while self.asked and self.asked[0].query():
            self.asked.popleft()
        return len(self.asked) < MAX_QUEUED_STEPS

    def advance(self) -> TrainingResult | InputError | None:
        """Run one step. Return the result or the error if the run has ended, otherwise None."""
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
    """Run the training loop, with a pause after every step. If `stop` holds a signal, the next step is the last."""
    config, step, first = run.config, run.step, run.before.step
    start, skipped, done, stopping = run.clock.seconds(), 0, first, False
    sums = torch.zeros_like(step.metrics)
    warned: set[str] = set()
    for number in range(first, config.train.steps):
        now = anneals(config.train, number)
        sums += step(number, now)
        done = number + 1
        bar.update(now.length)
        logs = done % config.train.log_every == 0
        stopping = stop_agreed(stop, step.device, logs)
        last = done == config.train.steps or stopping
        if logs or last:
            steps_in_sum = min(number % config.train.log_every + 1, done - first)
            means = dict(zip(step.names, (sums / steps_in_sum).tolist(), strict=True))
            sums.zero_()
            skipped += round(means["skipped"] * steps_in_sum)
            if run.log is not None:
                run.log.write({"step": done, **means, "length": now.length, "temperature": now.temperature})
            objects = f", objects {means['objects']:.1f}" if "objects" in means else ""
            bar.set_postfix_str(f"step {done}, elbo {means['elbo']:.0f}{objects}")
            for sentence in guards.warnings(config, done, means):
                if run.log is not None and sentence.split(":")[0] not in warned:
                    warned.add(sentence.split(":")[0])
                    tqdm.write(f"warning: {run.label}{sentence}", file=sys.stderr)
            if float(step.bad_in_a_row) >= MAX_BAD_STEPS:
                raise InputError(
                    f"train.learning_rate is {config.train.learning_rate}: the last {MAX_BAD_STEPS} steps had no "
                    f"finite gradient, so training ended at step {done}; lower it and continue with --resume "
                    "from the last good checkpoint."
                )
        if run.pictures is not None:
            run.pictures.maybe(done, step.model, step.scenes)
        every = config.train.evaluate_every
        if run.evaluations and every and (done % every == 0 or done == config.train.steps):
            evaluate(run, run.evaluations, history(run, done, start))
        # Save after the evaluation. If a kill prevents the save, the line of the evaluation is dropped on resume and
        # written again.
        if (done % config.train.save_every == 0 or last) and run.log is not None:
            save(run.folder, config, step, history(run, done, start))
        if last:  # not `if stop`: a signal that came since then waits for the next step's save
            break
        yield
    if run.pictures is not None:
        run.pictures.close()
    step.model.zero_grad()
    return TrainingResult(step.model, done, skipped, run.clock.seconds() - start, stop_of(stop, stopping))


def stop_agreed(stop: Sequence[int], device: torch.device, logs: bool) -> bool:
    """Return whether all ranks end with this step, because one of them got a stop signal.

    Signals reach the ranks at different steps. On a GPU the ranks agree only where the host waits anyway, to log.
    """
    if ranks.count() == 1:
        return bool(stop)
    return (logs or device.type != "cuda") and ranks.any_rank(bool(stop), device)


def stop_of(stop: Sequence[int], stopping: bool) -> int | None:
    """Return the number of the signal that ended the training; of another rank's signal, that of SIGTERM."""
    return (stop[0] if stop else int(signal.SIGTERM)) if stopping else None


def history(run: Run, done: int, start: float) -> History:
    """Return the progress of the run. `start` is the time on its clock at which this process began with it."""
    before = run.before
    seconds = None if before.seconds is None else before.seconds + run.clock.seconds() - start
    return History(done, seconds, max(before.side_by_side, run.side_by_side))


def evaluate(run: Run, log: Log, now: History) -> None:
    """Log how well unseen clips are tracked and reconstructed. The clock of all runs is paused meanwhile."""
    config = run.config
    with run.clock.standing_still(), warnings.catch_warnings(action="ignore"):  # `guards` warns of full slots
        # All frames are observed, so there is nothing to forecast.
        measured = report.evaluate(
            run.step.model, config, config.train.evaluate_clips, observe=config.test.length, quiet=True
        ).to_dict()
        seconds = math.nan if now.seconds is None else now.seconds
        figures = {name: measured[name] for name in LOGGED_METRICS if name in measured}
        log.write({"step": now.step, "seconds": seconds, **figures})


class Clock:
    """A clock of the training time of all runs together. It is paused while one of them is evaluated."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.start = device, time.monotonic()

    def seconds(self) -> float:
        """Return the seconds since the start, without pauses."""
        return self.now() - self.start

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Pause the clock inside the block."""
        since = self.now()
        try:
            yield
        finally:
            self.start += self.now() - since

    def now(self) -> float:
        """Return the time in seconds, once a GPU has finished its queued work, so that this work is counted."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.monotonic()


def frames_before(train: TrainConfig, step: int) -> int:
    """Return the number of frames of a clip, summed over all steps before `step`.

    Progress is counted in frames because training time goes with frames rather than steps: clips become longer.
    """
    ends = [*(start for start, _ in train.lengths[1:]), step]
    return sum(
        max(0, min(end, step) - start) * frames for (start, frames), end in zip(train.lengths, ends, strict=True)
    )


@contextmanager
def progress_bars(jobs: Sequence[Job], quiet: bool) -> Iterator[list["tqdm[NoReturn]"]]:
    """Yield one progress bar per run. All end together, because a bar that ends moves the lines of the bars below."""
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
