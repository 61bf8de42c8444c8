"""Every frame of a video with its tracks: one pass, in memory that does not grow with its length.

>>> for step in follow(tracker, look_at(open_video("ants.mp4"))):
...     step.frame.picture, step.tracks
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from scalor.boxes import Perspective, sizes_at
from scalor.config import SceneConfig
from scalor.errors import InputError
from scalor.health import HealthMonitor
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Tracker
from scalor.still.background import Background
from scalor.still.foreground import ForegroundTest, to_floats
from scalor.still.survey import Survey
from scalor.tracking.identity import LAG, LIKELY, Identities, believable, without_doubles
from scalor.tracking.lens import Lens
from scalor.tracking.sharpening import Sharpener
from scalor.tracking.view import VideoView, is_universal, lens_for
from scalor.tracks import Tracks
from scalor.video.resize import shrink, shrunken_size
from scalor.video.sources import Frame, Picture

LEAST_AREA = 0.12
"""Of a typical object's box, at its place: what is smaller is no object but a piece of something that flutters."""
CERTAIN = 0.4
"""Confidence of a survey from which on the typical size is taken to be known."""
SHORTEST_LAG, MOST_WAITING = 4, 2**28
"""Frames, and bytes of pictures, that wait to be decided."""
WIDEST_LOOK = 320
"""Pixels of a frame's longer side in which foreground is looked for, for the report of health."""


class Streaming(Protocol):
    """What tracks frame by frame: a model, or a classical tracker."""

    def stream(self, frames: Iterable[object]) -> Iterator[Tracks]: ...


class Step(NamedTuple):
    """One frame of a video, tracked."""

    frame: Frame
    """With its whole picture."""
    tracks: Tracks
    """In pixels of the original video."""
    in_view: Tracks
    """The same in pixels of the steady video."""
    foreground: Bool[np.ndarray, "h w"] | None
    """Where the region that is tracked differs from the background, at some scale."""
    brighter: float | None
    """How much brighter the picture is than the one before, in shares of full brightness."""


def monitor_for(tracker: Streaming, view: VideoView) -> HealthMonitor | None:
    """Watches a run, where there is a background to compare with."""
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
    """Typical height and width, pixels of the steady video, that a tracker works with."""
    told = getattr(tracker, "object_size", None)  # classical trackers are told or measure it
    if told is not None:
        return told  # type: ignore[no-any-return]
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
    return tracker.run.scene if tracker.run else SceneConfig()


def lens_of(tracker: Streaming, view: VideoView) -> Lens:
    if isinstance(tracker, SCALOR):
        return lens_for(view, tracker.config, scene_of(tracker))
    return lens_for(view, None, SceneConfig())


def follow(tracker: Streaming, view: VideoView, masks: bool = False, raw: bool = False) -> Iterator[Step]:
    """Every frame with its whole picture, and what was seen in it."""
    lens = lens_of(tracker, view)
    tidy = None if raw else tidy_for(tracker, view, lens)
    look = Look(view, lens)
    shown: deque[Shown] = deque()
    undecided: deque[Shown] = deque()

    def frames() -> Iterator[Float[Tensor, "C h w"]]:
        for frame in view.video.whole_frames():
            picture = view.picture(frame)
            seen = look(picture)
            shown.append(Shown(frame, picture, look.foreground, look.brighter))
            yield seen

    def steps(decided: Iterable[Tracks]) -> Iterator[Step]:
        for in_view in decided:
            one = undecided.popleft()
            yield Step(one.frame, view.to_frame(in_view, one.frame), in_view, one.foreground, one.brighter)

    for tracks in stream(tracker, frames(), masks):
        undecided.append(shown.popleft())
        seen = lens.to_original(tracks)
        yield from steps(tidy.step(seen, undecided[-1].picture) if tidy else [seen])
    if tidy:
        yield from steps(tidy.finish())


