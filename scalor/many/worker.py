"""The work on one video, the same in a process of this machine and in a task of a cluster."""

import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.files import FolderBusy, folder_lock, stop_signals_raised
from scalor.many.video_records import VideoOutcome, read_record, record_path, write_record
from scalor.many.videos import VideoJob
from scalor.replacement import PARTIAL

BUSY_SECONDS = 60.0
"""Time to wait for a folder in which a worker of a run that was killed is still writing."""
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
    work: Callable[[VideoJob, Path, Tell], dict[str, Any]]
    """Do the work, or resume it; return the facts of the outcome."""
    products: Callable[[VideoJob, Path], list[Path]]
    """Return the files without which the work was not done. The first is in the folder in which the work is done."""


def do_job(task: Task, job: VideoJob, out: Path, tell: Tell | None = None) -> VideoOutcome:
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
    """
    begun = time.monotonic()
    try:
        with stop_signals_raised():
            key = task.key(job, out)
            before = done_before(task, job, out, key)
            if before is not None:
                return before
            check_name(task, job, out, key)
            facts = work_patiently(task, job, out, now_and_then(tell))
            seconds = round(time.monotonic() - begun, 2)
            outcome = VideoOutcome(job.name, job.video, "done", seconds=seconds, **facts)
            write_record(out, outcome, key, task.records)
            return outcome
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        if not isinstance(error, InputError):
            traceback.print_exc()
            reason = f"{type(error).__name__}: {reason}"
        if all(path.exists() for path in task.products(job, out)):
            reason += " (the results of an earlier run are kept)"
        return VideoOutcome(job.name, job.video, "failed", reason, seconds=round(time.monotonic() - begun, 2))


def done_before(task: Task, job: VideoJob, out: Path, key: dict[str, str]) -> VideoOutcome | None:
    """Return the outcome of an earlier run whose results are there and would be the same; None otherwise."""
    record = read_record(out, job.name, task.records)
    if record is None or record["key"] != key or record["outcome"]["state"] != "done":
        return None
    if not all(path.exists() for path in task.products(job, out)):
        return None
    return VideoOutcome(**{**record["outcome"], "state": "kept", "video": job.video})


def check_name(task: Task, job: VideoJob, out: Path, key: dict[str, str]) -> None:
    """Raise InputError if the folder holds the results of another video of this name, which would be replaced."""
    record = read_record(out, job.name, task.records)
    if record is None or record["key"].get("video") == key.get("video"):
        return
    other = record["outcome"]["video"]
    if Path(other).exists() and Path(other).resolve() != Path(job.video).resolve():
        raise InputError(
            f"{job.name} in {out} holds the results of {other}, another video: choose another folder with --out, or "
            "give a table with the columns video and name."
        )


def work_patiently(task: Task, job: VideoJob, out: Path, tell: Tell) -> dict[str, Any]:
    """Do the work of a task; wait for a folder in which a worker of a run that was killed is still writing."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return task.work(job, out, tell)
        except FolderBusy:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def forget(task: Task, job: VideoJob, out: Path) -> None:
    """Delete the record of a video and its unfinished work, so that it is done from the beginning."""
    record_path(out, job.name, task.records).unlink(missing_ok=True)
    folder = task.products(job, out)[0].parent
    if (folder / PARTIAL).exists():
        with folder_lock(folder):
            shutil.rmtree(folder / PARTIAL, ignore_errors=True)


def now_and_then(tell: Tell | None) -> Tell:
    """Return a receiver of progress that passes on a report every half second."""
    last = 0.0

    def passed_on(frames: int, total: int | None) -> None:
        nonlocal last
        if tell is not None and time.monotonic() - last > TELL_SECONDS:
            last = time.monotonic()
            tell(frames, total)

    return passed_on
