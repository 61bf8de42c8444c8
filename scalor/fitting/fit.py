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
from scalor.still.survey import Survey
from scalor.tracking.view import VideoView, look_at
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
    views = [look_at(open_video(source, replace(part, stride=1), fps), said.object_size) for source in sources]
    check_views(views)
    found = views[0].found
    assert found is not None
    shortest = min(first_frames(view.steady, LARGEST_STRIDE * LENGTH) for view in views)
    config = change(choose(found, said, views[0].steady.size, shortest, str(folder / FOOTAGE_FILE)))
    strided = [at_stride(view, config.scene.stride) for view in views]
    for view in strided:
        check_length(view.steady, config.scene.length)
    frames = reduce(Frames.beside, (keep(view, config) for view in strided))
    frames.check(config.scene)
    save(frames, folder / FOOTAGE_FILE)
    return Prepared(config, found, len(frames.frames))


def check_views(views: Sequence[VideoView]) -> None:
    """Refuse videos in which nothing moves, and videos of several sizes."""
    for view in views:
        if view.found is None:
            raise InputError(
                f"{view.video.name} shows nothing that moves: choose another part of it with --start, --end or "
                "--region, or say --object-size if the objects are very small."
            )
        one, first = view.steady.size, views[0].steady.size
        if one != first:
            raise InputError(
                f"{view.video.name} has {one[1]}x{one[0]} pixels and {views[0].video.name} {first[1]}x{first[0]}: fit "
                "videos of one size together, or one after the other."
            )


def at_stride(view: VideoView, stride: int) -> VideoView:
    """The same view of every so many frames."""
    selection = view.video.selection
    if stride == selection.stride:
        return view
    return replace(view, steady=Video(view.steady._source, replace(view.steady.selection, stride=stride)))


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
