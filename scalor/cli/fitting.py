"""`scalor fit`: a model of the objects in one's own videos."""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scalor.cli import overrides
from scalor.cli.seeing import part_asked_for
from scalor.config import Config
from scalor.documents import as_json, print_json
from scalor.errors import InputError
from scalor.files import open_folder
from scalor.fitting.choosing import STEPS, Choice
from scalor.fitting.fit import Prepared, prepare
from scalor.perspective import FLAT, Perspective, sizes_at
from scalor.training import checkpoint
from scalor.training.folder import write_text
from scalor.training.loop import train

CHOSEN_FILE = "chosen.json"
CHOICES = ("steps", "object_size", "scale", "stride", "region", "start", "end")
"""Options that a run keeps from its beginning on."""


def fit(arguments: argparse.Namespace, words: list[str]) -> int:
    folder = Path(arguments.out or f"runs/{name_of(arguments.video[0])}")
    device = checkpoint.pick_device(arguments.device)
    chosen = folder / CHOSEN_FILE
    if arguments.resume:
        config = begun(chosen, arguments, words)
    elif chosen.exists():
        raise InputError(f"folder {folder} holds a run already: go on with --resume or choose another with --out.")
    else:
        open_folder(folder)
        said = Choice(arguments.object_size, arguments.scale, arguments.stride, arguments.steps or STEPS)
        part, change = part_asked_for(arguments), partial(overrides.apply, words=words)
        prepared = prepare(arguments.video, folder, part, said, arguments.fps, change)
        config = prepared.config
        write_text(chosen, as_json({"videos": arguments.video, "config": config.to_dict()}))
        if not arguments.json:
            print(choice(prepared))
    result = train(config, folder, device, resume=(folder / checkpoint.RESUME_FILE).exists())
    document: dict[str, Any] = {
        "folder": str(folder),
        "step": result.step,
        "seconds": result.seconds,
        "config": config.to_dict(),
    }
    if arguments.json:
        print_json(document)
    else:
        state = f"stopped at step {result.step}; go on with --resume" if result.stopped else "fitted"
        print(f"{state}: {folder}; next: scalor track {arguments.video[0]} --weights {folder}")
    return 128 + result.stopped if result.stopped else 0


def name_of(video: str) -> str:
    """What to call the run folder: the video's own name, of a pattern that of its folder."""
    path = Path(video)
    name = path.parent.name if any(sign in path.name for sign in "*?[") else path.stem
    if not name or name == "..":
        raise InputError(f"video is {video!r}, which gives the run no name: choose its folder with --out.")
    return name


def begun(chosen: Path, arguments: argparse.Namespace, words: list[str]) -> Config:
    """The settings of the run that is to go on."""
    if not chosen.exists():
        raise InputError(f"folder {chosen.parent} holds no run to go on with: leave --resume out, or correct --out.")
    given = [f"--{name.replace('_', '-')}" for name in CHOICES if getattr(arguments, name) is not None]
    if words or given:
        raise InputError(
            f"{[*words, *given][0]} is given with --resume: a run goes on with the settings it began with."
        )
    return Config.from_dict(json.loads(chosen.read_text())["config"])


def choice(prepared: Prepared) -> str:
    """What was found and chosen, for people."""
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
