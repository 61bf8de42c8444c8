"""Prepare the training of a model from scratch: from videos to settings and training frames."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from pathlib import Path

from scalor.config import Config
from scalor.data.footage import Frames
from scalor.errors import InputError
from scalor.fitting.choosing import LARGEST_STRIDE, LENGTH, ScratchOptions, choose
from scalor.fitting.keeping import keep, save
from scalor.still.survey import Survey
from scalor.tracking.view import VideoView, look_at
from scalor.video import Selection, Video, open_video

FOOTAGE_FILE = "footage.npz"
"""Name of the file in the run folder that holds the training frames."""


@dataclass(frozen=True)
class Prepared:
    """A training that is ready to start."""

    config: Config
    found: Survey
    """Survey of the first video. Settings that the user does not give are chosen from it."""
    frames: int
    """Number of frames kept for training."""


def prepare(
    sources: Sequence[str],
    folder: Path,
    part: Selection,
    said: ScratchOptions,
    fps: float,
    change: Callable[[Config], Config],
) -> Prepared:
    """Survey the videos, choose the settings and save the training frames in the run folder.

    Parameters
    ----------
    sources : sequence of str
        Videos, as `open_video` takes them. All must have one size.
    folder : Path
        Run folder, in which the frames are saved.
    part : Selection
        Part of the videos to use. Its stride is ignored.
    said : ScratchOptions
        Settings given by the user.
    fps : float
        Frames a second of sources that do not state their own.
    change : callable
        Function that applies the user's overrides to the chosen config.
    """
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
    """Raise an InputError if nothing moves in a video, or if the videos differ in size."""
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
    """Return the view with its steady video at this stride."""
    selection = view.video.selection
    if stride == selection.stride:
        return view
    return replace(view, steady=Video(view.steady._source, replace(view.steady.selection, stride=stride)))


def check_length(video: Video, length: int) -> None:
    """Raise an InputError if a video is too short for a clip of `length` frames."""
    frames = first_frames(video, length)
    if frames < length:
        raise InputError(
            f"{video.name} has {frames} frames at stride {video.selection.stride} and a clip needs {length}: give a "
            "longer video or part of it, or a smaller --stride."
        )


def first_frames(video: Video, most: int) -> int:
    """Return the number of frames of a video, but at most `most`. No more frames than that are read."""
    return sum(1 for _ in islice(video, most))
