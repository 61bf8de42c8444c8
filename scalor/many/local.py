"""Work on this machine: a process for each video, so many at a time."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from scalor.files import Stopped
from scalor.many.video_records import VideoOutcome
from scalor.many.videos import VideoJob, on_device
from scalor.many.worker import Task, do_job

Progress = Callable[[str, int, int | None], None]
"""Receives the name of a video, its frames so far, and its frames in all, if that is known."""


PRELOADED = [
    *(
        "scalor.pipeline",
        "scalor.many.tracking_task",
        "scalor.measures",
        "scalor.video.containers",
        "scalor.visual.plots",
    ),
    *(
        "cv2",
        "pandas",
        "pyarrow.parquet",
        "matplotlib.figure",
        "matplotlib.backends.backend_agg",
        "scipy.ndimage",
        "PIL.Image",
    ),
]
"""Modules that the server of new workers imports once; those that are not installed are left out."""


class Running(NamedTuple):
    """A worker at work."""

    process: BaseProcess
    job: VideoJob
    attempt: int
    slot: int


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def work(task: Task, job: VideoJob, out: Path, results: "Connection[object, object]") -> None:
    """Do a task for a video in a process of its own, and send the progress and the outcome."""

    def tell(frames: int, total: int | None) -> None:
        try:
            results.send((frames, total))
        except OSError as error:  # the driver is gone
            raise Stopped(signal.SIGTERM) from error

    threading.Thread(target=end_with_the_driver, daemon=True).start()
    try:
        results.send(do_job(task, job, out, tell))
    except (Stopped, OSError):
        raise SystemExit(1) from None


def end_with_the_driver() -> None:
    """Wait until the driver has ended, however it ended, and stop this process then."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os.kill(os.getpid(), signal.SIGTERM)


def run_local(
    task: Task,
    jobs: Sequence[VideoJob],
    out: Path,
    workers: int,
    retries: int,
    progress: Progress,
    devices: Sequence[str] = (),
) -> Iterator[VideoOutcome]:
    """Do a task for videos in worker processes and yield each outcome as soon as it is known.

    A worker that is killed is replaced, and its video is resumed, `retries` times at most. When this
    generator is closed, or a stop signal comes, the workers are stopped.

    Parameters
    ----------
    task
        What to do with each video.
    jobs
        The videos.
    out
        The folder of all results.
    workers
        Number of videos at the same time.
    retries
        How often a video is tried again whose worker was killed.
    progress
        Receives the progress of every video.
    devices
        Devices to spread the videos over; empty for the device of each job.
    """
    kind = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(kind)
    if kind == "forkserver":  # so that a worker starts in milliseconds
        context.set_forkserver_preload(PRELOADED)
    waiting = [(job, 1) for job in reversed(jobs)]
    free = list(range(workers))[::-1]
    running: dict[Connection[object, object], Running] = {}
    try:
        while waiting or running:
            while waiting and free:
                job, attempt = waiting.pop()
                slot = free.pop()
                placed = on_device(job, devices[slot % len(devices)]) if devices else job
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=work, args=(task, placed, out, theirs))
                process.start()
                theirs.close()
                running[ours] = Running(process, job, attempt, slot)
            for pipe in [pipe for pipe in wait(list(running)) if pipe in running]:
                worker = running[pipe]
                try:
                    message = pipe.recv()
                except (EOFError, OSError):
                    message = None
                if isinstance(message, tuple):
                    progress(worker.job.name, *message)
                    continue
                worker.process.join()
                del running[pipe]
                free.append(worker.slot)
                if isinstance(message, VideoOutcome):
                    yield replace(message, attempts=worker.attempt)
                elif worker.attempt <= retries:
                    waiting.append((worker.job, worker.attempt + 1))
                else:
                    reason = f"its worker ended {worker.attempt} times with code {worker.process.exitcode}"
                    yield VideoOutcome(worker.job.name, worker.job.video, "failed", reason, attempts=worker.attempt)
    finally:
        for worker in running.values():
            worker.process.terminate()
        for worker in running.values():
            worker.process.join()
