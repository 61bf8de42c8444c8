"""Videos and stills of the result folder: `overlay.mp4`, `labels.mp4` and the report's pictures, frame by frame."""

from collections import deque
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import UInt8

from scalor.errors import without_extra
from scalor.outputs.tables import TrackedFrame
from scalor.tracks import Tracks, join_tracks
from scalor.visual.colors import colors_of
from scalor.visual.overlay import draw_tracks, scale_for, tinted
from scalor.visual.strips import RED

TRAIL_SECONDS = 1.0
"""Length of trails in seconds, within the limits below."""
SHORTEST_TRAIL, LONGEST_TRAIL = 8, 60
"""Smallest and largest length of trails in frames.

Trails must show motion at low frame rates, and must not clutter the picture at high ones.
"""
STILL_WIDTH = 640
"""Largest width of a still picture in the report, in pixels."""


class OverlayFilm:
    """Frames with boxes, ids and fading trails; only tracks of the frames that trails reach back to are kept."""

    def __init__(self, fps: float) -> None:
        self.trails = min(max(round(TRAIL_SECONDS * fps), SHORTEST_TRAIL), LONGEST_TRAIL)
        self._recent: deque[Tracks] = deque(maxlen=self.trails + 1)
        self._count = 0

    def save(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"recent": list(self._recent), "count": self._count}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that `save` returned."""
        self._recent.extend(state["recent"])
        self._count = state["count"]

    def draw(self, frame: TrackedFrame) -> UInt8[np.ndarray, "h w 3"]:
        """Draw the next frame with its tracks."""
        self.pass_over(frame.tracks)
        picture = frame.picture if frame.tracks.masks is None else _with_masks(frame)
        return draw_tracks(picture, join_tracks(list(self._recent)), self._count - 1, trails=self.trails)

    def pass_over(self, tracks: Tracks) -> None:
        """Take the tracks of the next frame into the trails, without drawing it."""
        # Trails are counted in tracked frames; with a stride, the original has more frames in between.
        now = np.full(len(tracks), self._count)
        self._recent.append(replace(tracks, frame=now, masks=None))
        self._count += 1


def mark_predicted(picture: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "h w 3"]:
    """Return a frame with a red border, which says that it was predicted and not observed."""
    marked = picture.copy()
    width = max(2, max(picture.shape) // 128)
    for side in (marked[:width], marked[-width:], marked[:, :width], marked[:, -width:]):
        side[:] = RED
    return marked


def label_frame(frame: TrackedFrame) -> UInt8[np.ndarray, "h w 3"]:
    """Return every object's pixels in its colour on black, enlarged as `overlay` enlarges its pictures."""
    picture: np.ndarray = _palette(frame)[frame.owner]
    scale = scale_for(frame.tracks.size)
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


class EvenSample:
    """A few pictures spread over a video of unknown length.

    When too many are held, every second one is dropped and the spacing is doubled.
    """

    def __init__(self, wanted: int = 6) -> None:
        self.wanted = wanted
        self._kept: list[tuple[float, bytes]] = []
        self._every = 1
        self._count = 0

    def save(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        return {"kept": self._kept, "every": self._every, "count": self._count}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that `save` returned."""
        self._kept, self._every, self._count = state["kept"], state["every"], state["count"]

    def add(self, picture: UInt8[np.ndarray, "h w 3"], seconds: float) -> None:
        """Count the next picture of the video, and keep it if the spacing selects it."""
        if self._count % self._every == 0:
            if len(self._kept) == 2 * self.wanted:
                self._kept = self._kept[::2]
                self._every *= 2
            # 2 * `wanted` is even, so the number of this frame is a multiple of the new spacing as well.
            self._kept.append((seconds, jpeg(picture, STILL_WIDTH)))
        self._count += 1

    def chosen(self) -> list[tuple[float, bytes]]:
        """Return the time in seconds and the JPEG file of `wanted` pictures, or of all if there are fewer."""
        places = np.linspace(0, len(self._kept) - 1, min(self.wanted, len(self._kept)))
        return [self._kept[round(place)] for place in places]


def jpeg(picture: UInt8[np.ndarray, "h w 3"], widest: int) -> bytes:
    """Encode the picture as a JPEG file of at most `widest` pixels in width."""
    try:
        from PIL import Image
    except ImportError as error:
        raise without_extra("writing a picture", "pillow") from error
    image = Image.fromarray(picture)
    if image.width > widest:
        height = max(1, round(image.height * widest / image.width))
        image = image.resize((widest, height), Image.Resampling.LANCZOS)
    file = BytesIO()
    image.save(file, format="JPEG", quality=85)
    return file.getvalue()


def _palette(frame: TrackedFrame) -> UInt8[np.ndarray, "rows 3"]:
    """Return the colour of each value of `frame.owner`: black, then one per row."""
    return np.concatenate([np.zeros((1, 3), np.uint8), colors_of(frame.tracks.id)])


def _with_masks(frame: TrackedFrame) -> UInt8[np.ndarray, "H W 3"]:
    """Return the picture with each object's pixels blended with its colour."""
    picture = frame.picture.copy()
    shown = frame.owner > 0
    picture[shown] = tinted(picture[shown], _palette(frame)[frame.owner[shown]])
    return picture
