"""`scalor track`, `scalor generate` and `scalor demo`: what a model sees and imagines, as files."""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from scalor.cli.classical import MOTION, check_words, is_classical, tracker_for_video
from scalor.cli.learning import table
from scalor.data.scenes import Scenes
from scalor.distributions import Mode
from scalor.documents import print_json
from scalor.errors import InputError
from scalor.evaluation import report
from scalor.files import open_folder
from scalor.model.scalor import SCALOR, Rollout
from scalor.outputs import ResultFolder
from scalor.signals import Stopped, stop_signals_raised
from scalor.training import checkpoint
from scalor.training.pictures import to_bytes
from scalor.video import Selection, open_video, read_video, write_video
from scalor.video.tracking import Streaming, load_for, track_video
from scalor.video.viewing import VideoView, look_at
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, side_by_side, strip

FPS = 6
"""Frames per second of the videos of ten-frame scenes: slow enough to follow by eye."""


def track(arguments: argparse.Namespace) -> int:
    try:
        with stop_signals_raised():
            return track_to_folder(arguments)
    except Stopped as stop:
        print(f"scalor: stopped; {arguments.out} holds no half-written file.", file=sys.stderr)
        return 128 + stop.number


def track_to_folder(arguments: argparse.Namespace) -> int:
    load, fitted_stride, still = tracker_asked_for(arguments)
    stride = arguments.stride or fitted_stride
    video = open_video(arguments.video, part_asked_for(arguments, stride), arguments.fps)
    with ResultFolder(
        arguments.out, video.full_size, video.fps, stride=stride, masks=arguments.masks, facts=facts_of(arguments)
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
    lines = [described(view), f"{summary.objects} ids in {summary.frames} frames; see {summary.folder}/report.html"]
    return tell(document, arguments.json, "\n".join([*lines, *(health.lines() if health else [])]))


def described(view: VideoView) -> str:
    """What was found in the video before it is tracked, for people."""
    found, lines = view.found, []
    if found is not None:
        speed = f", {found.speed:.1f} px a frame" if found.speed else ""
        lines.append(
            f"objects  about {found.object_size[0]:.0f}x{found.object_size[1]:.0f} px (height x width), "
            f"{found.objects:.1f} in a frame{speed}"
        )
    if view.motion is not None or (view.camera is not None and view.camera.moves):
        lines.append(f"camera   {(view.motion or view.camera).describe()}")  # type: ignore[union-attr]
    return "\n".join(lines) or "nothing moves in this video, as far as can be seen"


def facts_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Where results come from."""
    return {
        "video": arguments.video,
        "weights": arguments.weights,
        "command": checkpoint.command_line(),
        "commit": checkpoint.commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def part_asked_for(arguments: argparse.Namespace, stride: int = 1) -> Selection:
    region = None
    if arguments.region is not None:
        x0, y0, x1, y1 = arguments.region
        region = (x0, y0, x1, y1)
    return Selection(region, arguments.start, arguments.end, stride)


def tracker_asked_for(arguments: argparse.Namespace) -> tuple[Callable[[VideoView], Streaming], int, bool]:
    """How to get the classical tracker or the model that the weights name for a video, the stride it was made for, and
    whether it needs a camera that stands still: words that do not go together are refused at once, weights are read
    when it is called."""
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


def generate(arguments: argparse.Namespace) -> int:
    path = checkpoint.find(arguments.weights)
    model = checkpoint.load(path, arguments.device)
    if not isinstance(model, SCALOR):
        raise InputError(
            f"weights {arguments.weights} are of a {model.config.system}: `scalor generate` imagines with SCALOR; "
            "give its weights, such as shapes-md."
        )
    if arguments.video and model.config.still:
        raise InputError(
            f"weights {arguments.weights} are of a camera that stands still: imagine how its videos go on with "
            f"`scalor predict {arguments.video} --weights {arguments.weights}`."
        )
    folder = open_folder(arguments.out)
    torch.manual_seed(arguments.seed)
    observe, horizon = arguments.observe, arguments.horizon
    if arguments.scratch:
        rollout = model.imagine(observe + horizon, discovery_rate=arguments.rate)
        show_rollout(folder, rollout, None, None)
        document: dict[str, Any] = {"frames": observe + horizon, "folder": str(folder)}
        return tell(document, arguments.json, f"imagined {observe + horizon} frames from nothing; see {folder}")
    if arguments.video:
        frames = torch.from_numpy(read_video(arguments.video))
        if len(frames) < observe:
            raise InputError(
                f"video {arguments.video} has {len(frames)} frames: --observe {observe} needs at least as many."
            )
    else:
        config = checkpoint.read(path).config
        scenes = Scenes(config.test, report.TEST_SEED, "test", next(model.parameters()).device)
        frames = scenes.clips(arguments.clip, 1, observe + horizon).frames[0]
    rollout = model.generate(frames, observe, horizon, discovery_rate=arguments.rate or 0.0)
    truth = frames[: observe + horizon, :3]
    show_rollout(folder, rollout, truth if len(truth) == observe + horizon else None, observe)
    document = {"observed": observe, "imagined": horizon, "folder": str(folder)}
    return tell(document, arguments.json, f"{observe} frames seen, {horizon} imagined; see {folder}")


def show_rollout(folder: Path, rollout: Rollout, truth: torch.Tensor | None, observe: int | None) -> None:
    """A strip and videos of a rollout, beside the truth where it is known."""
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
    # The film is larger than the strip; both its halves are drawn at the size that `overlay` chooses.
    videos = {"imagined": overlay(frames.cpu().numpy(), tracks, labels=False, trails=0)}
    if truth is not None:
        videos = {
            "truth": overlay(truth.cpu().numpy(), tracks.select(tracks.frame < 0)),
            **videos,
        }
    film = side_by_side(videos, generated_from={"imagined": observe} if observe else None)
    write_video(folder / "generated.mp4", film, FPS)
    write_video(folder / "generated.gif", film, FPS)
    tracks.to_csv(folder / "generated_tracks.csv")


def demo(arguments: argparse.Namespace) -> int:
    start = time.monotonic()
    folder = open_folder(arguments.out)
    path = checkpoint.find("shapes-md")
    found, model = checkpoint.read(path), checkpoint.load(path)
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
    write_video(folder / "overlay.mp4", film, FPS)
    write_video(folder / "overlay.gif", film, FPS)
    imagine_future(model, frames, folder)
    document = {
        "provenance": found.provenance,
        "clips": arguments.clips,
        "metrics": measured.to_dict(),
        "seconds": time.monotonic() - start,
        "files": sorted(str(file) for file in folder.iterdir()),
    }
    files = "\n".join(f"  {file}" for file in document["files"])
    return tell(document, arguments.json, f"{table(measured)}\nwritten in {document['seconds']:.0f} s:\n{files}")


def imagine_future(model: SCALOR, frames: torch.Tensor, folder: Path) -> None:
    """The most likely future: nothing in it is left to chance."""
    observe, horizon = 5, 10
    rollout = model.generate(frames, observe, horizon, estimator=Mode())
    show_rollout(folder, rollout, frames[: observe + horizon], observe)


def tell(document: dict[str, Any], as_json: bool, sentence: str) -> int:
    if as_json:
        print_json(document)
    else:
        print(sentence)
    return 0
