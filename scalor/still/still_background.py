"""Background of a still camera, in the lighting of each frame.

>>> background = StillBackground.of(video)
>>> for frame in video:
...     empty = background.at(frame.picture)

Each pixel of the background is the most common value in sampled frames, after their lighting has been equalised. If the
scene changes as a whole (a lamp is switched on), there are several such images, called epochs, and each frame gets the
one that fits. In a plain scene, such as a dish under a microscope, objects that rest for the whole video are removed
too (`scalor.still.resting`). In other scenes, an object that stays for most of the video is part of the background,
because nothing distinguishes the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from scalor.errors import InputError
from scalor.still.epochs import parts_in_one_light
from scalor.still.light import IDENTITY_LIGHT, Light, Points, fit_light, points_of
from scalor.still.median import common_picture
from scalor.still.resting import remove_resting
from scalor.video import Video
from scalor.video.pixels import Picture
from scalor.video.resize import resize, scaled_size

Pictures = UInt8[np.ndarray, "N H W 3"]

MAX_SAMPLED, MIN_SAMPLED = 60, 12
"""Number of frames from which the background is estimated: MAX_SAMPLED, or fewer if images are large, but at least
MIN_SAMPLED."""
MAX_SAMPLE_BYTES = 2**27
"""Largest memory in bytes for the sampled frames, unless it holds fewer than MIN_SAMPLED."""
MAX_SAMPLE_SIDE = 640
"""Largest side in pixels of the reduced sampled frames that are kept for measurements."""
MIN_AGREEING_SHARE = 0.75
"""Share of the pixels that agree with the lighting of an epoch, below which the other epochs are tried."""
MAX_RESIDUAL_RATIO = 0.7
"""Largest ratio of the residual of another epoch to that of the current one for a change of epoch."""


@dataclass(frozen=True)
class FrameLight:
    """The lighting of one frame, for the health report."""

    light: Light
    brightness: float
    """Mean of the background in this lighting, from 0 to 1."""
    epoch: int
    """Index of the background image that fits this frame."""


class StillBackground:
    """The background of a still camera, and a fit of its lighting that follows the frames.

    Create it with `StillBackground.of(video)`, or from existing images of the background: `StillBackground([picture])`.
    """

    def __init__(self, epochs: Sequence[Picture], samples: Sequence[UInt8[np.ndarray, "h w 3"]] = ()) -> None:
        if not epochs:
            raise InputError("epochs is empty: give at least one picture of the scene without objects.")
        self.epochs = tuple(np.ascontiguousarray(picture) for picture in epochs)
        self.samples = tuple(samples)
        """Frames from which the background was estimated, reduced to at most MAX_SAMPLE_SIDE pixels along a side."""
        self.light: FrameLight | None = None
        """Lighting of the last frame that was given to `at`; None before the first."""
        self._points = [points_of(picture) for picture in self.epochs]
        self._index: tuple[int, np.ndarray] | None = None

    @staticmethod
    def of(video: Video) -> "StillBackground":
        """Estimate the background from frames sampled over the whole video.

        >>> background = StillBackground.of(open_video("ants.mp4"))
        """
        height, width = video.size
        count = min(MAX_SAMPLED, max(MIN_SAMPLED, MAX_SAMPLE_BYTES // (3 * height * width)))
        pictures = video.sample(count)
        if len(pictures) < 2:
            raise InputError(f"{video.name} has 1 frame: finding what moves needs at least 2.")
        return StillBackground.from_pictures(pictures)

    @staticmethod
    def from_pictures(pictures: Pictures) -> "StillBackground":
        """Estimate the background from frames sampled over the whole video, in order.

        The frames are modified in place.
        """
        height, width = pictures.shape[1:3]
        size = scaled_size((height, width), min(1.0, MAX_SAMPLE_SIDE / max(height, width)))
        samples = [resize(picture, size).copy() for picture in pictures]
        return StillBackground(
            [remove_resting(common_picture(part), part) for part in parts_in_one_light(pictures)], samples
        )

    @property
    def still(self) -> Picture:
        """The background of the longest epoch, in the lighting of most frames."""
        return self.epochs[0]

    def resized(self, size: tuple[int, int]) -> "StillBackground":
        """Return the background for images of another height and width, with a lighting state of its own."""
        return StillBackground([resize(picture, size) for picture in self.epochs])

    def sampled_pairs(self) -> list[tuple[Picture, Picture]]:
        """Return the reduced sampled frames, each with the background in its lighting."""
        if not self.samples:
            return []
        height, width = self.samples[0].shape[:2]
        small = self.resized((height, width))
        return [(picture, small.at(picture)) for picture in self.samples]

    def at(self, picture: Picture) -> Picture:
        """Return the background in the lighting of this image.

        Call it once for each frame, in order.
        """
        epoch, light = self._fit(points_of(picture))
        brightness = light.brightness(self._points[epoch])
        self.light = FrameLight(light, brightness, epoch)
        return self._in_light(epoch, light)

    def _fit(self, seen: Points) -> tuple[int, Light]:
        """Return the epoch that explains an image, and the lighting in it."""
        epoch, before = (self.light.epoch, self.light.light) if self.light else (0, IDENTITY_LIGHT)
        fits = {epoch: fit_light(seen, self._points[epoch], before)}
        if fits[epoch].agreeing < MIN_AGREEING_SHARE or self.light is None:
            others = {n: fit_light(seen, scene) for n, scene in enumerate(self._points) if n != epoch}
            best = min(others, key=lambda n: others[n].remainder, default=epoch)
            if best != epoch and others[best].remainder < MAX_RESIDUAL_RATIO * fits[epoch].remainder:
                return best, others[best]
        return epoch, fits[epoch]

    def _in_light(self, epoch: int, light: Light) -> Picture:
        if light.is_usual():
            return self.epochs[epoch]
        if self._index is None or self._index[0] != epoch:
            self._index = epoch, self.epochs[epoch] + np.array([0, 256, 512], np.intp)
        # Mode "wrap" only avoids a range check of every pixel.
        lit: np.ndarray = np.take(light.table().ravel(), self._index[1], mode="wrap")
        return lit
