"""A model that learned a video's background (preset `video-background`), tracked on the whole video and scored.

    scalor train video-background --scene.footage vtest.avi --test.footage vtest.avi --out runs/pets-background
    python -m benchmarks.learned_background runs/pets-background vtest.avi gt.txt --frames 478 795 --out pets.json

Frames are shrunk to the model's size, and its boxes are enlarged again. Nothing is filtered afterwards.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import scalor
from benchmarks.report import hardware
from scalor.evaluation.score import score
from scalor.model.scalor import SCALOR
from scalor.provenance import command_line, commit, today
from scalor.tracks import Tracks, join_tracks
from scalor.video import open_video
from scalor.video.resize import resize
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, strip, to_bytes

SHOWN = 4
"""Number of frames in the picture."""


def track(model: SCALOR, frames: np.ndarray, size: tuple[int, int]) -> Tracks:
    """Return the tracks in pixels of the video, whose height and width are `size`."""
    pictures = (torch.from_numpy(frame).float() / 255 for frame in frames)
    found = join_tracks(list(model.stream(pictures)))
    factor = np.array([size[1] / frames.shape[3], size[0] / frames.shape[2]] * 2, np.float32)
    return replace(found, box=found.box * factor, size=size)


def draw(model: SCALOR, frames: np.ndarray, path: Path) -> None:
    """Draw some frames with their boxes, the reconstruction and the background."""
    chosen = frames[:: max(1, len(frames) // SHOWN)][:SHOWN]
    video = torch.from_numpy(np.stack([chosen, chosen], 1)).float() / 255  # each frame twice: a clip has two
    rows: dict[str, list[np.ndarray]] = {"tracks": [], "reconstruction": [], "background": []}
    for clip in video:
        seen = model.reconstruct(clip)
        last = seen.tracks.select(seen.tracks.frame == 1)
        first = replace(last, frame=np.zeros_like(last.frame))
        rows["tracks"].append(overlay(clip[1:], first, scale=3, labels=False, trails=0)[0])
        for name, part in (("reconstruction", seen.frames), ("background", seen.background)):
            rows[name].append(to_bytes(part[0, 1:])[0].repeat(3, 0).repeat(3, 1))
    save_png(path, strip({name: np.stack(row) for name, row in rows.items()}))


def main(arguments: Sequence[str] | None = None) -> None:
    """Track, score, print, and draw a picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", help="run folder")
    parser.add_argument("video")
    parser.add_argument("truth", help="MOTChallenge text")
    parser.add_argument("--frames", type=int, nargs=2, help="first and last frame to score, from 1 on")
    parser.add_argument("--out", type=Path, help="also write the scores to this JSON file, and a picture beside it")
    options = parser.parse_args(arguments)
    model = scalor.load(options.weights)
    assert isinstance(model, SCALOR)
    pictures = [frame.picture for frame in open_video(options.video)]
    frames = np.stack([resize(picture, model.config.frame).transpose(2, 0, 1) for picture in pictures])
    tracks = track(model, frames, pictures[0].shape[:2])
    scores = score(tracks, options.truth, tuple(options.frames) if options.frames else None)
    print(scores.table())
    if options.out:
        device = next(model.parameters()).device
        origin = {"command": command_line(), "commit": commit(), "date": today(), "hardware": hardware(device)}
        options.out.write_text(json.dumps({"scores": scores.to_dict(), **origin}, indent=2) + "\n")
        draw(model, frames, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main(sys.argv[1:])
