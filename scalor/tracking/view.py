"""How a video is looked at, once for all trackers and for `fit`: its camera, its background, and what moves in it.

>>> view = look_at(open_video("ants.mp4"))
>>> view.found.object_size, view.camera
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice

from scalor.camera import CameraCheck, CameraMotion, check_camera, estimate_motion
from scalor.camera.stabilised import StabilisedSource, stabilise
from scalor.config import ModelConfig, SceneConfig
from scalor.errors import InputError
from scalor.still.background import Background
from scalor.still.survey import Survey, survey
from scalor.tracking.lens import Lens
from scalor.tracks import Tracks
from scalor.video.reading import Video
from scalor.video.resize import shrunken_size
from scalor.video.sources import Frame, Picture

TYPICAL_SIDE = 14.0
"""Pixels of a typical object as universal weights are shown it: they know things of half to twice that size."""
MOST_ASPECT = 1.6
"""Height by width, or width by height, of a typical object as universal weights see it; more is scaled away."""
SMALLEST_SIDE = 8.0
"""Objects whose shorter side has fewer pixels are enlarged to this; larger ones never are."""
MOST_PIXELS = 500_000
"""Of a frame as a model sees it; more would be slow."""
STRENGTH, MOST_CONTRAST = 0.3, 8.0
"""How much objects should differ from the background, in shares of full brightness, and what may be done for it."""
SMALLEST_CHECKED = 96
"""Pixels along a side of pictures in which a motion of the camera can be told from that of objects."""
SPARSER = 4
"""Whole frames have so many times fewer objects for their size than clips, which are cut around objects."""
SPARE_SLOTS, SLOTS_PER_OBJECT, MOST_SLOTS = 24, 3.0, 1024
"""Slots for universal weights, by how many objects were counted in a frame."""


@dataclass(frozen=True)
class VideoView:
    """A video as trackers look at it."""

    video: Video
    """As it was opened."""
    steady: Video
    """The same before a camera that stands still: itself, or its common view."""
    background: Background | None
    """Of the steady video; None for a single picture."""
    found: Survey | None
    """What moves in it; None where nothing could be measured."""
    camera: CameraCheck | None
    """None where it was not looked at: OpenCV is not installed, or the picture is tiny."""
    motion: CameraMotion | None = None
    """Where the camera moves."""

    def picture(self, frame: Frame) -> Picture:
        """A whole frame of the video as the steady one shows it."""
        source = self.steady._source
        return source.picture(frame) if isinstance(source, StabilisedSource) else frame.picture

    def to_frame(self, tracks: Tracks, frame: Frame) -> Tracks:
        """Tracks of the steady video in pixels of the original frame."""
        if self.motion is None:
            return tracks
        masks = None if tracks.masks is None else self.motion.masks_to_frame(frame.index, tracks.masks)
        box = self.motion.boxes_to_frame(frame.index, tracks.box)
        height, width = self.video.full_size
        middle = (box[:, :2] + box[:, 2:]) / 2
        inside = ((middle >= 0) & (middle < (width, height))).all(1)
        moved = replace(tracks, box=box.astype(tracks.box.dtype), size=self.video.full_size, masks=masks)
        return moved.select(inside)


def is_universal(scene: SceneConfig) -> bool:
    """Whether weights are universal, or refined from such."""
    return scene.kind == "composed" or min(scene.object_size) > 0


def look_at(video: Video, object_size: tuple[float, float] | None = None, camera_may_move: bool = True) -> VideoView:
    """Look at a video before it is tracked: does its camera move, what is its background, what moves before it?

    `object_size`, height and width in pixels, is taken for granted where it is given; so is a camera that stands still,
    if it may not move. Takes seconds, unless the camera moves: then all of the video is read three times.
    """
    if len(list(islice(video, 2))) < 2:
        return VideoView(video, video, None, None, None)
    checked = camera_may_move and min(video.size) >= SMALLEST_CHECKED and find_spec("cv2")
    steady, motion = video, None
    with ThreadPoolExecutor(1) as beside:
        # Both take seconds. Few cameras move, so the background before one that stands still is begun at once.
        early = beside.submit(Background.of, video)
        camera = check_camera(video) if checked else None
        if camera is not None and camera.moves and video.selection.region is None:
            estimated = estimate_motion(video)
            if estimated.reliable:
                motion = estimated
                steady = stabilise(video, motion)
        background = early.result() if motion is None else Background.of(steady)
    try:
        found = survey(steady, background, object_size)
    except InputError:
        found = None  # nothing moves: there is nothing to follow, and the report says so
    return VideoView(video, steady, background, found, camera, motion)


def lens_for(view: VideoView, model: ModelConfig | None, scene: SceneConfig) -> Lens:
    """Through which a model looks at a video: one that was fitted, as it looked at its own; universal weights, so that
    objects are as large as they know them."""
    video = view.steady
    plain = Lens(video.full_size, video.selection.region)
    if model is None:
        return plain
    if not model.still:
        return replace(plain, cell=model.cell)
    if view.background is None:
        raise InputError(f"{video.name} has 1 frame: these weights find what moves, which needs at least 2.")
    if scene.kind == "composed":
        scale, stretch = universal_scale(view.found, video.size)
        contrast = universal_contrast(view.found)
        return replace(
            plain, cell=model.cell, scale=scale, stretch=stretch, background=view.background, contrast=contrast
        )
    return replace(
        plain,
        cell=model.cell,
        scale=scene.scale * resolution(scene, video),
        stretch=scene.stretch,
        background=view.background,
        contrast=scene.contrast,
        perspective=scene.perspective,
    )


def resolution(scene: SceneConfig, video: Video) -> float:
    """How many times more pixels the video that a model was fitted to had, along a side: the same camera may film at
    another resolution."""
    (height, width), (now_high, now_wide) = scene.video_size, video.full_size
    same_shape = abs(height * now_wide - width * now_high) < 0.02 * width * now_high
    return height / now_high if height and same_shape else 1.0


def universal_scale(found: Survey | None, size: tuple[int, int]) -> tuple[float, float]:
    """The scale of the height, and how many times more the width is scaled, for universal weights."""
    if found is None:
        return min(1.0, math.sqrt(MOST_PIXELS / math.prod(size))), 1.0
    height, width = found.object_size
    aspect = min(max(height / width, 1 / MOST_ASPECT), MOST_ASPECT)
    down, across = TYPICAL_SIDE * math.sqrt(aspect) / height, TYPICAL_SIDE / math.sqrt(aspect) / width
    enlarged = max(1.0, SMALLEST_SIDE / min(height, width))
    room = math.sqrt(MOST_PIXELS / math.prod(size))
    shrink = min(1.0, enlarged / max(down, across), room / math.sqrt(down * across))
    return round(down * shrink, 4), round(across / down, 4)


def universal_contrast(found: Survey | None) -> float:
    """How many times stronger things should differ from the background, so that faint ones are seen."""
    if found is None or found.strength <= 0:
        return 1.0
    return round(min(MOST_CONTRAST, max(1.0, STRENGTH / found.strength)), 2)


def slots_for(view: VideoView, model: ModelConfig, scene: SceneConfig) -> int | None:
    """How many objects to make room for in a whole video; None: as many as the weights were trained with."""
    if is_universal(scene):
        objects = 0.0 if view.found is None else view.found.objects
        return min(MOST_SLOTS, SPARE_SLOTS + math.ceil(SLOTS_PER_OBJECT * objects))
    if scene.kind != "footage":
        return None
    seen = shrunken_size(view.steady.size, scene.scale * resolution(scene, view.steady), scene.stretch)
    return math.ceil(model.slots * max(1.0, math.prod(seen) / math.prod(scene.frame) / SPARSER))
