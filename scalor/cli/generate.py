"""`scalor generate`: generate the continuation of a scene, or a whole scene, with a model."""

import argparse
from pathlib import Path
from typing import Any

import torch

from scalor import checkpoint
from scalor.cli.text import print_result
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation import report
from scalor.files import open_folder
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Rollout
from scalor.video import read_video, write_video
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, side_by_side, strip, to_bytes

SCENE_FPS = 6
"""Frames per second of the output videos of ten-frame scenes: slow enough to follow by eye."""


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Generate a continuation or a whole scene and write it."""
    path = checkpoint.find(arguments.weights)
    model = checkpoint.load(path, arguments.device)
    if not isinstance(model, SCALOR):
        raise InputError(
            f"weights {arguments.weights} are of a {model.config.system}, and `scalor generate` needs a SCALOR: give "
            "its weights, such as shapes-md."
        )
    if arguments.video and model.config.still:
        raise InputError(
            f"weights {arguments.weights} are for a camera that stands still: give them to "
            f"`scalor predict {arguments.video} --weights {arguments.weights}`."
        )
    folder = open_folder(arguments.out)
    torch.manual_seed(arguments.seed)
    observe, horizon = arguments.observe, arguments.horizon
    if arguments.scratch:
        rollout = model.imagine(observe + horizon, discovery_rate=arguments.rate)
        show_rollout(folder, rollout, None, None)
        document: dict[str, Any] = {"frames": observe + horizon, "folder": str(folder)}
        return print_result(document, arguments.json, f"{observe + horizon} frames generated; see {folder}")
    if arguments.video:
        frames = Observation(torch.from_numpy(read_video(arguments.video)))
        if len(frames) < observe:
            raise InputError(
                f"video {arguments.video} has {len(frames)} frames: --observe {observe} needs at least as many."
            )
    else:
        config = checkpoint.read(path).config
        scenes = Scenes(config.test, report.TEST_SEED, "test", next(model.parameters()).device)
        frames = scenes.clips(arguments.clip, 1, observe + horizon).observation[0]
    rollout = model.generate(frames, observe, horizon, discovery_rate=arguments.rate or 0.0)
    truth = frames.image[: observe + horizon]
    show_rollout(folder, rollout, truth if len(truth) == observe + horizon else None, observe)
    document = {"observed": observe, "imagined": horizon, "folder": str(folder)}
    return print_result(document, arguments.json, f"{observe} frames observed, {horizon} generated; see {folder}")


def show_rollout(folder: Path, rollout: Rollout, truth: torch.Tensor | None, observe: int | None) -> None:
    """Write a strip, videos and tracks of a rollout, with the ground truth if it is known.

    `observe` is the number of observed frames; None if all frames were generated.
    """
    frames = rollout.frames[0]
    tracks = rollout.tracks.of_clip(0)
    rows = {
        "imagined": overlay(frames.cpu().numpy(), tracks, scale=3, labels=False, trails=0),
        "without boxes": to_bytes(frames),
    }
    if float(rollout.background.max()) > 0:
        rows["background"] = to_bytes(rollout.background[0])
    if truth is not None:
        rows = {"truth": to_bytes(truth), **rows}
    save_png(folder / "strip.png", strip(rows, separator_after=observe))
    # The video is larger than the strip: both halves have the size that `overlay` chooses.
    videos = {"imagined": overlay(frames.cpu().numpy(), tracks, labels=False, trails=0)}
    if truth is not None:
        videos = {
            "truth": overlay(truth.cpu().numpy(), tracks.select(tracks.frame < 0)),
            **videos,
        }
    film = side_by_side(videos, generated_from={"imagined": observe} if observe else None)
    write_video(folder / "generated.mp4", film, SCENE_FPS)
    write_video(folder / "generated.gif", film, SCENE_FPS)
    tracks.to_csv(folder / "generated_tracks.csv")
