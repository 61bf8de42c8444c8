"""Analysis of a video, shared by all trackers and `fit`: its camera, its background, and what moves in it.

>>> view = look_at(open_video("ants.mp4"))
>>> view.found.object_size, view.camera
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice

from scalor.camera import CameraCheck, CameraMotion, check_camera, estimate_motion
from scalor.camera.stabilise import StabilisedSource, stabilise
from scalor.config import ModelConfig, SceneConfig
from scalor.errors import InputError
from scalor.still.background import Background
from scalor.still.survey import Survey, survey
from scalor.tracking.lens import Lens
from scalor.tracks import Tracks
from scalor.video.pixels import shrunken_size
from scalor.video.reading import Video
from scalor.video.sources import Frame, Picture

TARGET_SIDE = 14.0
"""Side in pixels of a typical object as universal weights see it. They can represent objects of half to twice that
size."""
MAX_ASPECT = 1.6
"""Largest ratio of the longer to the shorter side of a typical object as universal weights see it. A larger ratio is
scaled down to this one."""
MIN_SIDE = 8.0
"""Objects whose shorter side has fewer pixels are enlarged to this; larger objects are never enlarged."""
MAX_PIXELS = 500_000
"""Largest number of pixels in a frame for universal weights; more would be slow."""
STRENGTH, MAX_CONTRAST = 0.3, 8.0
"""Desired difference of objects from the background, as a share of full brightness, and the largest amplification used
to reach it."""
MIN_CHECKED_SIDE = 96
"""Smallest side in pixels of images in which camera motion can be distinguished from object motion."""
CLIP_DENSITY_RATIO = 4
"""Factor by which objects are sparser in full frames than in training clips, which are cropped around objects."""
SPARE_SLOTS, SLOTS_PER_OBJECT, MAX_SLOTS = 24, 3.0, 1024
"""Slots for universal weights: SPARE_SLOTS, plus SLOTS_PER_OBJECT for each object counted in a frame, up to
MAX_SLOTS."""


@dataclass(frozen=True)
class VideoView:
    """A video and what was measured in it before tracking."""

    video: Video
    """The video as it was opened."""
    steady: Video
    """The video as a still camera would show it: `video` itself, or its stabilised version."""
    background: Background | None
    """Background of the steady video; None for a single image."""
    found: Survey | None
    """Survey of what moves in the steady video; None where nothing could be measured."""
    camera: CameraCheck | None
    """Result of the camera check. None if it was skipped: not requested, OpenCV not installed, or a tiny image."""
    motion: CameraMotion | None = None
    """Camera motion that the steady video compensates; None if it was not stabilised."""

    def picture(self, frame: Frame) -> Picture:
        """Return a full frame of the video as the steady video shows it."""
        source = self.steady._source
        return source.picture(frame) if isinstance(source, StabilisedSource) else frame.picture

    def to_frame(self, tracks: Tracks, frame: Frame) -> Tracks:
        """Return tracks of the steady video in pixels of the original frame.

        If the camera moves, tracks whose centre lies outside the frame are dropped.
        """
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
    """Return whether weights are universal, or refined from universal ones."""
    return scene.kind == "composed" or min(scene.object_size) > 0


def look_at(video: Video, object_size: tuple[float, float] | None = None, camera_may_move: bool = True) -> VideoView:
    """Measure a video before it is tracked: its camera motion, its background, and what moves in it.

    This takes seconds, unless the camera moves: then the whole video is read three times.

    Parameters
    ----------
    video
        The video, as opened by `open_video`.
    object_size
        Typical height and width of an object in pixels; None to measure it.
    camera_may_move
        Whether to check the camera. If false, it is assumed to stand still.
    """
    if len(list(islice(video, 2))) < 2:
        return VideoView(video, video, None, None, None)
    checked = camera_may_move and min(video.size) >= MIN_CHECKED_SIDE and find_spec("cv2")
    steady, motion = video, None
    with ThreadPoolExecutor(1) as beside:
        # Both take seconds. Few cameras move, so the background for a still camera is estimated at the same time.
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
        found = None  # nothing moves, so there is nothing to track; the health report says so
    return VideoView(video, steady, background, found, camera, motion)


def lens_for(view: VideoView, model: ModelConfig | None, scene: SceneConfig) -> Lens:
    """Return the lens through which a model sees a video.

    Fitted weights see it as they saw the video they were fitted to. Universal weights see it at a scale at which
    objects have the size they were trained on.
    """
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
    """Return how many times the resolution of the fitted video this video has, along a side.

    The same camera may record at another resolution. The result is 1 if the aspect ratio differs or the fitted video's
    size is not known.
    """
    (height, width), (now_high, now_wide) = scene.video_size, video.full_size
    same_shape = abs(height * now_wide - width * now_high) < 0.02 * width * now_high
    return height / now_high if height and same_shape else 1.0


def universal_scale(found: Survey | None, size: tuple[int, int]) -> tuple[float, float]:
    """Return the vertical scale, and the ratio of horizontal to vertical scale, for universal weights."""
    if found is None:
        return min(1.0, math.sqrt(MAX_PIXELS / math.prod(size))), 1.0
    height, width = found.object_size
    aspect = min(max(height / width, 1 / MAX_ASPECT), MAX_ASPECT)
    down, across = TARGET_SIDE * math.sqrt(aspect) / height, TARGET_SIDE / math.sqrt(aspect) / width
    enlarged = max(1.0, MIN_SIDE / min(height, width))
    room = math.sqrt(MAX_PIXELS / math.prod(size))
    shrink = min(1.0, enlarged / max(down, across), room / math.sqrt(down * across))
    return round(down * shrink, 4), round(across / down, 4)


def universal_contrast(found: Survey | None) -> float:
    """Return the amplification of differences from the background that makes faint objects visible."""
    if found is None or found.strength <= 0:
        return 1.0
    return round(min(MAX_CONTRAST, max(1.0, STRENGTH / found.strength)), 2)


def slots_for(view: VideoView, model: ModelConfig, scene: SceneConfig) -> int | None:
    """Return the number of slots for a whole video, or None for the number that the weights were trained with."""
    if is_universal(scene):
        objects = 0.0 if view.found is None else view.found.objects
        return min(MAX_SLOTS, SPARE_SLOTS + math.ceil(SLOTS_PER_OBJECT * objects))
    if scene.kind != "footage":
        return None
    seen = shrunken_size(view.steady.size, scene.scale * resolution(scene, view.steady), scene.stretch)
    return math.ceil(model.slots * max(1.0, math.prod(seen) / math.prod(scene.frame) / CLIP_DENSITY_RATIO))
