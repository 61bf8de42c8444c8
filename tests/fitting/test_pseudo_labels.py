"""The frames that a model learns from."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scalor.config import Config, SceneConfig
from scalor.data.footage import HIDDEN, NOBODY, SEEN, UNSEEN, Footage, Frames, Labels
from scalor.fitting import pseudo_labels
from scalor.fitting.options import FitOptions
from scalor.fitting.pseudo_labels import Row, columns_of, keep, keep_and_label, labels_of, stretches_of
from scalor.fitting.scratch import choose
from scalor.still.still_background import StillBackground
from scalor.tracking.video_view import VideoView, look_at
from scalor.tracks import Tracks
from scalor.video import Video, open_video
from tests.still.films import walking_boxes


def prepared(
    path: Path, choice: FitOptions, size: tuple[int, int] = (16, 8), frames: int = 60
) -> tuple[VideoView, Config]:
    view = look_at(open_video(walking_boxes(path / "film.npy", size, frames=frames)), choice.object_size)
    assert view.found is not None
    return view, choose(view.found, choice, view.video.size, frames, "footage.npz")


def test_all_frames_are_kept_with_the_spots_where_objects_are(tmp_path: Path) -> None:
    kept = keep(*prepared(tmp_path, FitOptions(object_size=(16, 8), scale=0.5, stride=1, scratch=True)))
    assert kept.frames.shape == (60, 3, 48, 64)
    assert kept.starts.tolist() == [0]
    assert 100 < len(kept.spots) < 200
    assert set(kept.spots[:, 1] // 14) == {0, 1, 2}  # the three rows that objects walk in


def test_no_more_is_kept_of_a_long_video_whether_or_not_its_length_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, config = prepared(tmp_path, FitOptions(object_size=(16, 8), scale=0.5, stride=1, scratch=True), frames=200)
    monkeypatch.setattr(pseudo_labels, "MAX_BYTES", 0)

    def kept() -> Frames:
        return keep(view, config)

    known = kept()
    monkeypatch.setattr(Video, "frames", None)
    assert len(kept().frames) == len(known.frames) == 80
    assert kept().starts.tolist() == known.starts.tolist() == [0, 40]


def test_spots_in_a_perspective_are_large_for_where_they_are(tmp_path: Path) -> None:
    view, config = prepared(tmp_path, FitOptions(object_size=(20, 10), scale=1.0, scratch=True), (10, 10))
    assert view.found is not None
    rows = {row // 28 for row in keep(view, config).spots[:, 1]}
    assert rows == {0, 1, 2}
    near = replace(view, found=replace(view.found, perspective=(0.1, 3.0)))
    assert {row // 28 for row in keep(near, config).spots[:, 1]} == {0, 1}


def test_faint_objects_are_made_stronger(tmp_path: Path) -> None:
    pictures = np.load(walking_boxes(tmp_path / "film.npy", (10, 10)))
    scene = StillBackground.of(open_video(tmp_path / "film.npy")).still
    faint = scene + 0.1 * (pictures.astype(float) - scene)
    np.save(tmp_path / "faint.npy", faint.round().astype(np.uint8))
    view = look_at(open_video(tmp_path / "faint.npy"))
    assert view.found is not None
    config = choose(view.found, FitOptions(scale=1.0, scratch=True), view.video.size, 60, "footage.npz")
    assert 4 < config.scene.contrast <= 10
    kept = keep(view, config)
    apart = np.abs(kept.frames.astype(int) - kept.stills).max(1)
    assert np.percentile(apart, 99.5) > 60


CPU = torch.device("cpu")


def row(frame: int, number: int, x: float = 10.0, hidden: bool = False) -> Row:
    return Row(frame, number, np.array([x, 6.0, x + 8, 18.0]), hidden)


lives = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), min_size=1, max_size=12)


@given(lives, st.integers(1, 10))
def test_no_two_objects_of_a_clip_share_a_column(lives: list[tuple[int, int]], apart: int) -> None:
    rows = [row(t, number) for number, (first, length) in enumerate(lives) for t in range(first, first + length)]
    column = columns_of(rows, apart)
    for one, (first, length) in enumerate(lives):
        for other, (then, _) in enumerate(lives):
            if one != other and column[one] == column[other] and first <= then:
                assert then - (first + length - 1) >= apart


def test_few_columns_serve_many_objects_that_follow_each_other() -> None:
    rows = [row(t, t // 10) for t in range(200)]
    assert len(set(columns_of(rows, 1).values())) == 1


def test_pixels_belong_to_the_nearest_box_where_something_moves() -> None:
    foreground = np.zeros((24, 60), bool)
    foreground[6:18, 8:40] = True
    rows = [[row(0, 4, 10.0), row(0, 5, 20.0), row(0, 6, 30.0, hidden=True)]]
    labels = labels_of(rows, [foreground], apart=8)
    column = columns_of(rows[0], 8)
    assert labels.seen[0, [column[4], column[5], column[6]]].tolist() == [SEEN, SEEN, HIDDEN]
    assert set(labels.owner[0, 6:18, 11:17].ravel().tolist()) == {column[4]}
    assert set(labels.owner[0, 6:18, 21:27].ravel().tolist()) == {column[5]}
    assert set(labels.owner[0, 6:18, 33:40].ravel().tolist()) == {-1}
    assert (labels.owner[0][~foreground] == -1).all()


@pytest.fixture
def config(tmp_path: Path) -> SceneConfig:
    """A thing of 8 x 12 px goes to the right through 12 frames of 24 x 60 px; in the fifth it is hidden."""
    pictures = np.zeros((12, 3, 24, 60), np.uint8)
    rows = []
    for t in range(12):
        rows.append([row(t, 7, 10.0 + 2 * t, hidden=t == 4)])
        pictures[t, :, 6:18, 10 + 2 * t : 18 + 2 * t] = 200
    labels = labels_of(rows, [picture[0] > 0 for picture in pictures], apart=4)
    spots = np.array([[t, 12, 14 + 2 * t] for t in range(12)])
    kept = Frames(pictures, np.zeros((1, 3, 24, 60), np.uint8), np.array([0]), np.array([0]), spots, labels)
    kept.save(tmp_path / "footage.npz")
    return SceneConfig(kind="footage", frame=(24, 24), length=4, footage=str(tmp_path / "footage.npz"))


@pytest.mark.parametrize("zoom", [1.0, 1.4])
def test_the_truth_of_a_clip_lies_where_its_pixels_show_the_object(config: SceneConfig, zoom: float) -> None:
    """Cut out anywhere, mirrored or not, larger or smaller."""
    clip = Footage(replace(config, zoom=zoom), 0, "train", CPU).clips(torch.arange(64), 4)
    truth = clip.truth
    bright = clip.frames[:, :, 0] > 0.4
    boxes = 0
    for b, t in np.ndindex(64, 4):
        there = bool(truth.id[b, t, 0] >= 0)
        assert there == bool(bright[b, t].any())
        if not there:
            continue
        rows, columns = np.nonzero(bright[b, t].numpy())
        shown = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        box = truth.box[b, t, 0].numpy().clip(0, 24)
        np.testing.assert_allclose(shown, box, atol=1.01 * zoom)
        boxes += 1
        if truth.visible[b, t, 0] == UNSEEN:
            assert (truth.owner[b, t] == -1).all()
        else:
            agree = ((truth.owner[b, t] == 0) == bright[b, t]).float().mean()
            assert agree > 0.93
    assert boxes > 100


def test_a_hidden_object_need_not_be_found(config: SceneConfig) -> None:
    truth = Footage(config, 0, "train", CPU).clips(torch.arange(64), 4).truth
    assert bool((truth.visible == UNSEEN).any())
    assert bool((truth.visible > 0.9).any())
    assert bool((truth.visible[truth.id < 0] == 0).all())


def test_labels_come_back_from_their_file_and_stand_beside_others(config: SceneConfig) -> None:
    kept = Frames.load(Path(config.footage))
    assert kept.labels is not None
    narrow = replace(kept, labels=Labels(kept.labels.seen, kept.labels.box, kept.labels.owner).widened(2))
    both = kept.beside(narrow).labels
    assert both is not None
    assert both.seen.shape == (24, 3)
    assert (both.seen[:12, 1:] == NOBODY).all()
    assert np.array_equal(both.owner[12:], kept.labels.owner)
    assert kept.beside(replace(kept, labels=None)).labels is None


class Following:
    """A tracker that is told where the walking boxes are, or that sees nothing."""

    def __init__(self, boxes: list[np.ndarray]) -> None:
        self.boxes = boxes

    def stream(self, frames: Iterable[object]) -> Iterator[Tracks]:
        for t, _ in enumerate(frames):
            box = np.array(self.boxes).reshape(-1, 4)
            zero = np.zeros(len(box), int)
            yield Tracks(zero, zero + t, np.arange(len(box)), box, zero + 0.9, zero == t, (96, 128))


@pytest.mark.parametrize("finds", [True, False])
def test_frames_are_kept_with_labels_where_something_is_found(finds: bool, tmp_path: Path) -> None:
    view = look_at(open_video(walking_boxes(tmp_path / "film.npy", (16, 8), frames=60)))
    assert view.found is not None
    config = choose(
        view.found,
        FitOptions(object_size=(16, 8), scale=0.5, stride=1, scratch=True),
        view.video.size,
        60,
        "footage.npz",
    )
    tracker = Following([np.array([10.0, 20, 18, 36])] if finds else [])
    kept = keep_and_label(view, config, tracker, quiet=True)  # type: ignore[arg-type]
    assert len(kept.frames) == 60
    if not finds:
        assert kept.labels is None
        return
    assert kept.labels is not None
    assert (kept.labels.seen == SEEN).all()
    np.testing.assert_allclose(kept.labels.box[:, 0], np.tile([5, 10, 9, 18], (60, 1)), atol=0.01)


def test_of_a_long_video_stretches_are_labelled_that_are_spread_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pseudo_labels, "LABELLED_STRETCH", 10)
    view = look_at(open_video(walking_boxes(tmp_path / "film.npy", (16, 8), frames=200)))
    assert stretches_of(view, 200) == [view]
    parts = stretches_of(view, 40)
    numbers = [[frame.index for frame in part.video] for part in parts]
    assert [len(part) for part in numbers] == [10] * 4
    assert [part[0] // 50 for part in numbers] == [0, 1, 2, 3]
