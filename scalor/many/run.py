"""Track many videos: what is missing or changed, and nothing else; one that fails does not stop the others.

>>> summary = track_many(find_jobs(["footage/"], {}), "results", Workers(8))
>>> summary.failed
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from scalor.files import as_json, open_folder, replacing
from scalor.many.index_page import write_index
from scalor.many.local import Progress, run_local, usable_cores
from scalor.many.on_ray import run_on_ray
from scalor.many.store import finish_store
from scalor.many.tracking_task import TRACK
from scalor.many.video_records import VIDEOS, VideoOutcome, read_record, recorded
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, forget
from scalor.many.workers import ALL_CORES, Workers


@dataclass(frozen=True)
class ManySummary:
    """What came of all videos."""

    folder: Path
    outcomes: tuple[VideoOutcome, ...]
    seconds: float

    def count(self, state: str) -> int:
        """Return how many videos have a state: done, kept or failed."""
        return sum(one.state == state for one in self.outcomes)

    @property
    def failed(self) -> tuple[VideoOutcome, ...]:
        """The videos that failed, with their reasons."""
        return tuple(one for one in self.outcomes if one.state == "failed")

    def to_dict(self) -> dict[str, Any]:
        """Return the summary for JSON."""
        states = {state: self.count(state) for state in ("done", "kept", "failed")}
        videos = [asdict(one) for one in self.outcomes]
        return {"folder": str(self.folder), "seconds": round(self.seconds, 2), **states, "videos": videos}


def track_many(
    jobs: Sequence[VideoJob],
    out: str | Path,
    workers: Workers = ALL_CORES,
    again: bool = False,
    quiet: bool = False,
    whole: bool = True,
) -> ManySummary:
    """Track many videos into one folder.

    Parameters
    ----------
    jobs : sequence of VideoJob
        The videos, as `find_jobs` returns them.
    out : str or Path
        Folder for all results: `tracked/NAME` for each video, `store`, `index.html`, `summary.json`.
    workers : Workers
        Where they are tracked, and how many at the same time. Default: one for each core of this machine.
    again : bool, default False
        Track every video again, whatever is there.
    quiet : bool, default False
        Hide the progress.
    whole : bool, default True
        Whether these are all videos of the folder. If not, as for one part of several that other machines track,
        `index.html`, `summary.json` and the store's manifest are left to a run with all videos.

    Returns
    -------
    ManySummary
        The outcome of each video, in the order of `jobs`.
    """
    begun = time.monotonic()
    folder = open_folder(out)
    outcomes = run_jobs(TRACK, jobs, folder, workers, again, quiet)
    summary = ManySummary(folder, outcomes, time.monotonic() - begun)
    if whole:
        write_summary(summary)
    return summary


def run_jobs(
    task: Task,
    jobs: Sequence[VideoJob],
    folder: Path,
    workers: Workers = ALL_CORES,
    again: bool = False,
    quiet: bool = False,
    unit: str = "videos",
) -> tuple[VideoOutcome, ...]:
    """Do a task for every video, and return the outcomes in the order of the jobs; see `track_many`."""
    open_folder(folder / task.records)
    if again:
        for job in jobs:
            forget(task, job, folder)
    if workers.engine == "ray":

        def start(report: Progress) -> Iterator[VideoOutcome]:
            return run_on_ray(task, jobs, folder, workers)

    else:
        devices = graphics_cards(jobs)
        count = min(workers.count or len(devices) or usable_cores(), max(1, len(jobs)))

        def start(report: Progress) -> Iterator[VideoOutcome]:
            return run_local(task, jobs, folder, count, workers.retries, report, devices)

    found: dict[str, VideoOutcome] = {}
    with ProgressOfAll(len(jobs), quiet, unit) as shown, closing(start(shown.report)) as outcomes:  # type: ignore[type-var]
        for outcome in outcomes:
            found[outcome.name] = outcome
            shown.finish(outcome)
    return tuple(found[job.name] for job in jobs)


def graphics_cards(jobs: Sequence[VideoJob]) -> list[str]:
    """Return the devices to spread videos over: all GPUs if every video may use any device, otherwise none."""
    if not all(job.options.get("device", "auto") == "auto" for job in jobs):
        return []
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def write_summary(summary: ManySummary) -> None:
    """Write `summary.json`, the index page, and the manifest of the store, with the videos of earlier runs."""
    every = replace(summary, outcomes=(*summary.outcomes, *earlier(summary.folder, summary.outcomes)))
    with replacing(summary.folder / "summary.json") as temporary:
        temporary.write_text(as_json(every.to_dict()))
    finish_store(summary.folder, every.outcomes)
    write_index(summary.folder, every.outcomes)


def earlier(folder: Path, outcomes: Sequence[VideoOutcome]) -> list[VideoOutcome]:
    """Return the outcomes of other videos, of earlier runs, whose results are still in the folder."""
    found = []
    for name in set(recorded(folder)) - {one.name for one in outcomes}:
        record = read_record(folder, name)
        if record is not None and record["outcome"]["state"] == "done" and (folder / VIDEOS / name).exists():
            found.append(VideoOutcome(**{**record["outcome"], "state": "kept"}))
    return sorted(found, key=lambda one: one.name)


class ProgressOfAll:
    """A progress bar over all videos, which counts parts of videos, with the time left."""

    def __init__(self, videos: int, quiet: bool, unit: str = "videos") -> None:
        self.bar: tqdm[Any] = tqdm(
            total=videos,
            file=sys.stderr,
            unit=unit,
            leave=False,
            disable=quiet,
            bar_format="{l_bar}{bar}| {n:.1f}/{total} {unit} [{elapsed}, {remaining} left] {postfix}",
        )
        self.parts: dict[str, float] = {}
        self.failed = 0

    def __enter__(self) -> "ProgressOfAll":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def report(self, name: str, frames: int, total: int | None) -> None:
        """Show that a video has come so far."""
        part = min(frames / total, 0.99) if total else 0.0
        self.bar.update(max(0.0, part - self.parts.get(name, 0.0)))
        self.parts[name] = max(part, self.parts.get(name, 0.0))

    def finish(self, outcome: VideoOutcome) -> None:
        """Show that a video is finished, and say so at once if it failed."""
        self.bar.update(1 - self.parts.pop(outcome.name, 0.0))
        if outcome.state == "failed":
            self.failed += 1
            self.bar.set_postfix_str(f"{self.failed} failed")
            if not self.bar.disable:
                tqdm.write(f"failed: {outcome.video}: {outcome.reason}", file=sys.stderr)
