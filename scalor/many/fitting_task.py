"""Fitting as a task: weights of its own for each of many videos.

>>> summary = fit_each(find_jobs(["footage/"], {"minutes": 5}, COLUMNS), "runs", Workers(4))
"""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalor.checkpoint import MODEL_FILE
from scalor.errors import InputError
from scalor.files import Stopped, as_json, folder_lock, open_folder, replacing
from scalor.many.run import ManySummary, run_jobs
from scalor.many.tracking_task import as_text, video_print
from scalor.many.video_records import VideoOutcome, read_record, record_path, write_record
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, Tell
from scalor.many.workers import ALL_CORES, Workers

COLUMNS = ("weights", "region", "start", "end", "stride", "fps", "object_size", "minutes", "steps", "scale")
"""Columns of a table of videos that are options of a fit."""
FITS = "fits"
"""Folder of the records, one JSON file per video, in the folder of all runs."""


def fit_each(
    jobs: Sequence[VideoJob],
    out: str | Path,
    workers: Workers = ALL_CORES,
    quiet: bool = False,
    whole: bool = True,
) -> ManySummary:
    """Fit weights to each of many videos; what is missing or changed, and nothing else.

    A fit that was stopped is resumed.

    Parameters
    ----------
    jobs : sequence of VideoJob
        The videos. Their options are arguments of `scalor.fit`.
    out : str or Path
        Folder for all runs: a run folder NAME for each video, and `fits.json`.
    workers, quiet
        As for `track_many`.
    whole : bool, default True
        Whether these are all videos of the folder. If not, `fits.json` is left to a run with all videos.

    Returns
    -------
    ManySummary
        The outcome of each video; its verdict says which weights the run folder holds.
    """
    begun = time.monotonic()
    folder = open_folder(out)
    for job in jobs:
        if job.name == FITS:
            raise InputError(f"{job.video} is named {FITS}, as the folder of the records: give it a name in a table.")
    outcomes = run_jobs(FIT, jobs, folder, workers, quiet=quiet)
    summary = ManySummary(folder, outcomes, time.monotonic() - begun)
    if whole:
        with replacing(folder / "fits.json") as temporary:
            temporary.write_text(as_json(summary.to_dict()))
    return summary


def fit_video(job: VideoJob, out: Path, tell: Tell) -> dict[str, Any]:
    """Fit weights to a video, or resume that; return the facts of its outcome.

    The weights of a fit with other options are put aside until the new ones are there.
    """
    import torch

    from scalor.fitting.fit import CHOSEN_FILE, fit

    torch.set_num_threads(1)  # the results must not depend on the number of workers
    folder, aside, key = out / job.name, out / f".{job.name}.before", key_of(job, out)
    before = read_record(out, job.name, FITS)
    if before is None and (folder / CHOSEN_FILE).exists():
        raise InputError(f"folder {folder} holds a run of another command: choose another folder with --out.")
    if before is not None and before["key"] != key and folder.exists():
        with folder_lock(folder):
            if aside.exists():  # the run here began after that one and was not finished
                shutil.rmtree(folder)
            else:
                folder.rename(aside)
                write_record(aside, VideoOutcome(**before["outcome"]), before["key"], ".")
    write_record(out, VideoOutcome(job.name, job.video, "begun"), key, FITS)
    try:
        if (folder / CHOSEN_FILE).exists():
            fitted = fit(job.video, folder, resume=True, device=job.options.get("device", "auto"), quiet=True)
        else:
            fitted = fit(job.video, folder, quiet=True, **job.options)
    except Exception:
        put_back(job, out, aside)
        raise
    if fitted.stopped:
        raise Stopped(fitted.stopped)
    shutil.rmtree(aside, ignore_errors=True)
    return {"verdict": "fitted" if fitted.compared is None else str(fitted.compared.to_dict()["kept"])}


def put_back(job: VideoJob, out: Path, aside: Path) -> None:
    """Put weights that were put aside, and their record, where they were."""
    before = read_record(aside, job.name, ".")
    if before is None:
        return
    shutil.rmtree(out / job.name, ignore_errors=True)
    aside.rename(out / job.name)
    record_path(out / job.name, job.name, ".").unlink()
    write_record(out, VideoOutcome(**before["outcome"]), before["key"], FITS)


def key_of(job: VideoJob, out: Path) -> dict[str, str]:
    """Return what the weights depend on: the video, the weights to start from, and the options."""
    from scalor.tracker_choice import TrackerChoice

    start = TrackerChoice(job.options.get("weights") or "any").fingerprint
    return {"video": video_print(job.video), "weights": start, **as_text(job.options)}


def weights_of(job: VideoJob, out: Path) -> list[Path]:
    """Return the file of the weights of a video."""
    return [out / job.name / MODEL_FILE]


FIT = Task(FITS, key_of, fit_video, weights_of)
