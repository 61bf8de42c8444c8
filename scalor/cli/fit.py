"""`scalor fit`: refine universal weights on your own videos, or train a model from random weights."""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scalor import checkpoint
from scalor.boxes import FLAT, Perspective, sizes_at
from scalor.cli import overrides
from scalor.cli.text import selection_from, survey_text
from scalor.config import Config
from scalor.errors import InputError
from scalor.files import as_json, open_folder, print_json
from scalor.fitting import refine
from scalor.fitting import scratch as scratch
from scalor.fitting.refine import LabelFreeScore, RefineOptions, label_free_score
from scalor.fitting.scratch import STEPS, ScratchOptions
from scalor.pipeline import load_for
from scalor.systems import config_from_dict
from scalor.tracking.view import look_at
from scalor.training.folder import write_text
from scalor.training.loop import train
from scalor.video import open_video

CHOSEN_FILE = "chosen.json"
"""File in the run folder with the videos, the part of them and the settings."""
PART = ("region", "start", "end")
CHOICES = ("steps", "minutes", "weights", "scratch", "object_size", "scale", "stride", *PART)
"""Options that are fixed when a run starts and cannot be given again with --resume."""
MINUTES = 10.0
MIN_GAIN = 0.01
"""Smallest gain of the label-free score for which refined weights are kept. Smaller differences are noise."""
"""Default duration of a refinement, minutes."""


def run(arguments: argparse.Namespace, words: list[str]) -> int:
    folder = Path(arguments.out or f"runs/{name_of(arguments.video[0])}")
    device = checkpoint.pick_device(arguments.device)
    chosen = folder / CHOSEN_FILE
    if arguments.resume:
        config = resumed_config(chosen, arguments, words)
    elif chosen.exists():
        raise InputError(f"folder {folder} holds a run already: go on with --resume or choose another with --out.")
    else:
        open_folder(folder)
        start = learn_from_nothing if arguments.scratch else refine_weights
        config = start(arguments, words, folder, device)
        part = {name: getattr(arguments, name) for name in (*PART, "fps")}
        write_text(chosen, as_json({"videos": arguments.video, "part": part, "config": config.to_dict()}))
    result = train(config, folder, device, resume=(folder / checkpoint.RESUME_FILE).exists())
    document: dict[str, Any] = {
        "folder": str(folder),
        "step": result.step,
        "seconds": result.seconds,
        "config": config.to_dict(),
    }
    if config.train.start and not result.stopped:
        document["compared"] = keep_the_better(arguments, config, folder, device)
    if arguments.json:
        print_json(document)
    else:
        state = f"stopped at step {result.step}; go on with --resume" if result.stopped else "fitted"
        print(f"{state}: {folder}; next: scalor track {arguments.video[0]} --weights {folder}")
    return 128 + result.stopped if result.stopped else 0


def refine_weights(arguments: argparse.Namespace, words: list[str], folder: Path, device: torch.device) -> Config:
    """Prepare a refinement of universal weights that takes the requested minutes; return its settings."""
    if arguments.scale is not None:
        raise InputError(
            f"--scale is {arguments.scale}: universal weights see objects at their own scale; say --object-size "
            "instead, or learn from nothing with --scratch."
        )
    wish = RefineOptions(
        arguments.minutes or MINUTES,
        arguments.steps,
        arguments.object_size,
        arguments.stride,
        arguments.weights or "any",
    )
    part, change = selection_from(arguments), partial(overrides.apply, words=words)
    prepared = refine.prepare(arguments.video, folder, part, wish, arguments.fps, device, change)
    if not arguments.json:
        print(survey_text(prepared.views[0]))
        train = prepared.config.train
        print(f"refines  {wish.weights} in {train.steps} steps, on {prepared.frames} frames")
    return prepared.config


def learn_from_nothing(arguments: argparse.Namespace, words: list[str], folder: Path, device: torch.device) -> Config:
    """Prepare a training from random weights; return its settings, chosen from measurements of the video."""
    if arguments.minutes is not None:
        raise InputError(f"--minutes is {arguments.minutes:g}: with --scratch say --steps instead.")
    said = ScratchOptions(arguments.object_size, arguments.scale, arguments.stride, arguments.steps or STEPS)
    part, change = selection_from(arguments), partial(overrides.apply, words=words)
    prepared = scratch.prepare(arguments.video, folder, part, said, arguments.fps, change)
    if not arguments.json:
        print(choice(prepared))
    return prepared.config


