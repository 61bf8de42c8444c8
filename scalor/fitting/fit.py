"""The whole way from videos to the settings and the frames that a model is trained with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from pathlib import Path

from scalor.config import Config
from scalor.data.footage import Frames
from scalor.errors import InputError
from scalor.fitting.choosing import LARGEST_STRIDE, LENGTH, Choice, choose
from scalor.fitting.keeping import keep, save
from scalor.fitting.surveying import Survey, empty_scene, survey
from scalor.video import Selection, Video, open_video

FOOTAGE_FILE = "footage.npz"


@dataclass(frozen=True)
class Prepared:
    """Ready to be trained."""

    config: Config
    found: Survey
    """In the first video, where something is not said."""
    frames: int
    """Kept to learn from."""


def prepare(
    sources: Sequence[str], folder: Path, part: Selection, said: Choice, fps: float, change: Callable[[Config], Config]
) -> Prepared:
    """Survey the videos, choose settings, let them be changed, keep the frames in the folder."""

    def every(stride: int) -> list[Video]:
        return [open_video(source, replace(part, stride=stride), fps) for source in sources]

    videos = every(1)
    for video in videos[1:]:
        if video.size != videos[0].size:
            raise InputError(
                f"{video.name} has {video.size[1]}x{video.size[0]} pixels and {videos[0].name} "
                f"{videos[0].size[1]}x{videos[0].size[0]}: fit videos of one size together, or one after the other."
            )
    stills = [empty_scene(video) for video in videos]
    found = survey(videos[0], stills[0], said.object_size)
    shortest = min(first_frames(video, LARGEST_STRIDE * LENGTH) for video in videos)
    config = change(choose(found, said, videos[0].size, shortest, str(folder / FOOTAGE_FILE)))
    strided = every(config.scene.stride)
    for video in strided:
        check_length(video, config.scene.length)
    kept = (keep(video, still, config, found.strength) for video, still in zip(strided, stills, strict=True))
    frames = reduce(Frames.beside, kept)
    frames.check(config.scene)
    save(frames, folder / FOOTAGE_FILE)
    return Prepared(config, found, len(frames.frames))


def check_length(video: Video, length: int) -> None:
    """Refuses a video that is too short for a clip of `length` frames."""
    frames = first_frames(video, length)
    if frames < length:
        raise InputError(
            f"{video.name} has {frames} frames at stride {video.selection.stride} and a clip needs {length}: give a "
            "longer video or part of it, or a smaller --stride."
        )


def first_frames(video: Video, most: int) -> int:
    """How many frames a video has, of which no more than `most` are looked for."""
    return sum(1 for _ in islice(video, most))
