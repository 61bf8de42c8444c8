"""The whole way from videos to the settings and the frames that a model is trained with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from scalor.config import Config
from scalor.data.footage import Frames
from scalor.errors import InputError
from scalor.fitting.choosing import Choice, choose
from scalor.fitting.keeping import keep, save
from scalor.fitting.surveying import Survey, empty_scene, survey
from scalor.video import Selection, open_video
from scalor.video.sources import Picture

FOOTAGE_FILE = "footage.npz"


@dataclass(frozen=True)
class Prepared:
    """Ready to be trained."""

    config: Config
    found: Survey
    """In the first video, where something is not said."""
    frames: int
    """Kept to learn from."""


def prepare(sources: Sequence[str], folder: Path, part: Selection, said: Choice, fps: float) -> Prepared:
    """Survey the videos, choose settings, keep the frames in the folder."""
    videos = [open_video(source, replace(part, stride=1), fps) for source in sources]
    for video in videos[1:]:
        if video.size != videos[0].size:
            raise InputError(
                f"{video.name} has {video.size[1]}x{video.size[0]} pixels and {videos[0].name} "
                f"{videos[0].size[1]}x{videos[0].size[0]}: fit videos of one size together, or one after the other."
            )
    stills = [empty_scene(video) for video in videos]
    found = survey(videos[0], stills[0], said.object_size)
    config = choose(found, said, videos[0].size, str(folder / FOOTAGE_FILE))

    def kept(source: str, still: Picture) -> Frames:
        strided = open_video(source, replace(part, stride=config.scene.stride), fps)
        return keep(strided, still, config, found.strength)

    frames = reduce(Frames.beside, map(kept, sources, stills))
    save(frames, folder / FOOTAGE_FILE)
    return Prepared(config, found, len(frames.frames))
