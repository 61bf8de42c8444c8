"""Classical trackers, which learn nothing: what a practitioner would try first.

>>> tracks = ClassicalTracker(object_size=(9, 9), detect="colour").track(frames)

`detecting` finds objects frame by frame, `linking` follows them. `colour` needs objects of one flat colour each, as
clean synthetic scenes have; `foreground` takes whatever is bright (or differs from a given background), so objects
that touch are one; `motion` (`moving`) needs a camera that stands still and copes with shadows, posts and crossings.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from scalor.classical.detecting import DETECTORS, Detector, Picture
from scalor.classical.moving import MotionDetector
from scalor.config import SceneConfig, require
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation import TrackingCounts, TrackingReport, count_tracks
from scalor.evaluation.report import TEST_SEED
from scalor.model.frames import check_frame, check_frames
from scalor.still.background import Background
from scalor.still.foreground import ORDINARY, ForegroundTest
from scalor.tracking.linking import PATIENCE, Followed, Habits, Linker
from scalor.tracks import Tracks, join_tracks

PREFIX = "classical-"
"""Before the name of a detector: the name of a system, where weights have theirs."""
HABITS = {
    "colour": Habits(PATIENCE, reported=0),
    "foreground": Habits(PATIENCE, reported=1),
    "motion": Habits(patience=20, reported=2, proof=4, size_rate=0.4),
}
"""By what scored best on training clips; of motion, where walkers hide behind posts, on a real video (`moving`)."""
PREDICTED_PRESENCE = 0.75
"""Of an object that was predicted and not seen."""
BATCH = 32


@dataclass(frozen=True)
class ClassicalTracker:
    """Finds objects of about one size and follows them; used like a `SCALOR`."""

    object_size: tuple[float, float]
    """Typical height and width of an object, pixels."""
    detect: str = "colour"
    """colour, foreground or motion."""
    background: Float[np.ndarray, "3 H W"] | None = None
    """What the scene looks like without objects, for colour and foreground (none given: black)."""
    tolerance: float = 0.02
    """`colour`: how far the colours of neighbouring pixels of one object are apart at most; raise it for compressed
    video."""
    scene: Background | None = None
    """`motion`: the scene of the whole video and its light (none given: the median of the frames before)."""
    test: ForegroundTest = ORDINARY
    """`motion`: what stands out from the scene."""

    def __post_init__(self) -> None:
        require(self.detect in DETECTORS, "detect", self.detect, f"choose from {', '.join(DETECTORS)}")
        sides = len(self.object_size) == 2 and all(0 < side < math.inf for side in self.object_size)
        require(sides, "object_size", self.object_size, "give a height and a width, positive and finite")
        require(0 < self.tolerance < 1, "tolerance", self.tolerance, "it must lie between 0 and 1")
        if self.background is not None:
            require(self.detect != "motion", "detect", self.detect, "it finds its own background, so give none")
            one_frame(self.background, None)

    def track(self, frames: object) -> Tracks:
        """Every object of every frame ([T, 3, H, W] or [B, T, 3, H, W] in [0, 1]), with its identity."""
        videos = check_frames(frames, cell=(1, 1))
        return join_tracks([seen for clip, video in enumerate(videos) for seen in self._follow(video, clip)])

    def stream(self, frames: Iterable[object]) -> Iterator[Tracks]:
        """Track frame by frame ([3, H, W] each): one `Tracks` a frame, memory that does not grow."""
        return self._follow(frames, clip=0)

    def _follow(self, frames: Iterable[object], clip: int) -> Iterator[Tracks]:
        detector = Detector(self.detect, self.object_size, self.tolerance)
        moving = MotionDetector(self.object_size, self.scene, self.test)
        linker = None
        size = None if self.background is None else (self.background.shape[1], self.background.shape[2])
        for t, frame in enumerate(frames):
            picture = one_frame(frame, size)
            size = (picture.shape[1], picture.shape[2])
            linker = linker or Linker(self.object_size, size, HABITS[self.detect])
            if self.detect == "motion":
                found = moving(picture, linker.expected())
            else:
                found = detector(picture, self.background)
            linker.step(found)
            yield as_tracks(linker.reported(), clip, t, size)


def named(system: str, object_size: tuple[float, float]) -> ClassicalTracker:
    """The tracker that `classical-colour`, `classical-foreground` or `classical-motion` stands for."""
    known = [PREFIX + way for way in DETECTORS]
    require(system in known, "system", system, f"choose from {', '.join(known)}")
    return ClassicalTracker(object_size, system.removeprefix(PREFIX))


def evaluate(tracker: ClassicalTracker, scene: SceneConfig, clips: int) -> TrackingReport:
    """Metrics on the first `clips` clips of the test scenes: the clips that models are tested on."""
    scenes, counts = Scenes(scene, TEST_SEED, "test"), TrackingCounts()
    for first in tqdm(range(0, clips, BATCH), file=sys.stderr, unit="batch", leave=False):
        clip = scenes.clips(first, min(BATCH, clips - first))
        counts += count_tracks(tracker.track(clip.colours), clip.truth, scene.size)
    return counts.report()


def one_frame(frame: object, size: tuple[int, int] | None) -> Picture:
    """A frame from outside, checked; all frames of a video have one size."""
    picture: np.ndarray = check_frame(frame, cell=(1, 1))[0].cpu().numpy()
    if size is not None and picture.shape[1:] != size:
        raise InputError(
            f"frame has shape {list(picture.shape)}: the background or the frames before are {size[0]}x{size[1]}; "
            "all must have one size."
        )
    return picture


def as_tracks(followed: Followed, clip: int, frame: int, size: tuple[int, int]) -> Tracks:
    rows = len(followed.id)
    return Tracks(
        clip=np.full(rows, clip),
        frame=np.full(rows, frame),
        id=followed.id,
        box=followed.box,
        presence=np.where(followed.missed > 0, PREDICTED_PRESENCE, 1.0),
        discovered=followed.new,
        size=size,
    )