def keep_the_better(
    arguments: argparse.Namespace, config: Config, folder: Path, device: torch.device
) -> dict[str, Any]:
    """Compare the refined weights with the initial ones, without labels, and keep the better ones.

    Return both scores, and `refined` or the name of the initial weights.
    """
    part = selection_from(arguments, config.scene.stride)
    view = look_at(open_video(arguments.video[0], part, arguments.fps), config.scene.object_size)
    before, after = (
        label_free_score(view, load_for(view, weights, device)) for weights in (config.train.start, folder)
    )
    better = after.total > before.total + MIN_GAIN
    if not better:
        checkpoint.copy_weights(config.train.start, folder / checkpoint.MODEL_FILE, config)
    if not arguments.json:
        print(comparison_text(before, after, config.train.start, better))
    return {"before": vars(before), "after": vars(after), "kept": "refined" if better else config.train.start}


def comparison_text(before: LabelFreeScore, after: LabelFreeScore, start: str, better: bool) -> str:
    """Return the comparison as text."""
    lines = [
        f"{name:<8} explains {score.explained:.0%} of what moves, {score.on_something:.0%} of its boxes show something "
        f"that moves, {score.usual:.0%} have the usual shape, {score.lasting:.0%} of its ids last"
        for name, score in ((start, before), ("refined", after))
    ]
    verdict = "the refined weights are kept" if better else f"refining did not help: the folder holds {start}'s weights"
    return "\n".join([*lines, verdict])


def name_of(video: str) -> str:
    """Return the name of the run folder: that of the video, or for a pattern that of its folder."""
    path = Path(video)
    name = path.parent.name if any(sign in path.name for sign in "*?[") else path.stem
    if not name or name == "..":
        raise InputError(f"video is {video!r}, which gives the run no name: choose its folder with --out.")
    return name


def resumed_config(chosen: Path, arguments: argparse.Namespace, words: list[str]) -> Config:
    """Return the settings of a run to resume; set its videos, and the part of them, in `arguments`."""
    if not chosen.exists():
        raise InputError(f"folder {chosen.parent} holds no run to go on with: leave --resume out, or correct --out.")
    given = [f"--{name.replace('_', '-')}" for name in CHOICES if getattr(arguments, name) not in (None, False)]
    if words or given:
        raise InputError(
            f"{[*words, *given][0]} is given with --resume: a run goes on with the settings it began with."
        )
    document = json.loads(chosen.read_text())
    arguments.video = document["videos"]
    for name, value in document.get("part", {}).items():  # older runs have none
        setattr(arguments, name, value)
    return config_from_dict(document["config"])


def choice(prepared: scratch.Prepared) -> str:
    """Return the measurements of the video and the chosen settings as text."""
    found, scene, model = prepared.found, prepared.config.scene, prepared.config.model
    speed = f"{found.speed:.1f} px a frame" if found.speed else "not measured"
    return "\n".join(
        [
            f"objects      about {found.object_size[0]:.0f}x{found.object_size[1]:.0f} px (height x width), "
            f"{found.objects:.1f} in a frame, speed {speed}",
            f"the model    sees them at {model.object_size[0]:g}x{model.object_size[1]:g} px "
            f"(--scale {scene.scale:g}), every {ordinal(scene.stride)} frame (--stride {scene.stride})",
            *([f"perspective  {near_and_far(scene.perspective)}"] if scene.perspective != FLAT else []),
            f"learns from  {prepared.frames} frames, in clips of {scene.frame[0]}x{scene.frame[1]} px",
        ]
    )


def near_and_far(perspective: Perspective) -> str:
    top, bottom = sizes_at(np.array([0.0, 1.0]), 1, perspective)
    return f"objects are {top:.1f} times as large at the upper edge, {bottom:.1f} times at the lower one"


def ordinal(number: int) -> str:
    return {1: "single", 2: "second", 3: "third"}.get(number, f"{number}th")
