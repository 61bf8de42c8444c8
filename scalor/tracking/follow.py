"""Track a video frame by frame, in one pass.

Memory does not grow with the length of the video.

>>> for step in follow(tracker, look_at(open_video("ants.mp4"))):
...     step.frame.picture, step.tracks
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool

from scalor.config import SceneConfig
from scalor.data.observation import Observation
from scalor.errors import InputError
from scalor.health import HealthMonitor
from scalor.model.image_encoder import EncoderMemory
from scalor.model.scalor import SCALOR
from scalor.model.state import ObjectState, SceneState
from scalor.nn.interface import Tracker, TrackerMemory
from scalor.nn.records import map_tensors
from scalor.still.foreground import ForegroundTest, to_floats
from scalor.still.light import Light
from scalor.still.still_background import FrameLight, StillBackground
from scalor.tracking.identity import (
    LAG,
    Identities,
    TrackHistory,
    UndecidedFrame,
)
from scalor.tracking.kalman import Linker, LinkerSettings, TrackStates
from scalor.tracking.post_processing import PostProcessor
from scalor.tracking.video_view import Lens, VideoView, is_universal, lens_for
from scalor.tracks import Tracks
from scalor.video.pixels import Picture
from scalor.video.resize import resize, scaled_size
from scalor.video.sources import Frame

SHORTEST_LAG, MOST_WAITING = 4, 2**28
"""Smallest lag in frames, and largest memory in bytes for the images of frames that are not decided yet."""
WIDEST_LOOK = 320
"""Largest longer side, in pixels, of the reduced frame in which foreground is detected for the health report."""


class Streaming(Protocol):
    """A tracker that works frame by frame: a model or a classical tracker."""

    def stream(self, frames: Iterable[object]) -> Iterator[Tracks]:
        """Yield the tracks of each frame."""
        ...


class Step(NamedTuple):
    """One tracked frame of a video."""

    frame: Frame
    """The frame with its full image."""
    tracks: Tracks
    """Tracks in pixels of the original video."""
    in_view: Tracks
    """The same tracks in pixels of the steady video."""
    foreground: Bool[np.ndarray, "h w"] | None
    """Where the tracked region differs from the background, at a resolution that depends on the tracker. None without a
    background."""
    brighter: float | None
    """Change of brightness since the previous frame, as a share of full brightness. None if unknown."""


class Steps(Protocol):
    """The tracked frames of a video, in order, with a state that can be saved after each and gone on from."""

    def __iter__(self) -> Iterator[Step]: ...

    def save(self) -> dict[str, Any] | None:
        """Return the state after the last step; None if it is no state to go on from."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that `save` returned."""
        ...


def monitor_for(tracker: Streaming, view: VideoView) -> HealthMonitor | None:
    """Return a health monitor for a run, or None without a background to compare with."""
    if view.background is None:
        return None
    steady = view.steady
    size, limits = object_size_of(tracker, view), None
    if isinstance(tracker, SCALOR) and tracker.config.still:
        lens, reach = lens_of(tracker, view), tracker.config.size_range
        sides = [side / scale for side, scale in zip(tracker.config.object_size, lens.scales, strict=True)]
        limits = (min(sides) * (1 - reach), max(sides) * (1 + reach))
    return HealthMonitor(steady.full_size, steady.fps, size, steady.selection.region, limits)


def object_size_of(tracker: Streaming, view: VideoView) -> tuple[float, float] | None:
    """Return the typical object size that a tracker works with, or None if it has none.

    The size is height and width in pixels of the steady video.
    """
    given = getattr(tracker, "object_size", None)  # classical trackers: given by the user, or measured
    if given is not None:
        return given  # type: ignore[no-any-return]
    if isinstance(tracker, SCALOR) and tracker.config.still:
        scene = scene_of(tracker)
        lens = lens_of(tracker, view)
        if scene.kind == "composed" and view.found:
            return view.found.object_size
        if min(scene.object_size) > 0:
            grown = scene.scale / lens.scale
            return scene.object_size[0] * grown, scene.object_size[1] * grown
        height, width = tracker.config.object_size
        return height / lens.scales[0], width / lens.scales[1]
    return None


