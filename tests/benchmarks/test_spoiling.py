"""Sabotaged videos show things where their truth says, at the size and in the orientation that they claim."""

from pathlib import Path

import av
import numpy as np
import pytest

from benchmarks import sabotages
from benchmarks.sabotages import SABOTAGES
from benchmarks.spoiling import COVERED, Part, Views, adapt, affine, spoil, transform_boxes, write_film, write_truth
from scalor.errors import InputError
from scalor.evaluation.score import BoxRows, read_boxes
from scalor.video import open_video

from .walking_boxes import FRAMES, HEIGHT, PART, WIDTH, pictures, truth

SIZES = {
    "pan": (32, 42),
    "shake-smooth": (32, 48),
    "shake-jerky": (32, 48),
    "half-size": (24, 32),
    "double-size": (96, 128),
    "4k": (240, 320),
}
LENGTHS = {"frozen": 13, "dropped": 10, "half-rate": 6, "quarter-rate": 3}


def lit_pixels(rows: BoxRows, size: tuple[int, int]) -> np.ndarray:
    """Where the boxes are, a pixel counting when its middle is inside."""
    lit = np.zeros(size, bool)
    y, x = np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5
    for x0, y0, x1, y1 in rows.box:
        lit |= np.outer((y >= y0) & (y < y1), (x >= x0) & (x < x1))
    return lit


@pytest.mark.parametrize("name", SABOTAGES)
def test_things_are_where_the_adapted_truth_says(name: str, tmp_path: Path) -> None:
    sabotage = SABOTAGES[name]
    spoilt = spoil(sabotage, pictures(), truth(), PART)
    write_film(tmp_path / "film.mp4", spoilt.pictures, 10 / sabotage.slower, sabotage.crf, sabotage.phone)
    video = open_video(tmp_path / "film.mp4")
    shown = [frame.picture.mean(2) for frame in video]
    assert video.full_size == SIZES.get(name, (HEIGHT, WIDTH))
    assert video.fps == pytest.approx(10 / sabotage.slower)
    assert len(shown) == LENGTHS.get(name, FRAMES)
    assert set(spoilt.truth.frame) == set(range(1, len(shown) + 1))
    agree = []
    for number, picture in enumerate(shown, 1):
        expected = lit_pixels(spoilt.truth.within(number, number), video.full_size)
        seen = picture > (picture.min() + picture.max()) / 2
        agree.append((seen & expected).sum() / (seen | expected).sum())
    # Two pixels aside would give .7 or less; edges are soft after blur and compression.
    assert np.mean(agree) > (0.75 if name in ("blurred", "compressed", "noise", "half-size") else 0.85), agree


