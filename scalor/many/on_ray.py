"""Work on a Ray cluster: a task for each video, with the same work as in a process of this machine."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.many.video_records import VideoOutcome
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, do_job
from scalor.many.workers import Workers


def work_on_ray(task: Task, job: VideoJob, out: str, again: bool) -> VideoOutcome:
    """Do a task for a video on a node; the folder of all results must be the same for all nodes."""
    return do_job(task, job, Path(out), None, again)


def connect(address: str | None) -> Any:
    """Connect to a cluster, or start one on this machine if no address is given; return the module `ray`."""
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise InputError("engine is 'ray' and the package ray is missing: run pip install 'scalor[ray]'.") from error
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError) as error:
            raise InputError(f"address is {address!r}: no Ray cluster answers there ({error}).") from error
        except Exception as error:  # Ray raises exceptions of no further type where its servers do not start
            reason = str(error).partition(". ")[0]
            raise InputError(f"engine is 'ray', which does not start ({reason}): use --engine local.") from error
    return ray


def run_on_ray(
    task: Task,
    jobs: Sequence[VideoJob],
    out: Path,
    workers: Workers,
    again: bool = False,
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
    again
        Whether to do every video from the beginning, whatever is there.
    """
    ray = connect(workers.address)
    remote = ray.remote(num_cpus=1, num_gpus=workers.gpus, max_retries=workers.retries)(work_on_ray)
    whole = str(out.resolve())
    pending = {remote.remote(task, replace(job, video=absolute(job.video)), whole, again): job for job in jobs}
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


def absolute(video: str) -> str:
    """Return the absolute path of a video, which a task on another node needs."""
    return str(Path(video).absolute())
