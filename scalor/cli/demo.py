"""`scalor demo`: track an unseen scene with shipped weights, measure the tracks, and generate its future."""

import argparse
import sys
import time
from pathlib import Path

import torch

from scalor import checkpoint
from scalor.cli.generate import SCENE_FPS, show_rollout
from scalor.cli.text import print_result, table
from scalor.data.scenes import Scenes
from scalor.evaluation import report
from scalor.files import open_folder
from scalor.loaded import load
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import Mode
from scalor.video import write_video
from scalor.visual.overlay import overlay


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Track unseen clips with shipped weights, and write the tracks, a video and a generated future."""
    start = time.monotonic()
    folder = open_folder(arguments.out)
    path = checkpoint.find("shapes-md")
    found, model = checkpoint.read(path), load(path)
    config = found.config
    print(
        f"tracking {arguments.clips} unseen clips with weights trained {found.provenance['date']}",
        file=sys.stderr,
    )
    measured = report.evaluate(model, config, arguments.clips)
    frames = Scenes(config.test, report.TEST_SEED, "test").clips(arguments.clips, 1, 20).frames[0]
    tracks = model.track(frames)
    tracks.to_csv(folder / "tracks.csv")
    tracks.to_mot(folder / "tracks_mot.txt")
    film = overlay(frames.numpy(), tracks)
    write_video(folder / "overlay.mp4", film, SCENE_FPS)
    write_video(folder / "overlay.gif", film, SCENE_FPS)
    generate_future(model, frames, folder)
    document = {
        "provenance": found.provenance,
        "clips": arguments.clips,
        "metrics": measured.to_dict(),
        "seconds": time.monotonic() - start,
        "files": sorted(str(file) for file in folder.iterdir()),
    }
    files = "\n".join(f"  {file}" for file in document["files"])
    return print_result(
        document, arguments.json, f"{table(measured)}\nwritten in {document['seconds']:.0f} s:\n{files}"
    )


def generate_future(model: SCALOR, frames: torch.Tensor, folder: Path) -> None:
    """Write the most likely future, which does not depend on a random seed."""
    observe, horizon = 5, 10
    rollout = model.generate(frames, observe, horizon, estimator=Mode())
    show_rollout(folder, rollout, frames[: observe + horizon], observe)
