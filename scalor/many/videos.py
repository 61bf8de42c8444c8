"""Lists of videos: from files, folders, patterns, and CSV or Parquet tables with options per video."""

import csv
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any

from scalor.data.footage import FOOTAGE_FILE
from scalor.errors import InputError
from scalor.replacement import MANIFEST
from scalor.video.reading import IMAGES

VIDEO_FILES = (
    *(".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".wmv", ".flv", ".ogv", ".3gp", ".gif", ".npy", ".npz"),
    *(".mpg", ".mpeg", ".ts", ".mts", ".m2ts"),
)
"""Endings of the files of a folder that are videos. A file that is named on its own may have any ending."""
TIFF = (".tif", ".tiff")
LISTS = (".csv", ".parquet")
COLUMNS = ("weights", "region", "start", "end", "stride", "fps", "masks", "raw", "slots", "object_size")
"""Columns of a table that are options of `scalor track`."""
SAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class VideoJob:
    """A video to track, with its name in the results and its options."""

    name: str
    video: str
    options: Mapping[str, Any]
    """Arguments of `scalor.track_to_folder`."""


def is_list_of_videos(words: Sequence[str]) -> bool:
    """Return whether words name several videos, or may do so, rather than one video."""
    if len(words) > 1 or Path(words[0]).suffix.lower() in LISTS:
        return True
    found = videos_of(words[0])
    return len(found) > 1 or (Path(words[0]).is_dir() and found not in ([], [words[0]]))


def find_jobs(words: Sequence[str], options: Mapping[str, Any], columns: Sequence[str] = COLUMNS) -> list[VideoJob]:
    """Return the videos that words name, in their order and each once, with unique names.

    Parameters
    ----------
    words
        Video files, folders of videos or of images, patterns, or tables. Each row of a table is a video: column
        `video` is its path, relative to the table; `name` its name in the results; other columns are options.
    options
        Options of all videos. Those of a table have precedence.
    columns
        Columns of a table that are options.
    """
    if len(words) > 1 and all(Path(word).is_file() for word in words) and are_frames([Path(word) for word in words]):
        raise InputError(
            f"{len(words)} images are given, from {words[0]} on: if they are the frames of one video, give their "
            "folder or quote the pattern; if each is a video, give a table."
        )
    jobs: dict[str, VideoJob] = {}
    for word in words:
        for job in jobs_of(word, options, columns):
            jobs.setdefault(str(Path(job.video).resolve()) + repr(sorted(job.options.items(), key=str)), job)
    named: dict[str, VideoJob] = {}
    for job in jobs.values():
        other = named.setdefault(job.name.lower(), job)
        if other is not job:
            raise InputError(
                f"{other.video} and {job.video} would both be named {job.name!r} in the results: give their common "
                "folder, or a CSV table with the columns video and name."
            )
    return list(jobs.values())


def jobs_of(word: str, options: Mapping[str, Any], columns: Sequence[str]) -> list[VideoJob]:
    """Return the videos that one word names."""
    if Path(word).suffix.lower() in LISTS:
        return jobs_of_table(Path(word), options, columns)
    root = Path(word) if Path(word).is_dir() else None
    found = videos_of(word)
    if not found:
        raise InputError(f"{word} holds no video: give video files, folders, patterns, or a table of videos.")
    return [VideoJob(name_of(video, root), video, options) for video in found]


def videos_of(word: str) -> list[str]:
    """Return the videos that a word names: a folder of images, or a pattern that matches only images, is one video."""
    path = Path(word)
    if path.is_dir():
        return [str(video) for video in videos_below(path)]
    if path.exists() or not set("*?[") & set(word):
        return [word]
    matched = sorted(file for file in glob(word, recursive=True) if Path(file).is_file())
    return [word] if are_frames([Path(file) for file in matched]) else matched


def videos_below(folder: Path) -> list[Path]:
    """Return the videos of a folder and of its subfolders, but not those in results of earlier runs.

    They are video files and TIFF stacks, or if there are none, the folders of images: this folder, or those below it.
    """
    files: list[Path] = []
    images: list[Path] = []
    for where, below, names in os.walk(folder):
        if MANIFEST in names or FOOTAGE_FILE in names:  # results of `track` or of `fit`
            below.clear()
            continue
        below[:] = sorted(name for name in below if not name.startswith(".") and name != "report_viewer")
        here = [Path(where) / name for name in sorted(names) if not name.startswith(".")]
        files += [file for file in here if file.suffix.lower() in VIDEO_FILES and file.is_file()]
        pictures = [file for file in here if file.suffix.lower() in IMAGES]
        stacks = [file for file in pictures if file.suffix.lower() in TIFF]
        if stacks and not are_frames(stacks):
            files += stacks
        elif len(pictures) > 1 or (pictures and Path(where) == folder):
            images.append(Path(where))
    return sorted(files) or ([folder] if folder in images else images)


def are_frames(files: Sequence[Path]) -> bool:
    """Return whether files are images that are the frames of one video, and not TIFF stacks. The first one decides."""
    if not all(file.suffix.lower() in IMAGES for file in files):
        return False
    if not files or files[0].suffix.lower() not in TIFF:
        return True
    try:
        from scalor.video.images import is_stack
    except ImportError:  # without pillow or tifffile, which a later sentence names
        return True
    return not is_stack(files[0])


def name_of(video: str, root: Path | None) -> str:
    """Return the name of a video in the results: its path below the folder that was given, without its ending."""
    path = Path(video)
    whole = path.relative_to(root) if root is not None and path != root else Path(path.name)
    return SAFE.sub("_", "_".join(whole.with_suffix("").parts)).strip("._") or "video"


def jobs_of_table(path: Path, options: Mapping[str, Any], columns: Sequence[str]) -> list[VideoJob]:
    """Return the videos of a table."""
    jobs = []
    for number, row in enumerate(read_table(path), start=1):
        given = {name: value for name, value in row.items() if value not in (None, "")}
        video = given.pop("video", None)
        if video is None:
            raise InputError(f"row {number} of {path} names no video: give its path in the column video.")
        where = str(path.parent / str(video))
        name = SAFE.sub("_", str(given.pop("name", ""))).strip("._") or name_of(where, None)
        own = {key: option(path, number, key, value, columns) for key, value in given.items()}
        jobs.append(VideoJob(name, where, {**options, **own}))
    return jobs


def read_table(path: Path) -> Iterable[dict[str, Any]]:
    """Return the rows of a CSV or Parquet table."""
    try:
        if path.suffix.lower() == ".parquet":
            rows: list[dict[str, Any]] = import_module("pyarrow.parquet").read_table(path).to_pylist()
        else:
            with open(path, newline="", encoding="utf-8-sig") as file:
                rows = list(csv.DictReader(file))
    except ImportError as error:
        raise InputError(f"{path} needs the package pyarrow: run pip install pyarrow, or give a CSV table.") from error
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path} cannot be read ({error}): give a CSV or Parquet table of videos.") from error
    if not rows:
        raise InputError(f"{path} has no rows: give one for each video.")
    return rows


