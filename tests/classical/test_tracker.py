"""Classical trackers as a user meets them: frames in, tracks out, one sentence for what makes no sense."""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch

from scalor import InputError
from scalor.classical.detectors import DETECTORS, trackpy_tracks
from scalor.classical.tracker import LINKER_SETTINGS, ClassicalTracker, named
from scalor.config import SceneConfig
from scalor.data.scenes import Scenes
from scalor.evaluation import evaluate_tracks
from scalor.evaluation.report import evaluate_tracker
from scalor.tracks import Tracks, join_tracks

RED, GREEN = (1.0, 0.1, 0.1), (0.1, 1.0, 0.1)
SIDE = 8
BLIND = ("colour", "foreground")
"""Ways that need no frames to learn the background from."""


def film(paths: Iterable[tuple[Iterable[tuple[int, int]], tuple[float, float, float]]], length: int) -> np.ndarray:
    """Squares over black, each by its left and top in every frame and its colour; later ones in front."""
    frames = np.zeros((length, 3, 40, 64), dtype=np.float32)
    for path, colour in paths:
        for frame, (x, y) in zip(frames, path, strict=True):
            frame[:, y : y + SIDE, x : x + SIDE] = np.array(colour)[:, None, None]
    return frames


def tracker(way: str = "colour", **changes: Any) -> ClassicalTracker:
    return ClassicalTracker((SIDE, SIDE), way, **changes)


def same(one: Tracks, other: Tracks) -> None:
    for name in ("clip", "frame", "id", "box", "presence", "discovered"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("way", BLIND)
def test_a_square_on_its_way_is_one_object_with_its_own_boxes(way: str) -> None:
    path = [(4 + 2 * t, 10 + t) for t in range(10)]
    tracks = tracker(way).track(film([(path, RED)], 10))
    assert tracks.size == (40, 64)
    assert tracks.frame.tolist() == list(range(10))
    assert tracks.id.tolist() == [1] * 10
    assert tracks.confidence.tolist() == [1.0] * 10
    assert tracks.discovered.tolist() == [True] + [False] * 9
    truth = [(x, y, x + SIDE, y + SIDE) for x, y in path]
    np.testing.assert_allclose(tracks.box, truth, atol=0.2)
    np.testing.assert_allclose(tracks.box[[0, -1]], [truth[0], truth[-1]], atol=0.02)


def test_squares_that_cross_keep_their_numbers() -> None:
    right = [(4 + 4 * t, 12) for t in range(12)]
    left = [(50 - 4 * t, 16) for t in range(12)]
    tracks = tracker().track(film([(right, RED), (left, GREEN)], 12))
    for path in (right, left):
        near = [np.abs(tracks.centre - (x + SIDE / 2, y + SIDE / 2)).max(1) < 3 for x, y in path]
        numbers = [tracks.id[(tracks.frame == t) & near[t]].tolist() for t in (0, 1, 2, 9, 10, 11)]
        assert len({tuple(number) for number in numbers}) == 1
        assert len(numbers[0]) == 1


def test_squares_of_one_colour_keep_their_numbers_by_inertia() -> None:
    """While they are one blob, one of them is predicted."""
    right = [(4 + 4 * t, 12) for t in range(12)]
    left = [(50 - 4 * t, 20) for t in range(12)]  # they touch and do not overlap
    tracks = tracker("foreground").track(film([(right, RED), (left, RED)], 12))
    for path in (right, left):
        ends = []
        for t in (0, 11):
            middle = np.array(path[t]) + SIDE / 2
            near = (tracks.frame == t) & (np.abs(tracks.centre - middle).max(1) < 3)
            ends.append(tracks.id[near].tolist())
        assert ends[0] == ends[1]
        assert len(ends[0]) == 1


def test_an_object_that_blinks_is_still_reported_where_that_is_the_rule() -> None:
    frames = film([([(4 + 2 * t, 10) for t in range(6)], RED)], 6)
    frames[4] = 0
    for way in BLIND:
        tracks = tracker(way).track(frames)
        assert np.unique(tracks.id).tolist() == [1]
        blink = tracks.frame == 4
        assert blink.sum() == LINKER_SETTINGS[way].reported
        assert (tracks.confidence[blink] < 1).all()


@pytest.mark.parametrize("way", DETECTORS)
def test_black_frames_have_no_tracks(way: str) -> None:
    tracks = tracker(way).track(np.zeros((4, 3, 16, 16), dtype=np.float32))
    assert len(tracks) == 0
    assert tracks.box.shape == (0, 4)


def test_motion_is_found_before_a_background_that_stands_still() -> None:
    rng = np.random.default_rng(0)
    frames = np.tile(rng.uniform(0.2, 0.8, (3, 40, 64)).astype(np.float32), (12, 1, 1, 1))
    for t, frame in enumerate(frames):
        frame[:, 10:18, 4 * t : 4 * t + 8] = np.array([1.0, 0.0, 1.0])[:, None, None]
    late = tracker("motion").track(frames)
    late = late.select(late.frame >= 8)
    assert len(np.unique(late.id)) == 1
    np.testing.assert_allclose(late.box, [(4 * t, 10, 4 * t + 8, 18) for t in range(8, 12)], atol=1.5)


def test_an_object_is_discovered_once_where_it_is_first_told_of() -> None:
    """One is there from the start; two come in later, when a track is told of only after some proof."""
    there, late, later = (
        [(left - max(0, t - entry), y) for t in range(50)]
        for left, entry, y in ((56, 0, 4), (64, 20, 16), (64, 30, 28))
    )
    tracks = tracker("motion").track(film([(there, RED), (late, GREEN), (later, GREEN)], 50))
    told = list(zip(tracks.id.tolist(), tracks.frame.tolist(), strict=True))
    first = {number: min(frame for other, frame in told if other == number) for number, _ in told}
    assert sum(frame > 20 for frame in first.values()) == 2
    assert [row for row, new in zip(told, tracks.discovered, strict=True) if new] == list(first.items())


def test_a_given_background_is_taken_away() -> None:
    background = np.full((3, 40, 64), 0.5, dtype=np.float32)
    frames = np.tile(background, (5, 1, 1, 1))
    for t, frame in enumerate(frames):
        frame[:, 10:18, 4 + t : 12 + t] = np.array(RED)[:, None, None]
    tracks = tracker("foreground", background=background).track(frames)
    assert tracks.id.tolist() == [1] * 5
    np.testing.assert_allclose(tracks.box[0], (4, 10, 12, 18))


@pytest.mark.parametrize("way", DETECTORS)
def test_a_stream_gives_what_tracking_gives(way: str) -> None:
    frames = Scenes(SceneConfig(frame=(32, 32), objects=(4, 6), size=7.0), 0, "train").clips(0, 2, 5).frames
    tracker = ClassicalTracker((7, 7), way)
    batch = tracker.track(frames)
    for clip in range(2):
        streamed = join_tracks(list(tracker.stream(iter(frames[clip]))))
        same(streamed, tracker.track(frames[clip].numpy()))
        np.testing.assert_array_equal(streamed.box, batch.of_clip(clip).box)


def test_clean_scenes_are_tracked_well_and_measured_like_any_model() -> None:
    scene = SceneConfig(frame=(64, 64), objects=(8, 11), size=12.0)
    colour, foreground = (evaluate_tracker(ClassicalTracker((12, 12), way), scene, 4) for way in BLIND)
    assert colour.clips == 4
    assert colour.strict.mota > 0.95
    assert foreground.strict.mota < colour.strict.mota


def test_the_names_of_systems() -> None:
    assert [named(f"classical-{way}", (9, 7)).detect for way in DETECTORS] == list(DETECTORS)
    with pytest.raises(InputError) as error:
        named("classical-color", (9, 9))
    assert str(error.value) == (
        "system is 'classical-color': choose from classical-colour, classical-foreground, classical-motion."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"detect": "luck"}, "detect is 'luck': choose from colour, foreground, motion."),
        ({"object_size": (9, 0)}, "object_size is (9, 0): give a height and a width, positive and finite."),
        ({"object_size": (9,)}, "object_size is (9,): give a height and a width, positive and finite."),
        ({"tolerance": 0.0}, "tolerance is 0.0: it must lie between 0 and 1."),
        (
            {"detect": "motion", "background": np.zeros((3, 8, 8))},
            "detect is 'motion': it finds its own background, so give none.",
        ),
        ({"background": np.zeros((8, 8))}, "frame has shape [8, 8]: give one frame, [3, H, W]."),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        ClassicalTracker(**{"object_size": (9, 9), **changes})
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (np.zeros((1, 3, 8, 8), dtype=np.float32), "it needs at least 2 frames"),
        (np.zeros((4, 8, 8, 3), dtype=np.float32), "colour before height"),
        (np.full((4, 3, 8, 8), 7.0, dtype=np.float32), "pixels must lie in [0, 1]"),
        ("clip.mp4", "frames is a str"),
    ],
)
def test_frames_that_make_no_sense_are_refused(frames: object, words: str) -> None:
    with pytest.raises(InputError) as error:
        tracker().track(frames)
    assert words in str(error.value)


