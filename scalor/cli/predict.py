"""`scalor predict`: generate the continuation of your own video."""

import argparse
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from scalor import checkpoint
from scalor.cli.text import print_result, provenance_of, selection_from
from scalor.data.observation import Observation
from scalor.errors import InputError
from scalor.model.scalor import SCALOR, Rollout
from scalor.nn.distributions import Mode
from scalor.outputs import ResultFolder
from scalor.tracking.view import Lens, lens_for, look_at, slots_for
from scalor.video import Video, open_video
from scalor.video.sources import Frame
from scalor.visual.colors import label_picture
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, strip, to_bytes

SHOWN = 5
"""Largest number of observed frames in the strip, and of generated frames."""
ENLARGED = 200
"""Approximate longer side of a frame in the strip, pixels."""


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    config = checkpoint.read(checkpoint.find(arguments.weights)).config
    stride = arguments.stride or config.scene.stride
    video = open_video(arguments.video, selection_from(arguments, stride), arguments.fps)
    horizon = max(1, round(arguments.seconds * video.fps / stride))
    seen, truth = around(video, arguments.at, arguments.observe, horizon)
    facts = provenance_of(arguments) | {"frames": f"{len(seen)} observed, then {horizon} predicted"}
    if truth:
        facts["background"] = "estimated from the whole video, frames after the observed ones included"
    with ResultFolder(
        arguments.out, video.full_size, video.fps, stride=stride, facts=facts, scene=seen[-1].picture
    ) as results:
        view = look_at(video)
        if view.camera is not None and view.camera.moves:
            raise InputError(
                f"the camera of {video.name} moves, and predictions need a camera that stands still: choose a part in "
                "which it does, with --start and --end."
            )
        slots = arguments.slots or slots_for(view, config.model, config.scene)
        model = checkpoint.load(arguments.weights, arguments.device, slots)
        if not isinstance(model, SCALOR):
            raise InputError(f"weights {arguments.weights} are of a {model.config.system}: give weights of a SCALOR.")
        lens = lens_for(view, model.config, config.scene)
        torch.manual_seed(arguments.seed)
        frames = Observation.stack([lens.to_frame(frame.picture) for frame in seen])
        estimator = None if arguments.sample else Mode()
        rollout = model.generate(frames, len(seen), horizon, estimator=estimator, masks=True)
        for t, frame in enumerate(go_on(seen, rollout, lens, video)):
            tracks = rollout.tracks.select(rollout.tracks.frame == t)
            tracks = lens.to_original(replace(tracks, masks=None))
            results.add(frame.picture, frame.seconds, frame.index, tracks, predicted=t >= len(seen))
    save_png(Path(arguments.out) / "strip.png", picture(lens, seen, truth, rollout))
    document = {"seen": len(seen), "imagined": horizon, "files": [str(file) for file in results.summary.files]}
    return print_result(
        document, arguments.json, f"{len(seen)} frames seen, {horizon} imagined; see {arguments.out}/report.html"
    )


def around(video: Video, at: float | None, observe: int, horizon: int) -> tuple[list[Frame], list[Frame]]:
    """Return the last `observe` frames before the second `at`, and at most `horizon` true frames after it.

    `at` None means the end of the video.
    """
    seen: deque[Frame] = deque(maxlen=observe)
    frames = video.whole_frames()
    truth: list[Frame] = []
    for frame in frames:
        if at is not None and frame.seconds >= at:
            truth = [frame, *islice(frames, horizon - 1)]
            break
        seen.append(frame)
    if len(seen) < observe:
        raise InputError(
            f"--observe is {observe}: {video.name} has {len(seen)} frames before {'its end' if at is None else at}; "
            "choose fewer, or a later --at."
        )
    return list(seen), truth


def go_on(seen: list[Frame], rollout: Rollout, lens: Lens, video: Video) -> Iterator[Frame]:
    """Yield the observed frames, then the generated ones in pixels of the video."""
    yield from seen
    last, step = seen[-1], video.selection.stride
    for ahead, drawn in enumerate(rollout.frames[0, len(seen) :], 1):
        picture = lens.to_picture(drawn, last.picture)
        yield Frame(picture, last.index + ahead * step, last.seconds + ahead * step / video.fps)


def picture(lens: Lens, seen: list[Frame], truth: list[Frame], rollout: Rollout) -> UInt8[np.ndarray, "h w 3"]:
    """Draw the last observed and first generated frames: ground truth, rendering, background and masks."""
    observed, horizon = min(SHOWN, len(seen)), min(SHOWN, rollout.frames.shape[1] - len(seen))
    shown = slice(len(seen) - observed, len(seen) + horizon)
    frames = rollout.frames[0, shown]
    tracks = rollout.tracks
    tracks = tracks.select((tracks.frame >= shown.start) & (tracks.frame < shown.stop))
    labels = np.full((len(frames), *tracks.size), -1)
    assert tracks.masks is not None
    for row in range(len(tracks)):
        labels[tracks.frame[row] - shown.start][tracks.masks[row]] = tracks.id[row]
    scale = max(1, ENLARGED // max(tracks.size))
    real = [lens.to_frame(frame.picture).image for frame in [*seen[-observed:], *truth[:horizon]]]
    rows = {
        "imagined": overlay(frames.cpu().numpy(), tracks, scale=scale, labels=False, first=shown.start),
        "picture": to_bytes(frames),
        "background": to_bytes(rollout.background[0, shown]),
        "masks": label_picture(labels),
    }
    if len(real) == len(frames):
        rows = {"truth": to_bytes(torch.stack(real)), **rows}
    return strip(rows, separator_after=observed)
