"""The work on one video, the same in a process of this machine and in a task of a cluster."""

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.files import FolderBusy, stop_signals_raised
from scalor.many.store import add_to_store
from scalor.many.video_records import VIDEOS, VideoOutcome, read_record, record_path, write_record
from scalor.many.videos import VideoJob

BUSY_SECONDS = 60.0
"""Time to wait for a folder in which a worker of a run that was killed is still writing."""
TELL_SECONDS = 0.5
"""Smallest time between two reports of progress."""

Tell = Callable[[int, int | None], None]
"""Receives the number of frames tracked so far and the number in all, if it is known."""


def track_job(job: VideoJob, out: Path, tell: Tell | None = None, again: bool = False) -> VideoOutcome:
    """Track a video into its folder, unless that was done before with the same video, weights and options.

    Nothing is raised but `Stopped`: whatever goes wrong stands in the outcome.

    Parameters
    ----------
    job : VideoJob
        The video.
    out : Path
        The folder of all results.
    tell : callable, optional
        Receives the progress.
    again : bool
        Whether to track it in any case, from its first frame.
    """
    begun = time.monotonic()
    try:
        with stop_signals_raised():
            key = key_of(job)
            if again:  # also for the worker that comes after this one if this one is killed
                record_path(out, job.name).unlink(missing_ok=True)
            before = done_before(job, out, key)
            if before is not None:
                return before
            outcome = VideoOutcome(**tracked(job, out, tell, again), seconds=round(time.monotonic() - begun, 2))
            write_record(out, outcome, key)
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


def tracked(job: VideoJob, out: Path, tell: Tell | None, again: bool) -> dict[str, Any]:
    """Track a video and add it to the store; return the facts of its outcome."""
    import torch

    from scalor.pipeline import track_to_folder

    torch.set_num_threads(1)  # the results must not depend on the number of workers
    last = 0.0

    def now_and_then(frames: int, total: int | None) -> None:
        nonlocal last
        if tell is not None and time.monotonic() - last > TELL_SECONDS:
            last = time.monotonic()
            tell(frames, total)

    folder = out / VIDEOS / job.name
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            found = track_to_folder(
                job.video,
                folder,
                quiet=True,
                restart=again,
                replace_unfinished=True,
                on_frame=now_and_then,
                **job.options,
            )
            break
        except FolderBusy:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
    add_to_store(out, job.name, folder)
    health = found.health
    return {
        "name": job.name,
        "video": job.video,
        "state": "done",
        "frames": found.summary.frames,
        "objects": found.summary.objects,
        "rows": found.summary.rows,
        "verdict": None if health is None else health.verdict,
        "frames_before": found.frames_before,
    }


def key_of(job: VideoJob) -> dict[str, str]:
    """Return what the results of a video depend on: the video, the weights and the options."""
    from scalor import fingerprints
    from scalor.tracker_choice import TrackerChoice

    options = dict(job.options)
    names = ("weights", "object_size", "slots", "masks", "raw", "device")
    choice = TrackerChoice(**{name: options[name] for name in names if name in options})
    kept = {name: str(value) for name, value in sorted(options.items()) if name not in ("weights", "device")}
    try:
        video = fingerprints.of_video(job.video)
    except OSError as error:
        raise InputError(f"{job.video} cannot be read ({error.strerror}): give a video that you may read.") from error
    return {"video": video, "weights": choice.fingerprint, **kept}


def done_before(job: VideoJob, out: Path, key: dict[str, str]) -> VideoOutcome | None:
    """Return the outcome of an earlier run whose results are there and would be the same; None otherwise."""
    record = read_record(out, job.name)
    if record is None or record["key"] != key or not (out / VIDEOS / job.name / "report.html").exists():
        return None
    return VideoOutcome(**{**record["outcome"], "state": "kept"})