def yes(value: object) -> bool:
    """Return a truth value from a cell."""
    if str(value).lower() not in ("1", "true", "yes", "0", "false", "no"):
        raise ValueError(value)
    return str(value).lower() in ("1", "true", "yes")


def numbers(value: object, kind: type, count: int) -> tuple[Any, ...]:
    """Return numbers that a cell holds, separated by anything."""
    found = tuple(kind(one) for one in re.findall(r"[0-9.]+", str(value)))
    if len(found) != count:
        raise ValueError(value)
    return found


CELLS: dict[str, Callable[[Any], Any]] = {
    "weights": str,
    "region": lambda value: numbers(value, int, 4),
    "start": float,
    "end": float,
    "stride": int,
    "fps": float,
    "masks": yes,
    "raw": yes,
    "slots": int,
    "object_size": lambda value: numbers(value, float, 2),
    "minutes": float,
    "steps": int,
    "scale": float,
}
"""How the cells of a column are read."""


def option(path: Path, number: int, name: str, value: object, columns: Sequence[str]) -> Any:
    """Return the value of an option in a row of a table."""
    if name not in columns:
        raise InputError(f"{path} has the column {name}: choose from video, name, {', '.join(columns)}.")
    try:
        return CELLS[name](value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is {value!r} in row {number} of {path}: see `scalor track --help`.") from error


def shard_of(jobs: Sequence[VideoJob], shard: tuple[int, int] | None) -> list[VideoJob]:
    """Return part i of n of the jobs, counted from 0, which is the same for every run with the same list."""
    return list(jobs) if shard is None else list(jobs[shard[0] :: shard[1]])


def on_device(job: VideoJob, device: str) -> VideoJob:
    """Return a job on another device."""
    return replace(job, options={**job.options, "device": device})
