"""The work on one video, the same in a process of this machine and in a task of a cluster."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.files import stop_signals_raised
from scalor.many.video_records import VideoOutcome, read_record, record_path, write_record
from scalor.many.videos import VideoJob

TELL_SECONDS = 0.5
"""Smallest time between two reports of progress."""

Tell = Callable[[int, int | None], None]
"""Receives the number of frames so far and the number in all, if it is known."""


@dataclass(frozen=True)
class Task:
    """What is done with each video: it is tracked, fitted or scored, or a stretch of it is tracked."""

    records: str
    """Folder of the records of finished videos, in the folder of all results."""
    key: Callable[[VideoJob, Path], dict[str, str]]
    """Return what the results depend on."""
    work: Callable[[VideoJob, Path, Tell, bool], dict[str, Any]]
    """Do the work, from the beginning if the last argument is true; return the facts of the outcome."""
    product: Callable[[VideoJob, Path], Path]
    """Return the file without which the work was not done."""


def do_job(task: Task, job: VideoJob, out: Path, tell: Tell | None = None, again: bool = False) -> VideoOutcome:
    """Do a task for a video, unless that was done before with the same video, weights and options.

    Nothing is raised but `Stopped`: whatever goes wrong stands in the outcome.

    Parameters
    ----------
    task : Task
        What to do.
    job : VideoJob
        The video.
    out : Path
        The folder of all results.
    tell : callable, optional
        Receives the progress.
    again : bool
        Whether to do it in any case, from the beginning.
    """
    begun = time.monotonic()
    try:
        with stop_signals_raised():
            key = task.key(job, out)
            if again:  # also for the worker that comes after this one if this one is killed
                record_path(out, job.name, task.records).unlink(missing_ok=True)
            before = done_before(task, job, out, key)
            if before is not None:
                return before
            facts = task.work(job, out, now_and_then(tell), again)
            seconds = round(time.monotonic() - begun, 2)
            outcome = VideoOutcome(job.name, job.video, "done", seconds=seconds, **facts)
            write_record(out, outcome, key, task.records)
            return outcome
    except (
        InputError,
        MemoryError,
        OSError,
        RuntimeError,
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
    ) as error:
        if not isinstance(error, InputError):
            traceback.print_exc()
        reason = " ".join(str(error).split()) or type(error).__name__
        if not isinstance(error, InputError):
            reason = f"{type(error).__name__}: {reason}"
        return VideoOutcome(job.name, job.video, "failed", reason, seconds=round(time.monotonic() - begun, 2))


def done_before(task: Task, job: VideoJob, out: Path, key: dict[str, str]) -> VideoOutcome | None:
    """Return the outcome of an earlier run whose results are there and would be the same; None otherwise."""
    record = read_record(out, job.name, task.records)
    if record is None or record["key"] != key or not task.product(job, out).exists():
        return None
    if record["outcome"]["state"] == "begun":
        return None
    return VideoOutcome(**{**record["outcome"], "state": "kept"})


def now_and_then(tell: Tell | None) -> Tell:
    """Return a receiver of progress that passes on a report every half second."""
    last = 0.0

    def passed_on(frames: int, total: int | None) -> None:
        nonlocal last
        if tell is not None and time.monotonic() - last > TELL_SECONDS:
            last = time.monotonic()
            tell(frames, total)

    return passed_on
