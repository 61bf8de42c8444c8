"""Draws every picture of the documentation: `python docs/pictures.py` (needs the extra `video`)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import scalor
from scalor.cli.generate import SCENE_FPS
from scalor.data.scenes import Scenes
from scalor.nn.distributions import Mode
from scalor.presets import get_preset
from scalor.reproduce.figures import enlarged, truth_tracks
from scalor.video import write_video
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, strip, to_bytes

FOLDER = Path(__file__).parent / "pictures"
CLIP = 16  # the test clip that `scalor demo` shows: the first one its metrics do not use


def densities() -> None:
    """Three frames of a scene of each density, with the truth's boxes."""
    rows = {}
    for name in ("vld", "ld", "md", "hd", "vhd"):
        clip = Scenes(get_preset(f"shapes-{name}").test, 0, "test").clips(2, 1, 10)
        drawn = overlay(clip.frames[0].numpy(), truth_tracks(clip), scale=5, trails=0, labels=name != "vhd")
        rows[name.upper()] = np.concatenate([drawn[::4], drawn[::4]])[:3]
    save_png(FOLDER / "densities.png", strip(rows))


def tracked(model: scalor.SCALOR) -> None:
    scene = get_preset("shapes-md").test
    frames = Scenes(scene, 0, "test").clips(CLIP, 1, 40).frames[0]
    write_video(FOLDER / "tracked.gif", overlay(frames.numpy(), model.track(frames), scale=6), SCENE_FPS)


def imagined(model: scalor.SCALOR) -> None:
    """Five frames seen, seven imagined."""
    scene = replace(get_preset("shapes-md").test, objects=(8, 10))
    frames = Scenes(scene, 0, "test").clips(3, 1, 12).frames[0]
    torch.manual_seed(0)
    rows = {"truth": to_bytes(frames)}
    for name, estimator in {"most likely": Mode(), "a sample": None}.items():
        rows[name] = to_bytes(model.generate(frames, 5, 7, estimator=estimator).frames[0])
    save_png(FOLDER / "imagined.png", strip({name: enlarged(row, 2) for name, row in rows.items()}, separator_after=5))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    shipped = scalor.load("shapes-md")
    densities()
    tracked(shipped)
    imagined(shipped)
