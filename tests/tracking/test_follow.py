"""A video goes by once, frame by frame, and every frame meets what was seen in it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scalor.boxes import FLAT
from scalor.classical.tracker import ClassicalTracker
from scalor.config import ModelConfig
from scalor.data.observation import Observation
from scalor.errors import InputError
from scalor.model.scalor import SCALOR
from scalor.nn.interface import TrackerMemory
from scalor.outputs import ResultFolder
from scalor.pipeline import track_video
from scalor.still.still_background import StillBackground
from scalor.still.survey import Survey
from scalor.tracking.follow import follow
from scalor.tracking.post_processing import PostProcessor
from scalor.tracking.video_view import Lens, look_at
from scalor.tracks import Tracks, join_tracks
from scalor.video import Selection, open_video
from tests.video.clips import movie


class Brightest:
    """Sees one object: a square of 2 px around the brightest pixel."""

    def __init__(self, ahead: int = 0) -> None:
        self.ahead = ahead
        self.shown = 0

    def stream(self, frames: Iterable[object]) -> Iterator[Tracks]:
        waiting = []
        for frame in frames:
            assert isinstance(frame, Observation)
            self.shown += 1
            y, x = np.unravel_index(int(frame.image.sum(0).argmax()), frame.size)
            box = np.array([[x, y, x + 2, y + 2]], float)
            one = np.zeros(1, int)
            waiting.append(Tracks(one, one + self.shown - 1, one + 1, box, one + 1.0, one == 1, frame.size))
            if len(waiting) > self.ahead:
                yield waiting.pop(0)
        yield from waiting


class Doubling(SCALOR):
    """A model that sees the one object twice."""

    def stream(
        self, frames: Iterable[object], masks: bool = False, memory: TrackerMemory | None = None
    ) -> Iterator[Tracks]:
        for seen in Brightest().stream(frames):
            yield join_tracks([seen, replace(seen, id=seen.id + 1)])


@pytest.fixture
def spots(tmp_path: Path) -> Path:
    """A dim picture with a bright pixel that moves to the right."""
    frames = np.full((9, 20, 30, 3), 40, np.uint8)
    for t, frame in enumerate(frames):
        frame[10, 5 + 2 * t] = 255
    np.save(tmp_path / "spots.npy", frames)
    return tmp_path / "spots.npy"


@pytest.mark.parametrize("ahead", [0, 3])
def test_every_frame_meets_what_was_seen_in_it(ahead: int, spots: Path) -> None:
    video = open_video(spots, Selection(region=(3, 8, 27, 14), stride=2))
    for frame, tracks, *_ in follow(Brightest(ahead), look_at(video)):
        assert frame.picture.shape == (20, 30, 3)
        assert tracks.size == (20, 30)
        x, y = tracks.box[0, :2].astype(int)
        assert (frame.picture[y, x] == 255).all()
        assert x == 5 + 2 * frame.index


def test_no_frame_is_shown_before_it_is_needed(spots: Path) -> None:
    tracker = Brightest()
    for number, _ in enumerate(follow(tracker, look_at(open_video(spots))), start=1):
        assert tracker.shown == number


@pytest.mark.parametrize(("still", "raw", "objects"), [(True, False, 1), (True, True, 2), (False, False, 2)])
def test_ids_are_made_to_last_where_the_camera_stands_still(still: bool, raw: bool, objects: int, spots: Path) -> None:
    model = Doubling(ModelConfig(frame=(32, 32), grid=(4, 4), object_size=(2, 2), background=False, still=still))
    seen = [step.tracks for step in follow(model, look_at(open_video(spots)), raw=raw)]
    assert [tracks.id.tolist() for tracks in seen] == [list(range(1, objects + 1))] * 9


@pytest.mark.parametrize(("scale", "objects"), [(0.5, 0), (1.0, 1), (2.0, 1)])
def test_what_does_not_stand_out_is_dropped_only_where_the_model_saw_less_than_there_is(
    scale: float, objects: int
) -> None:
    scene = np.full((40, 60, 3), 120, np.uint8)
    tidy = PostProcessor((6.0, 6.0), Lens((40, 60), None, scale=scale, background=StillBackground([scene])))
    one = np.zeros(1, int)
    seen = Tracks(one, one, one, np.array([[20.0, 10.0, 26.0, 16.0]]), np.ones(1), one > 0, (40, 60))
    told = [one for _ in range(6) for one in tidy.step(seen, scene)] + tidy.finish()
    assert [len(one) for one in told] == [objects] * 6


@pytest.mark.parametrize(
    ("height", "width", "presence", "kept"),
    [(20, 10, 0.5, True), (5, 4, 0.99, False), (6, 5, 0.99, True), (5, 40, 0.9, False), (5, 40, 0.99, True)],
    ids=["usual", "a piece", "small", "another shape", "another shape, sure"],
)
def test_small_pieces_and_unsure_boxes_of_another_shape_are_dropped(
    height: float, width: float, presence: float, kept: bool
) -> None:
    """The usual box is 20 px high and 10 px wide, and the survey is sure of that."""
    scene = np.full((80, 80, 3), 120, np.uint8)
    sizes = Survey((20.0, 10.0), speed=1.0, objects=3.0, strength=0.3, perspective=FLAT, confidence=0.4)
    tidy = PostProcessor((20.0, 10.0), Lens((80, 80), None, background=StillBackground([scene])), sizes)
    one = np.zeros(1, int)
    seen = Tracks(one, one, one, np.array([[20.0, 20, 20 + width, 20 + height]]), one + presence, one > 0, (80, 80))
    assert len(tidy.believable(seen)) == kept


def test_results_are_written_as_the_video_goes_by(spots: Path, tmp_path: Path) -> None:
    video = open_video(spots)
    with ResultFolder(tmp_path / "out", video.full_size, video.fps) as results:
        track_video(Brightest(), look_at(video), results, quiet=True)
    assert (results.summary.frames, results.summary.objects, results.summary.rows) == (9, 1, 9)


def test_masks_of_a_tracker_that_has_none(tmp_path: Path) -> None:
    np.save(tmp_path / "movie.npy", movie())
    with pytest.raises(InputError, match="masks is true and the tracker a ClassicalTracker, which has none"):
        list(follow(ClassicalTracker((9, 9)), look_at(open_video(tmp_path / "movie.npy")), masks=True))


def test_a_run_is_judged_without_labels(tmp_path: Path) -> None:
    """A square that moves and is followed exactly is fine; one that nobody follows is not."""
    frames = np.full((150, 60, 90, 3), 90, np.uint8)
    for t, frame in enumerate(frames):
        frame[20:32, t % 78 : t % 78 + 12] = 230
    np.save(tmp_path / "square.npy", frames)
    view = look_at(open_video(tmp_path / "square.npy"))

    class Square(Brightest):
        def stream(self, frames: Iterable[object]) -> Iterator[Tracks]:
            for t, _ in enumerate(frames):
                one, box = np.zeros(1, int), np.array([[t % 78, 20, t % 78 + 12, 32]], float)
                yield Tracks(one, one + t, one + 1 + t // 78, box, one + 1.0, one == t, (60, 90))

    class Nothing(Brightest):
        def stream(self, frames: Iterable[object]) -> Iterator[Tracks]:
            for seen in super().stream(frames):
                yield seen.select(np.zeros(1, bool))

    verdicts = []
    for number, tracker in enumerate((Square(), Nothing())):
        with ResultFolder(tmp_path / f"out{number}", (60, 90), 10) as results:
            health = track_video(tracker, view, results, quiet=True)
        assert health is not None
        verdicts.append(health.verdict)
    assert verdicts == ["good", "not to be trusted"]
