"""Draw the pictures of the documentation: `python docs/pictures.py [vtest.avi]` (needs the extra `video`).

`vtest.avi` is a sample video of OpenCV (samples/data). Without it, all pictures but walkers.gif are drawn.
"""

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image

import scalor
from scalor.cli.generate import SCENE_FPS
from scalor.cli.main import main
from scalor.data.scenes import Scenes
from scalor.nn.distributions import Mode
from scalor.presets import get_preset
from scalor.reproduce.rows import enlarged, truth_tracks
from scalor.video import open_video, write_video
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, strip, to_bytes

FOLDER = Path(__file__).parent / "pictures"
CLIP = 16  # the test clip that `scalor demo` shows: the first one its metrics do not use
WALKERS = slice(520, 580)
"""Frames of vtest.avi in walkers.gif."""
COLOURS = 128
"""Colours of walkers.gif."""


def walkers(video: str) -> None:
    """Six seconds of vtest.avi at half its size, tracked by `scalor track` without options."""
    with TemporaryDirectory() as folder:
        main(["track", video, "--out", folder])
        film = open_video(Path(folder) / "overlay.mp4")
        frames = np.stack([frame.picture for frame in film.whole_frames()][WALKERS]).astype(np.float32)
    count, height, width, _ = frames.shape
    half = frames.reshape(count, height // 2, 2, width // 2, 2, 3).mean((2, 4)).round().astype(np.uint8)
    # One palette and no dithering: a third of the size that `write_video` gives.
    palette = Image.fromarray(np.concatenate(half[::20])).quantize(COLOURS, Image.Quantize.FASTOCTREE)
    first, *others = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in half]
    milliseconds = round(1000 / film.fps)
    first.save(
        FOLDER / "walkers.gif", save_all=True, append_images=others, duration=milliseconds, loop=0, optimize=True
    )


def densities() -> None:
    """Three frames of a scene of each density, with the true boxes."""
    rows = {}
    for name in ("vld", "ld", "md", "hd", "vhd"):
        clip = Scenes(get_preset(f"shapes-{name}").test, 0, "test").clips(2, 1, 10)
        drawn = overlay(clip.frames[0].numpy(), truth_tracks(clip), scale=5, trails=0, labels=name != "vhd")
        rows[name.upper()] = np.concatenate([drawn[::4], drawn[::4]])[:3]
    save_png(FOLDER / "densities.png", strip(rows))


def tracked(model: scalor.SCALOR) -> None:
    """Four seconds of a scene of medium density, tracked."""
    scene = get_preset("shapes-md").test
    frames = Scenes(scene, 0, "test").clips(CLIP, 1, 40).frames[0]
    write_video(FOLDER / "tracked.gif", overlay(frames.numpy(), model.track(frames), scale=6), SCENE_FPS)


def imagined(model: scalor.SCALOR) -> None:
    """Five observed frames, and seven generated ones."""
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
    for video in sys.argv[1:]:
        walkers(video)
