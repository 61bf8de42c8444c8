"""Tracking as a task: each video into a result folder of its own, and into the store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.many.store import add_to_store, available, part
from scalor.many.video_records import RECORDS, VIDEOS, VideoOutcome, read_record, write_record
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, Tell, do_job

FACTS = ("frames", "objects", "rows", "verdict", "frames_before")
"""Fields of the outcome that tracking finds out."""


def track_job(job: VideoJob, out: Path, tell: Tell | None = None) -> VideoOutcome:
    """Track a video into its folder, unless that was done before; see `do_job`."""
    return do_job(TRACK, job, out, tell)


def tracked(job: VideoJob, out: Path, tell: Tell) -> dict[str, Any]:
    """Track a video and add it to the store; return the facts of its outcome.

    If a run ended between the two, the video is not tracked again.
    """
    key, before = key_of(job, out), read_record(out, job.name)
    if before is not None and before["key"] == key and report_of(job, out).exists():
        facts = {name: before["outcome"][name] for name in FACTS}
    else:
        facts = track(job, out, tell)
        write_record(out, VideoOutcome(job.name, job.video, "tracked", **facts), key)
    add_to_store(out, job.name, out / VIDEOS / job.name)
    return facts


def track(job: VideoJob, out: Path, tell: Tell) -> dict[str, Any]:
    """Track a video into its folder; return the facts of its outcome."""
    import torch

    from scalor.pipeline import track_to_folder

    torch.set_num_threads(1)  # the results must not depend on the number of workers
    folder = out / VIDEOS / job.name
    found = track_to_folder(job.video, folder, quiet=True, replace_unfinished=True, on_frame=tell, **job.options)
    summary, health = found.summary, found.health
    verdict = None if health is None else health.verdict
    return dict(zip(FACTS, (summary.frames, summary.objects, summary.rows, verdict, found.frames_before), strict=True))


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


def products_of(job: VideoJob, out: Path) -> list[Path]:
    """Return the report of a video, and its part of the store if there is one."""
    return [report_of(job, out), *([part(out, "tracks", job.name)] if available() else [])]


TRACK = Task(RECORDS, key_of, tracked, products_of)
