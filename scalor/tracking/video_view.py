"""Analysis of a video, shared by all trackers and `fit`: its camera, its background, and what moves in it.

`Lens` converts between the images of the video and the input frames of a model.

>>> view = look_at(open_video("ants.mp4"))
>>> view.found.object_size, view.camera
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from scalor.boxes import FLAT, Perspective, sizes_at
from scalor.camera import CameraCheck, CameraMotion, check_camera, estimate_motion
from scalor.camera.stabilise import StabilisedSource, stabilise
from scalor.config import ModelConfig, SceneConfig
from scalor.data.observation import Observation
from scalor.errors import InputError
from scalor.still.still_background import StillBackground
from scalor.still.survey import Survey, survey
from scalor.tracks import Tracks
from scalor.video.pixels import Picture, amplify_difference
from scalor.video.reading import Video
from scalor.video.resize import resize, scaled_size
from scalor.video.sources import Frame


@dataclass(frozen=True)
class Lens:
    """Conversion of images to model frames, and of a model's tracks back to image coordinates.

    A frame is the selected region of an image, resized to the model's scale. If it is not a whole number of grid cells,
    it is padded by repeating its last row and column.
    """

    full_size: tuple[int, int]
    """Height and width of a full image."""
    region: tuple[int, int, int, int] | None = None
    """x0, y0, x1, y1 of the region in pixels of the full image; None for all of it."""
    cell: tuple[int, int] = (1, 1)
    """Height and width of a grid cell in pixels of a frame. The size of a frame is a multiple of it."""
    scale: float = 1.0
    """Frame pixels per image pixel, vertically."""
    stretch: float = 1.0
    """Ratio of the horizontal to the vertical scale."""
    background: StillBackground | None = None
    """Background of the region, for models of a still camera: it is part of every frame."""
    contrast: float = 1.0
    """Factor by which differences from the background are amplified."""
    perspective: Perspective = FLAT
    """Relative size of objects at the upper and lower edge of the region."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        """x0, y0, x1, y1 of the region in pixels of the full image."""
        height, width = self.full_size
        return self.region or (0, 0, width, height)

    @property
    def seen(self) -> tuple[int, int]:
        """Height and width of the region at the model's scale, without padding."""
        x0, y0, x1, y1 = self.corners
        return scaled_size((y1 - y0, x1 - x0), self.scale, self.stretch)

    @cached_property
    def behind(self) -> StillBackground | None:
        """The background at the model's scale, if there is one."""
        return None if self.background is None else self.background.resized(self.seen)

    @cached_property
    def ruler(self) -> Float[Tensor, " h"]:
        """Relative size of objects at each row of a frame, for models of a still camera."""
        rows = self.seen[0] + -self.seen[0] % self.cell[0]
        sizes = sizes_at(np.arange(rows) + 0.5, self.seen[0], self.perspective)
        return torch.from_numpy(sizes).float()

    @property
    def scales(self) -> tuple[float, float]:
        """Frame pixels per image pixel, vertically and horizontally."""
        return self.scale, self.scale * self.stretch

    def to_frame(self, picture: Picture) -> Observation:
        """Return the model's frame for a full image.

        Call it once for each frame, in order, because the background follows the lighting.
        """
        return self.look(picture).frame

    def look(self, picture: Picture) -> "LensOutput":
        """Return the model's frame for a full image, with the images it is made of."""
        x0, y0, x1, y1 = self.corners
        small = resize(picture[y0:y1, x0:x1], self.seen)
        if self.behind is None:
            return LensOutput(Observation(self._frame(small)), small, None)
        empty = self.behind.at(small)
        seen = self._frame(amplify_difference(small, empty, self.contrast))
        return LensOutput(Observation(seen, self._frame(empty), self.ruler), small, empty)

    def to_original(self, tracks: Tracks) -> Tracks:
        """Return tracks in pixels of the full image, without those whose centre lies in the padding."""
        (x0, y0, x1, y1), (height, width) = self.corners, self.seen
        edge = np.where([width % self.cell[1], height % self.cell[0]], (width, height), np.inf)
        tracks = tracks.select(np.all(tracks.centre < edge, axis=1))
        masks = None
        if tracks.masks is not None:
            rows, columns = nearest(y1 - y0, height), nearest(x1 - x0, width)
            masks = np.zeros((len(tracks), *self.full_size), bool)
            masks[:, y0:y1, x0:x1] = tracks.masks[:, rows[:, None], columns]
        grown = tracks.box * np.tile([(x1 - x0) / width, (y1 - y0) / height], 2)
        return replace(tracks, box=grown + np.array([x0, y0, x0, y0]), size=self.full_size, masks=masks)

    def to_picture(self, frame: Float[Tensor, "3 h w"], around: Picture) -> Picture:
        """Return a copy of `around` with a frame that the model drew in place of the region."""
        (x0, y0, x1, y1), (height, width) = self.corners, self.seen
        drawn = (frame[:, :height, :width].clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()
        if self.behind is not None:
            drawn = amplify_difference(drawn, self.behind.still, 1 / self.contrast)
        whole = around.copy()
        whole[y0:y1, x0:x1] = resize(drawn, (y1 - y0, x1 - x0))
        return whole

    def _frame(self, picture: Picture) -> Float[Tensor, "3 h w"]:
        # Copy, because arrays read from a file may be read-only and a tensor must be writable.
        frame = torch.tensor(picture).permute(2, 0, 1).float() / 255
        below, beside = (-side % step for side, step in zip(self.seen, self.cell, strict=True))
        return pad(frame, (0, beside, 0, below), mode="replicate") if below or beside else frame


class LensOutput(NamedTuple):
    """A model's frame, and the images it is made of."""

    frame: Observation
    small: Picture
    """The region at the model's scale, not amplified."""
    empty: Picture | None
    """The background of the region in the same lighting, if there is one."""


def nearest(count: int, seen: int) -> Int[np.ndarray, " count"]:
    """Return, for each of `count` pixels along a side, which of `seen` pixels it lies in."""
    places: np.ndarray = ((np.arange(count) + 0.5) * seen / count).astype(int)
    return places


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
    background: StillBackground | None
    """Background of the steady video; None for a single image."""
    found: Survey | None
    """Survey of what moves in the steady video; None where nothing could be measured."""
    camera: CameraCheck | None
    """Result of the camera check. None if it was skipped: not requested, OpenCV not installed, or a tiny image."""
    motion: CameraMotion | None = None
    """Camera motion that the steady video compensates; None if it was not stabilised."""

    def picture(self, frame: Frame) -> Picture:
        """Return a full frame of the video as the steady video shows it."""
        source = self.steady.source
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
        early = beside.submit(StillBackground.of, video)
        camera = check_camera(video) if checked else None
        if camera is not None and camera.moves and video.selection.region is None:
            estimated = estimate_motion(video)
            if estimated.reliable:
                motion = estimated
                steady = stabilise(video, motion)
        background = early.result() if motion is None else StillBackground.of(steady)
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
    seen = scaled_size(view.steady.size, scene.scale * resolution(scene, view.steady), scene.stretch)
    return math.ceil(model.slots * max(1.0, math.prod(seen) / math.prod(scene.frame) / CLIP_DENSITY_RATIO))
