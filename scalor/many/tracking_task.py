"""Tracking as a task: each video into a result folder of its own, and into the store."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.files import FolderBusy
from scalor.many.store import add_to_store
from scalor.many.video_records import RECORDS, VIDEOS, VideoOutcome
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, Tell, do_job

BUSY_SECONDS = 60.0
"""Time to wait for a folder in which a worker of a run that was killed is still writing."""


def track_job(job: VideoJob, out: Path, tell: Tell | None = None, again: bool = False) -> VideoOutcome:
    """Track a video into its folder, unless that was done before; see `do_job`."""
    return do_job(TRACK, job, out, tell, again)


def tracked(job: VideoJob, out: Path, tell: Tell, again: bool) -> dict[str, Any]:
    """Track a video and add it to the store; return the facts of its outcome."""
    import torch

    from scalor.pipeline import track_to_folder

    torch.set_num_threads(1)  # the results must not depend on the number of workers
    folder = out / VIDEOS / job.name
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            found = track_to_folder(
                job.video, folder, quiet=True, restart=again, replace_unfinished=True, on_frame=tell, **job.options
            )
            break
        except FolderBusy:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
    add_to_store(out, job.name, folder)
    health = found.health
    return {
        "frames": found.summary.frames,
        "objects": found.summary.objects,
        "rows": found.summary.rows,
        "verdict": None if health is None else health.verdict,
        "frames_before": found.frames_before,
    }


def key_of(job: VideoJob, out: Path) -> dict[str, str]:
    """Return what the results of a video depend on: the video, the weights and the options."""
    from scalor.tracker_choice import TrackerChoice

    options = dict(job.options)
    names = ("weights", "object_size", "slots", "masks", "raw", "device")
    choice = TrackerChoice(**{name: options[name] for name in names if name in options})
    return {"video": video_print(job.video), "weights": choice.fingerprint, **as_text(options)}


def video_print(video: str) -> str:
    """Return the fingerprint of a video, or raise InputError if it cannot be read."""
    from scalor import fingerprints

    try:
        return fingerprints.of_video(video)
    except OSError as error:
        raise InputError(f"{video} cannot be read ({error.strerror}): give a video that you may read.") from error


def as_text(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as text, without the weights, which have a fingerprint, and without the device."""
    return {name: str(value) for name, value in sorted(options.items()) if name not in ("weights", "device")}


def report_of(job: VideoJob, out: Path) -> Path:
    """Return the report of a video."""
    return out / VIDEOS / job.name / "report.html"


TRACK = Task(RECORDS, key_of, tracked, report_of)
