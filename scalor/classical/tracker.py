"""Classical trackers without learning: the methods that a practitioner would try first.

>>> tracks = ClassicalTracker(object_size=(9, 9), detect="colour").track(frames)

`detectors` and `motion` detect objects frame by frame, and `scalor.tracking.kalman` associates the detections over
time. There are three methods of detection:

- `colour` needs objects of one flat colour each, as in clean synthetic scenes.
- `foreground` detects all that is bright, or that differs from a given background. Objects that touch become one
  detection.
- `motion` needs a still camera. It handles shadows, posts and objects that cross each other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from scalor.boxes import check_object_size
from scalor.classical.detectors import DETECTORS, Detector, Picture
from scalor.classical.motion import MotionDetector
from scalor.data.observation import check_frames, check_image
from scalor.errors import InputError, require
from scalor.still.foreground import DEFAULT_TEST, ForegroundTest
from scalor.still.still_background import StillBackground
from scalor.tracking.kalman import PATIENCE, Linker, LinkerSettings, TrackStates
from scalor.tracks import Tracks, join_tracks

PREFIX = "classical-"
"""Prefix of a method in the names of systems, which are used in place of the names of weights."""
LINKER_SETTINGS = {
    "colour": LinkerSettings(PATIENCE, reported=0),
    "foreground": LinkerSettings(PATIENCE, reported=1),
    "motion": LinkerSettings(patience=20, reported=2, proof=4, size_rate=0.4),
}
"""Settings of the linker for each method, chosen by the best scores on training clips. Those of `motion` were chosen on
a real video, in which walkers are occluded by posts (see `motion`)."""
PREDICTED_PRESENCE = 0.75
"""Presence reported for an object that was predicted and not detected."""


@dataclass(frozen=True)
class ClassicalTracker:
    """Tracker for objects of about one size, with the interface of a `SCALOR`."""

    object_size: tuple[float, float]
    """Typical height and width of an object, in pixels."""
    detect: str = "colour"
    """Method of detection: colour, foreground or motion."""
    background: Float[np.ndarray, "3 H W"] | None = None
    """`colour` and `foreground`: picture of the background, with pixels in [0, 1]; None for black."""
    tolerance: float = 0.02
    """`colour`: difference of colour below which neighbouring pixels are connected. Raise it for compressed video."""
    scene: StillBackground | None = None
    """`motion`: background of the whole video; None for the median of earlier frames."""
    test: ForegroundTest = DEFAULT_TEST
    """`motion`: test that tells foreground from background."""

    def __post_init__(self) -> None:
        require(self.detect in DETECTORS, "detect", self.detect, f"choose from {', '.join(DETECTORS)}")
        check_object_size(self.object_size)
        require(0 < self.tolerance < 1, "tolerance", self.tolerance, "it must lie between 0 and 1")
        if self.background is not None:
            require(self.detect != "motion", "detect", self.detect, "it finds its own background, so give none")
            one_frame(self.background, None)

    def track(self, frames: object) -> Tracks:
        """Track a video or a batch of videos.

        Parameters
        ----------
        frames : array or tensor
            Pixels in [0, 1], of shape [T, 3, H, W] or [B, T, 3, H, W].

        Returns
        -------
        Tracks
            Every object of every frame, with its id.
        """
        videos = check_frames(frames, cell=(1, 1))
        return join_tracks([seen for clip, video in enumerate(videos) for seen in self._follow(video, clip)])

    def stream(self, frames: Iterable[object]) -> Iterator[Tracks]:
        """Track frames of shape [3, H, W] one by one, in constant memory, and yield one `Tracks` per frame."""
        return self._follow(frames, clip=0)

    def _follow(self, frames: Iterable[object], clip: int) -> Iterator[Tracks]:
        detector = Detector(self.detect, self.object_size, self.tolerance)
        moving = MotionDetector(self.object_size, self.scene, self.test)
        linker = None
        size = None if self.background is None else (self.background.shape[1], self.background.shape[2])
        for t, frame in enumerate(frames):
            picture = one_frame(frame, size)
            size = (picture.shape[1], picture.shape[2])
            linker = linker or Linker(self.object_size, size, LINKER_SETTINGS[self.detect])
            if self.detect == "motion":
                found = moving(picture, linker.expected())
            else:
                found = detector(picture, self.background)
            linker.step(found)
            yield as_tracks(linker.reported(), clip, t, size)


def named(system: str, object_size: tuple[float, float]) -> ClassicalTracker:
    """Return the tracker of this name: `classical-colour`, `classical-foreground` or `classical-motion`."""
    known = [PREFIX + way for way in DETECTORS]
    require(system in known, "system", system, f"choose from {', '.join(known)}")
    return ClassicalTracker(object_size, system.removeprefix(PREFIX))


def one_frame(frame: object, size: tuple[int, int] | None) -> Picture:
    """Check a frame from the caller and return it as an array. `size` is the height and width of the earlier frames."""
    picture: np.ndarray = check_image(frame, cell=(1, 1)).image[0].cpu().numpy()
    if size is not None and picture.shape[1:] != size:
        raise InputError(
            f"frame has shape {list(picture.shape)}: the background or the frames before are {size[0]}x{size[1]}; "
            "all must have one size."
        )
    return picture


def as_tracks(followed: TrackStates, clip: int, frame: int, size: tuple[int, int]) -> Tracks:
    """Return the reported tracks of one frame as `Tracks`."""
    rows = len(followed.id)
    return Tracks(
        clip=np.full(rows, clip),
        frame=np.full(rows, frame),
        id=followed.id + 1,
        box=followed.box,
        confidence=np.where(followed.missed > 0, PREDICTED_PRESENCE, 1.0),
        discovered=followed.new,
        size=size,
    )