def scene_of(tracker: SCALOR) -> SceneConfig:
    """Return the scene settings that the model was trained with, or the defaults if they are not recorded."""
    return tracker.run.scene if tracker.run else SceneConfig()


def lens_of(tracker: Streaming, view: VideoView) -> Lens:
    """Return the lens through which a tracker sees the video."""
    if isinstance(tracker, SCALOR):
        return lens_for(view, tracker.config, scene_of(tracker))
    return lens_for(view, None, SceneConfig())


def follow(tracker: Streaming, view: VideoView, masks: bool = False, raw: bool = False) -> Iterator[Step]:
    """Track a video and yield each of its frames with its tracks, in order.

    Parameters
    ----------
    tracker
        A model or a classical tracker.
    view
        The video, as returned by `look_at`.
    masks
        Also return the visible mask of each object.
    raw
        Skip post-processing (`PostProcessor`). With post-processing, each frame is yielded up to `lag_for(view)` frames
        later.
    """
    return iter(TrackingPass(tracker, view, masks, raw))


SAVED_CLASSES = (
    *(Tracks, SceneState, ObjectState, EncoderMemory, FrameLight, Light),
    *(Identities, UndecidedFrame, TrackHistory, Linker, LinkerSettings, TrackStates),
)
"""Classes of the state that `TrackingPass.save` returns, for `scalor.snapshots`."""


