"""`scalor track` with many videos: worker processes, or a Ray cluster."""

import argparse
import sys

from scalor.cli.text import print_result, region_of, workers_of
from scalor.errors import InputError
from scalor.files import Stopped, stop_signals_raised
from scalor.many.run import ManySummary, track_many
from scalor.many.video_records import RECORDS
from scalor.many.videos import find_jobs, shard_of
from scalor.tracker_choice import TrackerChoice

OPTIONS = ("weights", "start", "end", "stride", "device", "fps", "masks", "raw", "slots", "object_size")
MOST_REASONS = 20
"""Failed videos whose reasons are printed; the summary has all."""


def run_many(arguments: argparse.Namespace) -> int:
    """Track the videos; return 1 if one of them failed."""
    if arguments.stretches is not None:
        raise InputError(f"--stretches is {arguments.stretches}: it is for one video; give one, or leave it out.")
    options = {name: getattr(arguments, name) for name in OPTIONS}
    options["region"] = region_of(arguments)
    jobs = find_jobs(arguments.video, options)
    chosen = {str(sorted(job.options.items(), key=str)): job.options for job in jobs}
    for one in chosen.values():  # raise InputError for wrong options before any work is done
        names = ("weights", "object_size", "slots", "masks", "raw", "device")
        TrackerChoice(**{name: one[name] for name in names if name in one})
    part = shard_of(jobs, arguments.shard)
    try:
        with stop_signals_raised():
            summary = track_many(
                part,
                arguments.out,
                workers_of(arguments),
                again=arguments.restart,
                whole=arguments.shard is None,
            )
    except Stopped as stop:
        print(f"scalor: stopped; repeat the command to resume, in {arguments.out}.", file=sys.stderr)
        return 128 + stop.number
    print_result(summary.to_dict(), arguments.json, text(summary, arguments.shard is not None))
    return 1 if summary.failed else 0


def text(summary: ManySummary, part: bool) -> str:
    """Return the summary as text."""
    done, kept, failed = (summary.count(state) for state in ("done", "kept", "failed"))
    frames = sum(one.frames for one in summary.outcomes if one.state == "done")
    lines = [f"failed: {one.video}: {one.reason}" for one in summary.failed[:MOST_REASONS]]
    if len(summary.failed) > MOST_REASONS:
        lines.append(f"and {len(summary.failed) - MOST_REASONS} more")
    rate = f", {frames / summary.seconds:.1f} frames a second" if done else ""
    lines.append(f"{done} tracked, {kept} kept from before, {failed} failed; {summary.seconds:.0f} s{rate}")
    where = summary.folder / (RECORDS if part else "index.html")
    return "\n".join([*lines, f"see {where}" + ("; the same command without --shard writes the index" if part else "")])
