"""Track a video frame by frame, in one pass.

Memory does not grow with the length of the video.

>>> for step in follow(tracker, look_at(open_video("ants.mp4"))):
...     step.frame.picture, step.tracks
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float

from scalor.boxes import Perspective, sizes_at
from scalor.config import SceneConfig
from scalor.data.observation import Observation
from scalor.errors import InputError
from scalor.health import HealthMonitor
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Tracker
from scalor.still.foreground import ForegroundTest, to_floats
from scalor.still.still_background import StillBackground
from scalor.still.survey import Survey
from scalor.tracking.identity import LAG, MIN_MEAN_PRESENCE, Identities, believable, merge_duplicates
from scalor.tracking.sharpening import Sharpener
from scalor.tracking.video_view import Lens, VideoView, is_universal, lens_for
from scalor.tracks import Tracks
from scalor.video.pixels import Picture
from scalor.video.resize import resize, scaled_size
from scalor.video.sources import Frame

LEAST_AREA = 0.12
"""Smallest box area that is kept, as a share of a typical object's box area at the same place. Smaller boxes show a
piece of something that flutters."""
CERTAIN = 0.4
"""Survey confidence from which on the typical size counts as fully known."""
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
    told = getattr(tracker, "object_size", None)  # classical trackers: given by the user, or measured
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
    lens = lens_of(tracker, view)
    tidy = None if raw else post_processor_for(tracker, view, lens)
    look = FrameMaker(view, lens)
    shown: deque[Shown] = deque()
    undecided: deque[Shown] = deque()

    def frames() -> Iterator[Observation]:
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
    """Return how many frames to wait before a frame is decided.

    Waiting frames are held in memory, so the lag is shorter for large images.
    """
    size = 3 * math.prod(view.video.full_size) * (1 if view.motion is None else 2)
    return max(SHORTEST_LAG, min(LAG, MOST_WAITING // size))


class Shown(NamedTuple):
    """A frame that was passed to the tracker."""

    frame: Frame
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


class PostProcessor:
    """Post-processing for models of a still camera: duplicate removal, sharper boxes, long-term ids.

    It works frame by frame.
    """

    def __init__(
        self,
        object_size: tuple[float, float],
        lens: Lens,
        found: Survey | None = None,
        lag: int = LAG,
        fps: float = 0.0,
    ) -> None:
        """Set up the post-processing of one video.

        Parameters
        ----------
        object_size
            Typical height and width in pixels of the video.
        lens
            The lens through which the model sees the video.
        found
            The survey of the video, for universal weights and those refined from them; None for other weights.
        lag
            Frames to wait before a frame is decided.
        fps
            Frames per second.
        """
        assert lens.background is not None
        self.object_size, self.lens, self.found = object_size, lens, found
        self.perspective = lens.perspective if found is None else found.perspective
        self.background = StillBackground(lens.background.epochs)
        self.sharpen = None
        # At full resolution there is nothing to sharpen, and small, faint objects would be dropped (docs/log.md).
        if lens.scale < 1:
            still, corner = lens.background.still, lens.corners[:2]
            self.sharpen = (
                Sharpener(still, object_size, corner, lens.contrast)
                if found is None
                else Sharpener(still, object_size, corner, 1.0, found.test)
            )
        likely, any_direction = (0.0, False) if found is None else (MIN_MEAN_PRESENCE, found.any_direction)
        self.identities = Identities(object_size, lens.corners, lag, likely, any_direction, fps)

    def step(self, tracks: Tracks, picture: Picture) -> list[Tracks]:
        """Add the tracks of the next frame and return the frames that are decided by now."""
        seen = self.merge_duplicates(tracks)
        if self.sharpen:
            x0, y0, x1, y1 = self.lens.corners
            behind = self.background.at(picture[y0:y1, x0:x1])
            seen = self.merge_duplicates(self.sharpen(seen, picture, behind))
        return self.identities.step(self.believable(seen))

    def finish(self) -> list[Tracks]:
        """Return the remaining frames, after the end of the video."""
        return self.identities.finish()

    def merge_duplicates(self, tracks: Tracks) -> Tracks:
        """Merge the tracks that show the same object."""
        return merge_duplicates(tracks, self.usual(tracks))

    def believable(self, tracks: Tracks) -> Tracks:
        """Return the tracks that are large enough to be objects and present enough for their shape.

        Without a survey, all tracks are returned.
        """
        if self.found is None:
            return tracks
        usual = self.usual(tracks)
        large = (tracks.box[:, 2:] - tracks.box[:, :2]).prod(1) >= LEAST_AREA * usual.prod(1)
        certainty = min(1.0, self.found.confidence / CERTAIN)
        return tracks.select(large & believable(tracks, usual, self.found.any_direction, certainty))

    def usual(self, tracks: Tracks) -> Float[np.ndarray, "N 2"]:
        """Return the typical width and height of an object at the place of each track."""
        return usual_sizes(tracks, self.object_size, self.perspective, self.lens)


def usual_sizes(
    tracks: Tracks, object_size: tuple[float, float], perspective: Perspective, lens: Lens
) -> Float[np.ndarray, "N 2"]:
    """Return the typical width and height of an object at the place of each track, in pixels of the video."""
    _, top, _, bottom = lens.corners
    row = tracks.box[:, 1::2].mean(1) - top
    sizes: np.ndarray = sizes_at(row, bottom - top, perspective)[:, None] * np.array(object_size[::-1])
    return sizes


def post_processor_for(tracker: Streaming, view: VideoView, lens: Lens) -> PostProcessor | None:
    """Return the post-processing for a model of a still camera; None for other trackers, which need none."""
    if not (isinstance(tracker, SCALOR) and tracker.config.still):
        return None
    size = object_size_of(tracker, view)
    if size is None:
        return None
    found = view.found if is_universal(scene_of(tracker)) else None
    return PostProcessor(size, lens, found, lag_for(view), view.steady.fps / view.video.selection.stride)


def stream(tracker: Streaming, frames: Iterator[Observation], masks: bool) -> Iterator[Tracks]:
    """Run a tracker on frames, with visible masks if requested."""
    if not masks:
        return tracker.stream(frames)
    if not isinstance(tracker, Tracker):
        raise InputError(f"masks is true and the tracker a {type(tracker).__name__}, which has none: leave them out.")
    return tracker.stream(frames, masks=True)
