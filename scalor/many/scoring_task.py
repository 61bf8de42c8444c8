"""Scoring as a task: the tracks of many videos against their truths, and the scores of all together.

>>> scores = score_many("results", "truths")
>>> print(scores.table())
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.evaluation.score import GATES, GateResult, score
from scalor.files import as_json, replacing
from scalor.many.run import run_jobs
from scalor.many.tracking_task import as_text, video_print
from scalor.many.video_records import VIDEOS, VideoOutcome
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, Tell
from scalor.many.workers import ALL_CORES, Workers
from scalor.tracks import table_in

SCORES = "scores"
"""Folder of the scores, one JSON file per video, in the folder of all results."""
TABLES = (".parquet", ".csv", ".txt")
"""Endings of files of tracks or truths."""


@dataclass(frozen=True)
class ManyScores:
    """Scores of many videos."""

    outcomes: tuple[VideoOutcome, ...]
    gates: Mapping[str, Mapping[str, GateResult]]
    """Scores of each video that could be scored, by the name of the gate."""
    without_truth: tuple[str, ...]
    """Videos that were tracked and have no truth."""
    without_tracks: tuple[str, ...]
    """Truths whose videos were not tracked. They are not part of the scores together."""

    @property
    def failed(self) -> tuple[VideoOutcome, ...]:
        """The videos that could not be scored, with their reasons."""
        return tuple(one for one in self.outcomes if one.state == "failed")

    def together(self) -> dict[str, GateResult]:
        """Return the scores of all videos together, from the sums of their counts."""
        every = list(self.gates.values())
        return {gate.name: reduce(add, (one[gate.name] for one in every)) for gate in GATES} if every else {}

    def to_dict(self) -> dict[str, Any]:
        """Return the scores for JSON."""
        return {
            "together": {name: one.to_dict() for name, one in self.together().items()},
            "videos": {
                name: {gate: one.to_dict() for gate, one in gates.items()} for name, gates in self.gates.items()
            },
            "failed": [asdict(one) for one in self.failed],
            "without_truth": self.without_truth,
            "without_tracks": self.without_tracks,
        }

    def table(self, gate: str = GATES[0].name) -> str:
        """Return the scores of each video and of all together under one gate, for the terminal."""
        width = max([len(name) for name in self.gates] + [len(gate), 12])
        lines = [f"{gate:<{width}}{'MOTA':>8}{'IDF1':>8}{'HOTA':>8}{'prec.':>8}{'recall':>8}{'switches':>10}"]
        named = {name: gates[gate] for name, gates in self.gates.items()}
        if named:
            named["all together"] = self.together()[gate]
        for name, score_of_one in named.items():
            one = score_of_one.to_dict()
            ratios = "".join(f"{one[key]:>8.3f}" for key in ("mota", "idf1", "hota", "precision", "recall"))
            lines.append(f"{name:<{width}}{ratios}{one['switches']:>10.0f}")
        lines += [f"failed: {one.name}: {one.reason}" for one in self.failed]
        for names, what in ((self.without_truth, "have no truth"), (self.without_tracks, "were not tracked")):
            if names:
                lines.append(f"{len(names)} {what}: {', '.join(names)}")
        return "\n".join(lines)


def score_many(
    results: str | Path,
    truths: str | Path,
    frames: tuple[int, int] | None = None,
    minimum_presence: float | None = None,
    workers: Workers = ALL_CORES,
    quiet: bool = False,
) -> ManyScores:
    """Score the tracks of many videos against their truths; what was scored before and did not change is kept.

    Parameters
    ----------
    results : str or Path
        The folder of all results of `scalor track`, or a folder of track files. Scores are written to `scores` in it.
    truths : str or Path
        Folder of the truths: NAME.txt, NAME.csv or NAME.parquet for each video, or NAME/gt/gt.txt as MOTChallenge has.
    frames, minimum_presence
        As for `scalor.score`, for all videos.
    workers, quiet
        As for `track_many`.

    Returns
    -------
    ManyScores
        The scores of each video and of all together.

    Examples
    --------
    >>> score_many("results", "truths").together()["iou .5"].clear.mota
    """
    folder = Path(results)
    tracks, true = tracks_in(folder), truths_in(Path(truths))
    both = sorted(tracks.keys() & true.keys())
    if not both:
        raise InputError(
            f"no video of {results} has a truth in {truths}: name the truths as the videos, such as "
            f"{next(iter(sorted(tracks)), 'NAME')}.txt."
        )
    options = {"frames": frames, "minimum_presence": minimum_presence}
    jobs = [VideoJob(name, str(tracks[name]), {**options, "truth": str(true[name].absolute())}) for name in both]
    (folder / SCORES).mkdir(exist_ok=True)
    outcomes = run_jobs(SCORE, jobs, folder, workers, quiet=quiet)
    gates = {one.name: read_scores(folder, one.name) for one in outcomes if one.state != "failed"}
    alone = tuple(sorted(tracks.keys() - true.keys())), tuple(sorted(true.keys() - tracks.keys()))
    scores = ManyScores(outcomes, gates, *alone)
    with replacing(folder / "scores.json") as temporary:
        temporary.write_text(as_json(scores.to_dict()))
    return scores


def tracks_in(folder: Path) -> dict[str, Path]:
    """Return the tracks of each video by its name."""
    if (folder / VIDEOS).is_dir():
        return {path.name: path for path in (folder / VIDEOS).iterdir() if (path / "report.html").exists()}
    return files_in(folder)


def truths_in(folder: Path) -> dict[str, Path]:
    """Return the truth of each video by its name."""
    nested = {path.parent.parent.name: path for path in folder.glob("*/gt/gt.txt")}
    return {**nested, **{path.parent.name: path for path in folder.glob("*/gt.txt")}, **files_in(folder)}


def files_in(folder: Path) -> dict[str, Path]:
    """Return the tables in a folder by their names without endings."""
    return {path.stem: path for path in sorted(folder.iterdir()) if path.suffix in TABLES and path.is_file()}


def score_video(job: VideoJob, out: Path, tell: Tell) -> dict[str, Any]:
    """Score a video and write the scores; return the facts of its outcome."""
    found = score(job.video, job.options["truth"], job.options["frames"], job.options["minimum_presence"])
    counts = {name: one.counts() for name, one in found.gates.items()}
    with replacing(scores_of(job, out)) as temporary:
        temporary.write_text(as_json({**found.to_dict(), "counts": counts}))
    first, last = found.frames
    return {"frames": last - first + 1, "objects": found.identities, "rows": found.objects}


def read_scores(folder: Path, name: str) -> dict[str, GateResult]:
    """Return the scores of a video by the name of the gate."""
    counts = json.loads((folder / SCORES / f"{name}.json").read_bytes())["counts"]
    return {gate: GateResult.of_counts(one) for gate, one in counts.items()}


def key_of(job: VideoJob, out: Path) -> dict[str, str]:
    """Return what the scores of a video depend on."""
    truth = video_print(job.options["truth"])
    return {**as_text(job.options), "tracks": video_print(str(table_in(job.video))), "truth": truth}


def scores_of(job: VideoJob, out: Path) -> Path:
    """Return the file of the scores of a video."""
    return out / SCORES / f"{job.name}.json"


def products_of(job: VideoJob, out: Path) -> list[Path]:
    """Return the file of the scores of a video."""
    return [scores_of(job, out)]


SCORE = Task(f"{SCORES}/.records", key_of, score_video, products_of)
