"""Two models are compared without labels.

The comparison is by what they explain, what they see on nothing, whose ids last, and whether objects have the usual
shape.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from scalor import checkpoint
from scalor.fitting.options import FitOptions
from scalor.fitting.refine import LabelFreeScore, label_free_score, settings
from scalor.tracking.video_view import VideoView, look_at
from scalor.tracks import Tracks
from scalor.video import open_video

HEIGHT, WIDTH = 16, 12
"""Of a body."""
FRAMES = 80

Boxes = Callable[[np.ndarray], list[np.ndarray]]


def test_a_perfect_model_has_a_score_of_one_and_a_blind_one_of_zero() -> None:
    assert LabelFreeScore(1.0, 1.0, 1.0, 1.0).total == pytest.approx(1)
    assert LabelFreeScore(0.0, 1.0, 1.0, 1.0).total == 0
    assert LabelFreeScore(0.0, 0.0, 1.0, 1.0).total == 0


@pytest.mark.parametrize("part", ["explained", "on_something", "lasting", "usual"])
def test_every_part_counts(part: str) -> None:
    good = {"explained": 0.9, "on_something": 0.9, "lasting": 0.9, "usual": 0.9}
    assert LabelFreeScore(**{**good, part: 0.5}).total < LabelFreeScore(**good).total


def test_seeing_everything_everywhere_does_not_pay() -> None:
    """Boxes all over the picture explain all that moves, and most of them show nothing."""
    assert LabelFreeScore(1.0, 0.1, 0.5, 1.0).total < LabelFreeScore(0.6, 0.9, 0.5, 1.0).total


@pytest.fixture
def view(tmp_path: Path) -> VideoView:
    """A body that walks to and fro."""
    pictures = np.full((FRAMES, 60, 90, 3), 90, np.uint8)
    for t, picture in enumerate(pictures):
        x0, y0, x1, y1 = body(t).astype(int)
        picture[y0:y1, x0:x1] = 220
    np.save(tmp_path / "body.npy", pictures)
    return look_at(open_video(tmp_path / "body.npy"))


def body(t: int) -> np.ndarray:
    x = 8 + abs((2 * t) % 120 - 60)
    return np.array([x, 20, x + WIDTH, 20 + HEIGHT], float)


def test_objects_have_one_size_in_training_frames_whatever_the_resolution(view: VideoView, tmp_path: Path) -> None:
    large = np.load(tmp_path / "body.npy").repeat(2, 1).repeat(2, 2)
    np.save(tmp_path / "large.npy", large)
    model = checkpoint.read(checkpoint.find("any")).config.model
    options = FitOptions(steps=20)
    scene, finer = (
        settings(model, one, 1, "footage.npz", options).scene
        for one in (view, look_at(open_video(tmp_path / "large.npy")))
    )
    assert scene.object_size == pytest.approx((HEIGHT, WIDTH), abs=1)
    assert finer.object_size == pytest.approx((2 * HEIGHT, 2 * WIDTH), abs=2)
    for one in (scene, finer):
        height, width = one.object_size
        assert one.size == pytest.approx((height * one.scale * width * one.scale * one.stretch) ** 0.5, rel=0.02)
    assert finer.size == pytest.approx(scene.size, rel=0.05)


class Seeing:
    """A tracker that gives the boxes that are made of the true one."""

    def __init__(self, boxes: Boxes, lasting: bool = True) -> None:
        self.boxes, self.lasting = boxes, lasting

    def stream(self, frames: Iterable[object]) -> Iterator[Tracks]:
        for t, _ in enumerate(frames):
            box = np.array(self.boxes(body(t))).reshape(-1, 4)
            zero = np.zeros(len(box), int)
            number = np.arange(len(box)) + (0 if self.lasting else len(box) * t)
            yield Tracks(zero, zero + t, number, box, zero + 0.9, zero == t, (60, 90))


def halves(box: np.ndarray) -> list[np.ndarray]:
    x0, y0, x1, y1 = box
    return [np.array([x0, y0, x1, y0 + 5]), np.array([x0, y0 + 5, x1, y0 + 10]), np.array([x0, y0 + 10, x1, y1])]


def test_whoever_follows_the_body_wins(view: VideoView) -> None:
    good = label_free_score(view, Seeing(lambda box: [box]))  # type: ignore[arg-type]
    assert good.explained > 0.9
    assert (good.on_something, good.lasting, good.usual) == (1, 1, 1)
    worse = {
        "explained": Seeing(lambda box: []),
        "on_something": Seeing(lambda box: [box, np.array([70.0, 44, 82, 60])]),
        "lasting": Seeing(lambda box: [box], lasting=False),
        "usual": Seeing(halves),
    }
    for part, tracker in worse.items():
        score = label_free_score(view, tracker)  # type: ignore[arg-type]
        assert getattr(score, part) < 0.7, part
        assert score.total < good.total, part