class TrackingPass:
    """One pass over a video, whose state can be saved after a frame and restored; see `follow`."""

    def __init__(self, tracker: Streaming, view: VideoView, masks: bool = False, raw: bool = False) -> None:
        self.tracker, self.view, self.masks = tracker, view, masks
        self.lens = lens_of(tracker, view)
        self.post_processor = None if raw else post_processor_for(tracker, view, self.lens)
        self.make_frame = FrameMaker(view, self.lens)
        self.memory = TrackerMemory()
        self.seen = 0
        """Number of frames that the tracker has seen."""
        self.ended = False
        self.shown: deque[ShownFrame] = deque()
        self.undecided: deque[ShownFrame] = deque()

    def __iter__(self) -> Iterator[Step]:
        for tracks in stream(self.tracker, self.frames(), self.masks, self.memory):
            self.undecided.append(self.shown.popleft())
            seen = self.lens.to_original(tracks)
            yield from self.steps(
                self.post_processor.step(seen, self.undecided[-1].picture) if self.post_processor else [seen]
            )
        self.ended = True
        if self.post_processor:
            yield from self.steps(self.post_processor.finish())

    def frames(self) -> Iterator[Observation]:
        """Yield the frames that the tracker has not seen, and find those again whose ids were not decided."""
        begun, waiting = self.seen, list(self.undecided)
        self.undecided.clear()
        for number, frame in enumerate(self.view.video.whole_frames()):
            if number < begun - len(waiting):
                continue
            picture = self.view.picture(frame)
            if number < begun:
                self.undecided.append(waiting[len(self.undecided)]._replace(frame=frame, picture=picture))
                continue
            seen = self.make_frame(picture)
            self.shown.append(ShownFrame(frame, picture, self.make_frame.foreground, self.make_frame.brighter))
            self.seen += 1
            yield seen

    def steps(self, decided: Iterable[Tracks]) -> Iterator[Step]:
        """Yield the oldest undecided frames with their tracks."""
        for in_view in decided:
            one = self.undecided.popleft()
            assert one.frame is not None
            yield Step(one.frame, self.view.to_frame(in_view, one.frame), in_view, one.foreground, one.brighter)

    def save(self) -> dict[str, Any] | None:
        """Return the state after the last step; None if the tracker has none to restore, or at the end of the video.

        Pictures are not part of it: they are read from the video again.
        """
        if self.memory.state is None or self.ended:
            return None
        nothing = np.empty((0, 0, 3), np.uint8)
        return {
            "memory": self.memory.state,
            "seen": self.seen,
            "undecided": [tuple(one._replace(frame=None, picture=nothing)) for one in self.undecided],
            "lights": [one.light for one in self.backgrounds()],
            "brightness": self.make_frame.brightness,
            "foreground": self.make_frame.foreground,
            "brighter": self.make_frame.brighter,
            "identities": None if self.post_processor is None else self.post_processor.identities,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state that `save` returned for the same tracker, video and options."""
        device = next(self.tracker.parameters()).device if isinstance(self.tracker, SCALOR) else None
        self.memory.state = map_tensors(lambda tensor: tensor if device is None else tensor.to(device), state["memory"])
        self.seen = state["seen"]
        self.undecided = deque(ShownFrame(*one) for one in state["undecided"])
        for background, light in zip(self.backgrounds(), state["lights"], strict=True):
            background.light = light
        self.make_frame.brightness, self.make_frame.foreground = state["brightness"], state["foreground"]
        self.make_frame.brighter = state["brighter"]
        if self.post_processor is not None:
            self.post_processor.identities = state["identities"]

    def backgrounds(self) -> list[StillBackground]:
        """Return the backgrounds that follow the light from frame to frame."""
        three = (
            self.lens.behind,
            self.make_frame.background,
            self.post_processor.background if self.post_processor else None,
        )
        return [one for one in three if one is not None]


def lag_for(view: VideoView) -> int:
    """Return how many frames to wait before a frame is decided.

    Waiting frames are held in memory, so the lag is shorter for large images.
    """
    size = 3 * math.prod(view.video.full_size) * (1 if view.motion is None else 2)
    return max(SHORTEST_LAG, min(LAG, MOST_WAITING // size))


class ShownFrame(NamedTuple):
    """A frame that was passed to the tracker."""

    frame: Frame | None
    """None in a saved state."""
    picture: Picture
    """Its image in the steady video."""
    foreground: Bool[np.ndarray, "h w"] | None
    brighter: float | None


class FrameMaker:
    """Conversion of images to frames for a tracker, and comparison of each with the background."""

    def __init__(self, view: VideoView, lens: Lens) -> None:
        self.lens, self.test = lens, view.found.test if view.found else ForegroundTest()
        self.background: StillBackground | None = None
        if lens.behind is None and view.background is not None:
            x0, y0, x1, y1 = lens.corners
            scale = min(1.0, WIDEST_LOOK / max(y1 - y0, x1 - x0))
            self.size = scaled_size((y1 - y0, x1 - x0), scale)
            self.background = view.background.resized(self.size)
        self.foreground: Bool[np.ndarray, "h w"] | None = None
        self.brighter: float | None = None
        self.brightness: float | None = None

    def __call__(self, picture: Picture) -> Observation:
        """Return the tracker's frame for an image, and update `foreground` and `brighter`."""
        x0, y0, x1, y1 = self.lens.corners
        looked = self.lens.look(picture)
        small, behind = looked.small, self.lens.behind
        empty = looked.empty
        if self.background is not None:
            small, behind = resize(picture[y0:y1, x0:x1], self.size), self.background
            empty = behind.at(small)
        if behind is not None and empty is not None and behind.light is not None:
            self.foreground = self.test(to_floats(small), to_floats(empty))
            before, self.brightness = self.brightness, behind.light.brightness
            self.brighter = None if before is None else self.brightness - before
        return looked.frame


def post_processor_for(tracker: Streaming, view: VideoView, lens: Lens) -> PostProcessor | None:
    """Return the post-processing for a model of a still camera; None for other trackers, which need none."""
    if not (isinstance(tracker, SCALOR) and tracker.config.still):
        return None
    size = object_size_of(tracker, view)
    if size is None:
        return None
    found = view.found if is_universal(scene_of(tracker)) else None
    return PostProcessor(size, lens, found, lag_for(view), view.steady.fps / view.video.selection.stride)


def stream(
    tracker: Streaming, frames: Iterator[Observation], masks: bool, memory: TrackerMemory | None = None
) -> Iterator[Tracks]:
    """Run a tracker on frames, with visible masks if requested. SCALOR starts from the memory and updates it."""
    if isinstance(tracker, SCALOR):
        return tracker.stream(frames, masks, memory)
    if not masks:
        return tracker.stream(frames)
    if not isinstance(tracker, Tracker):
        raise InputError(f"masks is true and the tracker a {type(tracker).__name__}, which has none: leave them out.")
    return tracker.stream(frames, masks=True)