def test_all_frames_of_a_stream_have_one_size() -> None:
    frames = [np.zeros((3, 8, 8), dtype=np.float32), np.zeros((3, 8, 9), dtype=np.float32)]
    with pytest.raises(InputError, match=r"\[3, 8, 9\]: the background or the frames before are 8x8"):
        list(tracker().stream(frames))
    with pytest.raises(InputError, match="frame is a list: give a numpy array"):
        list(tracker().stream([[1.0]]))


# trackpy ----------------------------------------------------------------------------------------------


def test_without_trackpy_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trackpy", None)
    with pytest.raises(InputError) as error:
        trackpy_tracks(np.zeros((2, 3, 16, 16), dtype=np.float32), (7, 7))
    assert str(error.value) == "trackpy is not installed: install it with `pip install 'scalor[trackpy]'`."


@pytest.mark.filterwarnings("ignore:.*inplace keyword:DeprecationWarning")
def test_trackpy_gives_tracks_that_can_be_measured() -> None:
    scene = SceneConfig(frame=(64, 64), objects=(2, 4), size=14.0)
    clip = Scenes(scene, 1, "train").clips(0, 4)
    tracks = trackpy_tracks(clip.frames, (14, 14))
    assert evaluate_tracks(tracks, clip.truth, 14.0).paper.mota > 0.8
    np.testing.assert_allclose(tracks.box[:, 2:] - tracks.box[:, :2], 14)
    assert tracks.discovered[tracks.frame == 0].all()
    assert len(trackpy_tracks(torch.zeros(2, 3, 32, 32), (7, 7))) == 0
