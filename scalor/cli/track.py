"""`scalor track`: track every object of a video; write tables, videos and a report."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from scalor.cli.text import print_result, region_of, survey_text, workers_of
from scalor.cli.track_many import OPTIONS, run_many
from scalor.files import Stopped, stop_signals_raised
from scalor.many.stretches import FOLDER, track_in_stretches
from scalor.many.videos import is_list_of_videos
from scalor.pipeline import track_to_folder
from scalor.replacement import PARTIAL
from scalor.video import Selection


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Track the video, or many; a stop signal leaves the results in the folder as they were."""
    if is_list_of_videos(arguments.video):
        return run_many(arguments)
    (arguments.video,) = arguments.video
    try:
        with stop_signals_raised():
            return track(arguments)
    except Stopped as stop:
        resumable = any((Path(arguments.out) / name).exists() for name in (PARTIAL, FOLDER))
        kept = " Repeat the command to resume." if resumable else ""
        print(f"scalor: stopped; {arguments.out} holds no half-written file.{kept}", file=sys.stderr)
        return 128 + stop.number


def track(arguments: argparse.Namespace) -> int:
    """Track the video and print what was found."""
    options = {**{name: getattr(arguments, name) for name in OPTIONS}, "region": region_of(arguments)}
    if arguments.stretches is None:
        found = track_to_folder(arguments.video, arguments.out, restart=arguments.restart, **options)
    else:
        parts, restart = arguments.stretches, arguments.restart
        found = track_in_stretches(
            arguments.video, arguments.out, parts, workers_of(arguments), restart=restart, **options
        )
    summary, view, health = found.summary, found.view, found.health
    document = {
        "frames": summary.frames,
        "stride": view.video.selection.stride,
        "objects": summary.objects,
        "rows": summary.rows,
        "frames_per_second": (summary.frames - found.frames_before) / found.seconds,
        "files": [str(path) for path in summary.files],
        "survey": None if view.found is None else asdict(view.found),
        "camera": None if view.camera is None else view.camera.describe(),
        "camera_motion": None if view.motion is None else view.motion.describe(),
        "health": None if health is None else health.to_dict(),
    }
    lines = [
        survey_text(view),
        f"{summary.objects} ids in {summary.frames} frames{left_out(view.video.selection, arguments.stride)}; "
        f"see {summary.folder}/report.html",
    ]
    return print_result(document, arguments.json, "\n".join([*lines, *(health.lines() if health else [])]))


def left_out(selection: Selection, asked: int | None) -> str:
    """Return which frames were tracked if not all were, and how to track all if the user did not ask for this."""
    if selection.stride == 1:
        return ""
    why = ", as the weights were fitted; --stride 1 tracks all" if asked is None else ""
    return f" ({selection.which_frames} of the video{why})"
