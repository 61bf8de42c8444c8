"""`scalor fit`: refine universal weights on your own videos, or train a model from random weights."""

import argparse
import sys
from functools import partial
from typing import Any

import numpy as np

from scalor import checkpoint
from scalor.boxes import FLAT, Perspective, sizes_at
from scalor.cli import overrides
from scalor.cli.text import print_result, region_of, survey_text, workers_of
from scalor.config import FPS
from scalor.errors import InputError
from scalor.files import Stopped, print_json, stop_signals_raised
from scalor.fitting.fit import (
    Comparison,
    Fitted,
    Preparation,
    check_resumed,
    folder_for,
    is_given,
    prepare,
    resumed,
)
from scalor.fitting.options import FitOptions, PreparedTraining
from scalor.many.fitting_task import COLUMNS, fit_each
from scalor.many.run import ManySummary
from scalor.many.videos import find_jobs, is_list_of_videos, shard_of
from scalor.nn import ranks
from scalor.video import Selection

OPTIONS = ("steps", "minutes", "weights", "scratch", "object_size", "scale", "stride")
PART = ("region", "start", "end", "fps")


def run(arguments: argparse.Namespace, words: list[str]) -> int:
    """Fit. Of several processes that torchrun started, the first one reads the videos for all, and prints."""
    if arguments.each:
        return run_each(arguments, words)
    if is_list_of_videos(arguments.video):
        jobs = find_jobs(arguments.video, {}, COLUMNS)
        if any(job.options for job in jobs):
            raise InputError("the table gives options per video, and one model learns from all: give --each.")
        arguments.video = [job.video for job in jobs]
    with ranks.joined(checkpoint.pick_device(arguments.device)) as device:
        arguments.device = device
        return fit(arguments, words)


def fit(arguments: argparse.Namespace, words: list[str]) -> int:
    """Prepare the fit, say what it will do, train, and say what came of it. Of several ranks the first one speaks."""
    ready = continued(arguments, words) if arguments.resume else prepared(arguments, words)
    if not ranks.is_first():
        return exit_code(ready.train(quiet=True))
    if ready.prepared is not None and not arguments.json:
        print(scratch_text(ready.prepared) if arguments.scratch else refinement_text(ready.prepared))
    fitted = ready.train()
    if arguments.json:
        print_json(to_dict(fitted))
        return exit_code(fitted)
    if fitted.compared is not None:
        print(comparison_text(fitted.compared))
    state = f"stopped at step {fitted.step}; continue it with --resume" if fitted.stopped else "fitted"
    print(f"{state}: {fitted.folder}; next: scalor track {ready.videos[0]} --weights {fitted.folder}")
    return exit_code(fitted)


def run_each(arguments: argparse.Namespace, words: list[str]) -> int:
    """Fit each video on its own; return 1 if one of them failed."""
    if arguments.resume:
        raise InputError("--resume is given with --each: leave it out; stopped fits are resumed without it.")
    if ranks.are_started():
        raise InputError("--each is given under torchrun: leave torchrun out; --jobs says how many fits run at a time.")
    options = {name: getattr(arguments, name) for name in (*OPTIONS, *PART, "device")}
    checkpoint.pick_device(arguments.device)  # raise InputError before any work is done
    options |= {"region": region_of(arguments), "settings": overrides.settings(words)}
    jobs = find_jobs(arguments.video, {name: value for name, value in options.items() if is_given(value)}, COLUMNS)
    part = shard_of(jobs, arguments.shard)
    whole = arguments.shard is None
    try:
        with stop_signals_raised():
            summary = fit_each(part, arguments.out or "runs", workers_of(arguments), whole=whole)
    except Stopped as stop:
        print("scalor: stopped; repeat the command to resume.", file=sys.stderr)
        return 128 + stop.number
    print_result(summary.to_dict(), arguments.json, each_text(summary))
    return 1 if summary.failed else 0


