"""Work on a Ray cluster: a task for each video, with the same work as in a process of this machine."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.files import STOP_SIGNALS, Stopped, restore
from scalor.many.video_records import VideoOutcome
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, do_job
from scalor.many.workers import Workers


def work_on_ray(task: Task, job: VideoJob, out: str, words: list[str]) -> VideoOutcome:
    """Do a task for a video on a node; the folder of all results must be the same for all nodes.

    `words` is the command line of the driver, for the provenance of the results.
    """
    sys.argv = words
    try:
        return do_job(task, job, Path(out))
    except Stopped as stop:
        raise SystemExit(1) from stop  # as a lost worker, whose task Ray starts elsewhere


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a cluster inside the block, or start one on this machine; yield the module `ray`.

    Ray prints what happens to its nodes to standard output, where a program expects the results alone. It goes to
    standard error.
    """
    with redirect_stdout(sys.stderr):
        ray, before = connect(address)
        try:
            yield ray
        finally:
            if not before:
                ray.shutdown()


def connect(address: str | None) -> tuple[Any, bool]:
    """Connect to a cluster, or start one on this machine; return the module `ray`, and if it was connected before."""
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise InputError("engine is 'ray' and the package ray is missing: run pip install 'scalor[ray]'.") from error
    before = ray.is_initialized()
    if not before:
        try:
            handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
            local = address is None and "RAY_ADDRESS" not in os.environ  # not one that happens to run here
            ray.init(address="local" if local else address, log_to_driver=False, logging_level="ERROR")
            restore(handlers)  # Ray has its own
        except (ConnectionError, ValueError) as error:
            raise InputError(f"address is {address!r}: no Ray cluster answers there ({error}).") from error
        except Exception as error:  # Ray raises exceptions of no further type where its servers do not start
            reason = str(error).partition(". ")[0]
            raise InputError(f"engine is 'ray', which does not start ({reason}): use --engine local.") from error
    return ray, before


def run_on_ray(
    task: Task,
    jobs: Sequence[VideoJob],
    out: Path,
    workers: Workers,
) -> Iterator[VideoOutcome]:
    """Do a task for videos on a Ray cluster and yield each outcome as soon as it is known.

    A task whose worker or node is lost is started again elsewhere, `workers.retries` times at most, and resumes.

    Parameters
    ----------
    task
        What to do with each video.
    jobs
        The videos, with paths that all nodes can read.
    out
        The folder of all results, on storage that all nodes share.
    workers
        The address of the cluster, and the GPUs and retries of each video.
    """
    with connected(workers.address) as ray:
        remote = ray.remote(num_cpus=1, num_gpus=workers.gpus, max_retries=workers.retries)(work_on_ray)
        whole = str(out.resolve())
        pending = {remote.remote(task, anywhere(job), whole, sys.argv): job for job in jobs}
        try:
            while pending:
                (ready, *_), _ = ray.wait(list(pending), num_returns=1)
                job = pending.pop(ready)
                try:
                    outcome: VideoOutcome = ray.get(ready)
                except ray.exceptions.RayError as error:
                    outcome = VideoOutcome(job.name, job.video, "failed", f"Ray: {str(error).splitlines()[0]}")
                yield replace(outcome, video=job.video)
        finally:
            for left in pending:
                ray.cancel(left, force=True)


def anywhere(job: VideoJob) -> VideoJob:
    """Return the job with absolute paths, which a task in another folder or on another node needs."""
    options = dict(job.options)
    for name in ("weights", "truth"):
        if name in options and Path(str(options[name])).exists():
            options[name] = str(Path(str(options[name])).absolute())
    return replace(job, video=str(Path(job.video).absolute()), options=options)