def lag_for(view: VideoView) -> int:
    """Frames to wait before one is decided; fewer of large pictures, which are held in memory as long."""
    size = 3 * math.prod(view.video.full_size) * (1 if view.motion is None else 2)
    return max(SHORTEST_LAG, min(LAG, MOST_WAITING // size))


class Shown(NamedTuple):
    """A frame that a tracker was shown."""

    frame: Frame
    picture: Picture
    """Of the steady video."""
    foreground: Bool[np.ndarray, "h w"] | None
    brighter: float | None


class Look:
    """Frames for a tracker, and what of each differs from the background."""

    def __init__(self, view: VideoView, lens: Lens) -> None:
        self.lens, self.test = lens, view.found.test if view.found else ForegroundTest()
        self.background: Background | None = None
        if lens.behind is None and view.background is not None:
            x0, y0, x1, y1 = lens.corners
            scale = min(1.0, WIDEST_LOOK / max(y1 - y0, x1 - x0))
            self.size = shrunken_size((y1 - y0, x1 - x0), scale)
            self.background = view.background.shrunken(self.size)
        self.foreground: Bool[np.ndarray, "h w"] | None = None
        self.brighter: float | None = None
        self.brightness: float | None = None

    def __call__(self, picture: Picture) -> Float[Tensor, "C h w"]:
        """The frame as the tracker is to see it."""
        x0, y0, x1, y1 = self.lens.corners
        looked = self.lens.look(picture)
        small, behind = looked.small, self.lens.behind
        empty = looked.empty
        if self.background is not None:
            small, behind = shrink(picture[y0:y1, x0:x1], self.size), self.background
            empty = behind.at(small)
        if behind is not None and empty is not None and behind.light is not None:
            self.foreground = self.test(to_floats(small), to_floats(empty))
            before, self.brightness = self.brightness, behind.light.brightness
            self.brighter = None if before is None else self.brightness - before
        return looked.frame


class Tidy:
    """What a model of a still camera saw, made better frame by frame: no doubles, sharp boxes, ids that last."""

    def __init__(
        self,
        object_size: tuple[float, float],
        lens: Lens,
        found: Survey | None = None,
        lag: int = LAG,
        fps: float = 0.0,
    ) -> None:
        """`object_size`: typical height and width, pixels of the video; `found`: what was measured in the video, for
        universal weights; `lag`: frames before one is decided; `fps`: frames a second."""
        assert lens.background is not None
        self.object_size, self.lens, self.found = object_size, lens, found
        self.perspective = lens.perspective if found is None else found.perspective
        self.background = Background(lens.background.epochs)
        self.sharpen = None
        if lens.scale < 1:  # else the model saw all there is; what is small and faint would not stand out (docs/log.md)
            still, corner = lens.background.still, lens.corners[:2]
            self.sharpen = (
                Sharpener(still, object_size, corner, lens.contrast)
                if found is None
                else Sharpener(still, object_size, corner, 1.0, found.test)
            )
        likely, any_direction = (0.0, False) if found is None else (LIKELY, found.any_direction)
        self.identities = Identities(object_size, lens.corners, lag, likely, any_direction, fps)

    def step(self, tracks: Tracks, picture: Picture) -> list[Tracks]:
        """Take what was seen in the next frame; returns the frames that are decided by now."""
        seen = self.without_doubles(tracks)
        if self.sharpen:
            x0, y0, x1, y1 = self.lens.corners
            behind = self.background.at(picture[y0:y1, x0:x1])
            seen = self.without_doubles(self.sharpen(seen, picture, behind))
        return self.identities.step(self.believable(seen))

    def finish(self) -> list[Tracks]:
        """The frames that are left when the video has ended."""
        return self.identities.finish()

    def without_doubles(self, tracks: Tracks) -> Tracks:
        return without_doubles(tracks, self.usual(tracks))

    def believable(self, tracks: Tracks) -> Tracks:
        """Those that are large enough to be objects, and present enough for their shape."""
        if self.found is None:
            return tracks
        usual = self.usual(tracks)
        large = (tracks.box[:, 2:] - tracks.box[:, :2]).prod(1) >= LEAST_AREA * usual.prod(1)
        certainty = min(1.0, self.found.confidence / CERTAIN)
        return tracks.select(large & believable(tracks, usual, self.found.any_direction, certainty))

    def usual(self, tracks: Tracks) -> Float[np.ndarray, "N 2"]:
        """Width and height of a typical object at the place of each."""
        return usual_sizes(tracks, self.object_size, self.perspective, self.lens)


def usual_sizes(
    tracks: Tracks, object_size: tuple[float, float], perspective: Perspective, lens: Lens
) -> Float[np.ndarray, "N 2"]:
    """Width and height of a typical object at the place of each."""
    _, top, _, bottom = lens.corners
    row = tracks.box[:, 1::2].mean(1) - top
    sizes: np.ndarray = sizes_at(row, bottom - top, perspective)[:, None] * np.array(object_size[::-1])
    return sizes


def tidy_for(tracker: Streaming, view: VideoView, lens: Lens) -> Tidy | None:
    """Where the tracker needs it: a model of a camera that stands still."""
    if not (isinstance(tracker, SCALOR) and tracker.config.still):
        return None
    size = object_size_of(tracker, view)
    if size is None:
        return None
    found = view.found if is_universal(scene_of(tracker)) else None
    return Tidy(size, lens, found, lag_for(view), view.steady.fps / view.video.selection.stride)


def stream(tracker: Streaming, frames: Iterator[Tensor], masks: bool) -> Iterator[Tracks]:
    if not masks:
        return tracker.stream(frames)
    if not isinstance(tracker, Tracker):
        raise InputError(f"masks is true and the tracker a {type(tracker).__name__}, which has none: leave them out.")
    return tracker.stream(frames, masks=True)
