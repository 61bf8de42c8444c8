"""`scalor track`: track every object of a video; write tables, videos and a report."""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict

from scalor import checkpoint
from scalor.cli.classical import MOTION, check_words, is_classical, tracker_for_video
from scalor.cli.text import print_result, provenance_of, selection_from, survey_text
from scalor.errors import InputError
from scalor.files import Stopped, stop_signals_raised
from scalor.outputs import ResultFolder
from scalor.pipeline import load_for, track_video
from scalor.tracking.follow import Streaming
from scalor.tracking.view import VideoView, look_at
from scalor.video import open_video


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    try:
        with stop_signals_raised():
            return track_to_folder(arguments)
    except Stopped as stop:
        print(f"scalor: stopped; {arguments.out} holds no half-written file.", file=sys.stderr)
        return 128 + stop.number


def track_to_folder(arguments: argparse.Namespace) -> int:
    load, fitted_stride, still = tracker_loader(arguments)
    stride = arguments.stride or fitted_stride
    video = open_video(arguments.video, selection_from(arguments, stride), arguments.fps)
    with ResultFolder(
        arguments.out, video.full_size, video.fps, stride=stride, masks=arguments.masks, facts=provenance_of(arguments)
    ) as results:
        view = look_at(video, arguments.object_size, camera_may_move=still)
        tracker = load(view)
        start = time.monotonic()
        health = track_video(tracker, view, results, raw=arguments.raw)
        seconds = time.monotonic() - start
        results.health = health
    summary = results.summary
    document = {
        "frames": summary.frames,
        "objects": summary.objects,
        "rows": summary.rows,
        "frames_per_second": summary.frames / seconds,
        "files": [str(path) for path in summary.files],
        "survey": None if view.found is None else asdict(view.found),
        "camera": None if view.camera is None else view.camera.describe(),
        "camera_motion": None if view.motion is None else view.motion.describe(),
        "health": None if health is None else health.to_dict(),
    }
    lines = [survey_text(view), f"{summary.objects} ids in {summary.frames} frames; see {summary.folder}/report.html"]
    return print_result(document, arguments.json, "\n".join([*lines, *(health.lines() if health else [])]))


def tracker_loader(arguments: argparse.Namespace) -> tuple[Callable[[VideoView], Streaming], int, bool]:
    """Return a loader of the requested tracker, its stride, and whether it needs a static camera.

    Options that exclude each other raise an error at once. The loader takes a view of the video, reads the weights and
    returns the model or classical tracker. The stride is the one the weights were fitted with.
    """
    if is_classical(arguments.weights):
        check_words(arguments)
        return lambda view: tracker_for_video(arguments, view), 1, arguments.weights == MOTION
    config = checkpoint.read(checkpoint.find(arguments.weights)).config
    if arguments.object_size is not None and config.scene.kind != "composed":
        raise InputError(
            f"weights is {arguments.weights!r}: a trained model knows how large objects are, so leave "
            "--object-size out, or choose --weights classical-colour or its like."
        )
    device = checkpoint.pick_device(arguments.device)

    def load(view: VideoView) -> Streaming:
        return load_for(view, arguments.weights, device, arguments.slots)

    return load, config.scene.stride, getattr(config.model, "still", False)