def each_text(summary: ManySummary) -> str:
    """Return what came of each fit as text."""
    lines = [f"failed: {one.video}: {one.reason}" for one in summary.failed]
    kept = {one.name: one.verdict for one in summary.outcomes if one.state != "failed"}
    lines += [f"{summary.folder / name}: {verdict} weights" for name, verdict in kept.items()]
    done, before = summary.count("done"), summary.count("kept")
    return "\n".join([*lines, f"{done} fitted, {before} kept from before, {len(summary.failed)} failed"])


def prepared(arguments: argparse.Namespace, words: list[str]) -> Preparation:
    """Return a new fit, ready to train."""
    return prepare(
        arguments.video,
        arguments.out,
        FitOptions(**{name: getattr(arguments, name) for name in OPTIONS}),
        Selection(region_of(arguments), arguments.start, arguments.end),
        FPS if arguments.fps is None else arguments.fps,
        partial(overrides.apply, words=words),
        arguments.device,
    )


def continued(arguments: argparse.Namespace, words: list[str]) -> Preparation:
    """Return a fit that was stopped, ready to train on."""
    folder = folder_for(arguments.video, arguments.out)
    ready = resumed(folder, arguments.device)
    given = [name for name in (*OPTIONS, *PART) if is_given(getattr(arguments, name))]
    check_resumed([*words, *(f"--{name.replace('_', '-')}" for name in given)])
    return ready


def exit_code(fitted: Fitted) -> int:
    """Return the exit code of the command."""
    return 128 + fitted.stopped if fitted.stopped else 0


def to_dict(fitted: Fitted) -> dict[str, Any]:
    """Return what came of a fit, for JSON."""
    document: dict[str, Any] = {
        "folder": str(fitted.folder),
        "step": fitted.step,
        "seconds": fitted.seconds,
        "config": fitted.config.to_dict(),
    }
    return document if fitted.compared is None else {**document, "compared": fitted.compared.to_dict()}


def refinement_text(prepared: PreparedTraining) -> str:
    """Return the measurements of the video and the plan of a refinement as text."""
    train = prepared.config.train
    refines = f"refines  {train.start} in {train.steps} steps, on {prepared.frames} frames"
    return f"{survey_text(prepared.views[0])}\n{refines}"


def comparison_text(compared: Comparison) -> str:
    """Return the comparison as text."""
    lines = [
        f"{name:<8} explains {score.explained:.0%} of what moves, {score.on_something:.0%} of its boxes show something "
        f"that moves, {score.usual:.0%} have the usual shape, {score.lasting:.0%} of its ids last"
        for name, score in ((compared.start, compared.before), ("refined", compared.after))
    ]
    verdict = (
        "the refined weights are kept"
        if compared.better
        else f"refining did not help: the folder holds {compared.start}'s weights"
    )
    return "\n".join([*lines, verdict])


def scratch_text(prepared: PreparedTraining) -> str:
    """Return the measurements of the video and the settings chosen for a training from scratch, as text."""
    found, scene, model = prepared.views[0].found, prepared.config.scene, prepared.config.model
    assert found is not None
    speed = f"{found.speed:.1f} px a frame" if found.speed else "not measured"
    return "\n".join(
        [
            f"objects      about {found.object_size[0]:.0f}x{found.object_size[1]:.0f} px (height x width), "
            f"{found.objects:.1f} in a frame, speed {speed}",
            f"the model    sees them at {model.object_size[0]:g}x{model.object_size[1]:g} px "
            f"(--scale {scene.scale:g}), {Selection(stride=scene.stride).which_frames} (--stride {scene.stride})",
            *([f"perspective  {near_and_far(scene.perspective)}"] if scene.perspective != FLAT else []),
            f"learns from  {prepared.frames} frames, in clips of {scene.frame[0]}x{scene.frame[1]} px",
        ]
    )


def near_and_far(perspective: Perspective) -> str:
    """Return the sizes of objects at the upper and lower edge as text."""
    top, bottom = sizes_at(np.array([0.0, 1.0]), 1, perspective)
    return f"objects are {top:.1f} times as large at the upper edge, {bottom:.1f} times at the lower one"