def test_a_phone_film_lies_on_its_side_in_the_file_and_is_shown_upright(tmp_path: Path) -> None:
    frames = pictures()
    frames[0][:10, :20] = (250, 20, 20)
    write_film(tmp_path / "phone.mp4", frames, 10, phone=True)
    with av.open(str(tmp_path / "phone.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.height, stream.width) == (WIDTH, HEIGHT)
        assert stream.codec_context.name == "h264"
    first = next(iter(open_video(tmp_path / "phone.mp4"))).picture
    assert np.abs(first.astype(int) - frames[0]).mean() < 8
    red = first[:, :, 0].astype(int) - first[:, :, 1] > 100
    assert red[2:8, 2:18].all()
    assert not red[12:].any()


def test_missing_frames_renumber_the_truth_and_keep_its_ids() -> None:
    spoilt = spoil(SABOTAGES["quarter-rate"], pictures(), truth(), PART)
    assert spoilt.scored == (2, 3)  # original frames 5 and 9; frame 1 comes before the scored ones
    whole = truth()
    for new, old in ((1, 1), (2, 5), (3, 9)):
        np.testing.assert_array_equal(spoilt.truth.within(new, new).id, whole.within(old, old).id)
        np.testing.assert_array_equal(spoilt.truth.within(new, new).box, whole.within(old, old).box)


def test_a_frozen_film_stands_still_for_most_of_its_time() -> None:
    shown = np.stack(list(spoil(SABOTAGES["frozen"], pictures(), truth(), PART).pictures))
    still = (shown[1:] == shown[:-1]).all((1, 2, 3)).mean()
    assert still == pytest.approx(sabotages.STILL, abs=0.1)


def test_what_leaves_the_view_is_dropped_and_what_is_cut_in_half_is_ignored() -> None:
    box = np.array([[0, 0, 10, 10], [20, 0, 30, 10], [16, 0, 26, 10], [13, 0, 23, 10]], float)
    rows = BoxRows(np.ones(4, int), np.arange(4), box, np.ones(4))
    left = adapt(rows, np.array([1]), Views(affine(1), (48, 20)))
    assert left.id.tolist() == [0, 2, 3]
    assert left.confidence.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(left.box[:, 2], [10, 20, 20])


def test_boxes_go_where_their_corners_go_under_scales_mirrors_and_quarter_turns() -> None:
    random = np.random.default_rng(0)
    low = random.uniform(0, 50, (20, 2))
    boxes = np.concatenate([low, low + random.uniform(1, 20, (20, 2))], 1)
    for matrix in ([[2, 0, 3], [0, 0.5, -1]], [[-1, 0, 64], [0, 1, 0]], [[0, -1, 48], [1, 0, 0]]):
        moved = transform_boxes(boxes, np.tile(np.array(matrix, float), (20, 1, 1)))
        corners = np.stack([boxes[:, [i, j]] for i in (0, 2) for j in (1, 3)], 1) @ np.array(matrix)[:, :2].T
        corners = corners + np.array(matrix)[:, 2]
        np.testing.assert_allclose(moved, np.concatenate([corners.min(1), corners.max(1)], 1), atol=1e-9)


def test_a_resting_walker_keeps_its_id_and_place_and_another_walks_on() -> None:
    spoilt = spoil(SABOTAGES["resting"], pictures(), truth(), PART)
    rest_from = 4  # a quarter of the film has gone by
    original = truth().within(rest_from, rest_from)
    for frame in range(rest_from, FRAMES + 1):
        here = spoilt.truth.within(frame, frame)
        for number, box in zip(original.id, original.box, strict=True):
            np.testing.assert_array_equal(here.box[here.id == number], [box])
    walked_on = spoilt.truth.select(~np.isin(spoilt.truth.id, original.id))
    assert len(np.unique(walked_on.id)) == 2
    # Just after the halt they are behind their own copies: 10 of 12 pixels of one, 11 of 12 of the other.
    assert COVERED < 10 / 12
    assert walked_on.within(5, 5).confidence.tolist() == [0, 0]
    assert walked_on.within(FRAMES, FRAMES).confidence.tolist() == [1, 1]


def test_nobody_can_rest_where_nobody_is() -> None:
    part = Part(1, FRAMES, (3, FRAMES))
    with pytest.raises(InputError, match="frame 4"):
        spoil(SABOTAGES["resting"], pictures(), truth().within(6, FRAMES), part)


@pytest.mark.parametrize("name", ["noise", "flicker", "dropped", "shake-smooth", "shake-jerky"])
def test_chance_is_the_seed_alone(name: str) -> None:
    def shown(seed: int) -> np.ndarray:
        return np.stack(list(spoil(SABOTAGES[name], pictures(), truth(), PART, seed).pictures))

    np.testing.assert_array_equal(shown(1), shown(1))
    assert (shown(1) != shown(2)).any()


def test_light_steps_up_in_the_middle_of_the_scored_frames() -> None:
    shown = list(spoil(SABOTAGES["light-step"], pictures(), truth(), PART).pictures)
    corner = [int(picture[0, 0, 0]) for picture in shown]
    assert corner[:7] == [corner[0]] * 7
    assert corner[7:] == [corner[0] + 64] * 5  # frames 8 to 12 of 3 to 12


def test_truth_survives_the_file(tmp_path: Path) -> None:
    write_truth(tmp_path / "gt.txt", truth())
    back = read_boxes(tmp_path / "gt.txt")
    np.testing.assert_array_equal(back.frame, truth().frame)
    np.testing.assert_array_equal(back.id, truth().id)
    np.testing.assert_allclose(back.box, truth().box, atol=1e-3)
