"""What a video says of itself: made with objects of a known size, speed and number."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from scalor.boxes import FLAT
from scalor.errors import InputError
from scalor.still.foreground import MAX_THRESHOLD
from scalor.still.still_background import StillBackground
from scalor.still.survey import Survey, rank_correlation, survey
from scalor.video import Selection, Video, open_video

from . import films
from .films import walking_boxes


def look(video: Video) -> Survey:
    return survey(video, StillBackground.of(video))


@pytest.mark.parametrize(
    ("size", "speed"), [((16, 8), 0.2), ((10, 10), 0.5), ((8, 20), 0.5), ((16, 8), 1), ((8, 20), 1), ((10, 10), 3)]
)
def test_size_speed_and_number_are_found(size: tuple[int, int], speed: float, tmp_path: Path) -> None:
    video = open_video(walking_boxes(tmp_path / "film.npy", size, speed, frames=max(60, round(60 / speed))))
    found = look(video)
    assert found.object_size == pytest.approx(size, abs=2.5)
    assert found.speed == pytest.approx(speed, rel=0.3)  # boxes are drawn at whole pixels
    assert found.objects == pytest.approx(2.4, abs=0.7)  # now and then one is out of view


def test_the_speed_is_that_between_frames_of_the_file_with_a_stride_too(tmp_path: Path) -> None:
    path = walking_boxes(tmp_path / "film.npy", (16, 8), 1)
    assert look(open_video(path, Selection(stride=3))).speed == pytest.approx(1, rel=0.3)


def test_objects_that_touch_are_counted_one_by_one(tmp_path: Path) -> None:
    def draw(picture: np.ndarray, t: int) -> None:
        for top, left, people in ((4, 2, 1), (28, 60, 1), (52, 90, 1), (74, 30, 3)):
            x = (left + 2 * t) % 100
            picture[top : top + 16, x : x + 8 * people] = 250, 30, 20

    found = look(films.film(tmp_path / "film.npy", films.street(), draw))
    assert found.object_size == pytest.approx((16, 8), abs=2.5)
    assert found.objects == pytest.approx(6, abs=0.5)


@pytest.mark.parametrize("slope", [0.0, 0.15])
def test_a_perspective_is_found_where_there_is_one(slope: float, tmp_path: Path) -> None:
    """Boxes whose height and width grow with the row that they walk along; some are pieces, some pairs."""
    random = np.random.default_rng(0)
    pictures = np.repeat(random.integers(60, 140, (1, 160, 200, 3)), 60, 0)
    for number, middle in enumerate((24, 50, 76, 102, 132)):
        tall = 18 + slope * (middle - 80)
        for t in range(60):
            left = round((41 * number + 3 * t) % 190)
            wide = round(tall / 2) * (2 if (t + number) % 9 == 0 else 1)
            top, bottom = round(middle - tall / 2), round(middle + (0 if (t + number) % 7 == 0 else tall / 2))
            pictures[t, top:bottom, left : left + wide] = (250, 30, 20)
    np.save(tmp_path / "film.npy", pictures.astype(np.uint8))
    video = open_video(tmp_path / "film.npy")
    found = look(video)
    if slope == 0:
        assert found.perspective == FLAT
    else:
        # In sizes of the object in the middle of the rows that things were seen at.
        far, near = found.perspective
        usual = 18 + slope * (76 - 80)
        assert far == pytest.approx((18 - 80 * slope) / usual, abs=0.25)
        assert near == pytest.approx((18 + 80 * slope) / usual, abs=0.3)
        assert found.object_size == pytest.approx((usual, usual / 2), abs=3.5)


def test_faint_objects_are_found(tmp_path: Path) -> None:
    pictures = np.load(walking_boxes(tmp_path / "film.npy", (10, 10)))
    scene = StillBackground.of(open_video(tmp_path / "film.npy")).still
    faint = scene + 0.1 * (pictures.astype(float) - scene)
    np.save(tmp_path / "faint.npy", faint.round().astype(np.uint8))
    video = open_video(tmp_path / "faint.npy")
    found = look(video)
    assert found.object_size == pytest.approx((10, 10), abs=2.5)
    assert found.strength < 0.1
    assert found.test.least < MAX_THRESHOLD


def test_faint_dots_of_a_few_pixels_are_counted(tmp_path: Path) -> None:
    """Dots some five pixels wide, at most 18 of 255 darker than a noisy scene, that tremble and drift."""
    random = np.random.default_rng(0)
    row, column = np.mgrid[:96, :128]
    pictures = 130 + random.normal(0, 4, (60, 96, 128, 3))
    start, drift = random.uniform(0, 128, (30, 2)), random.normal(0, 0.7, (30, 2))
    for t in range(60):
        x, y = ((start + t * drift) % (128, 96)).T[:, :, None, None]
        pictures[t] -= (18 * np.exp(-((column - x) ** 2 + (row - y) ** 2) / 6)).sum(0)[..., None]
    np.save(tmp_path / "film.npy", pictures.round().astype(np.uint8))
    video = open_video(tmp_path / "film.npy")
    found = look(video)
    assert 15 <= found.objects <= 30  # some touch, some are cut by the edge
    assert found.object_size == pytest.approx((5, 5), abs=2)


@pytest.mark.parametrize(
    ("size", "scale"), [((12, 12), 1), ((30, 12), 1), ((10, 36), 1), ((48, 40), 1), ((30, 12), 3), ((10, 36), 3)]
)
def test_the_size_of_a_moving_thing_is_found_whatever_its_scale_and_shape(
    size: tuple[int, int], scale: int, tmp_path: Path
) -> None:
    frame, (height, width) = (96 * scale, 128 * scale), (size[0] * scale, size[1] * scale)
    scene = np.kron(films.street(), np.ones((scale, scale, 1)))

    def draw(picture: np.ndarray, t: int) -> None:
        picture[films.ellipse(((10 + 2.4 * t) * scale, 50 * scale), height, width, frame)] = (235, 30, 60)

    found = look(films.film(tmp_path / "a.npy", scene, draw))
    assert found.object_size == pytest.approx((height, width), rel=0.15, abs=1.5)
    assert found.body == pytest.approx((max(height, width), min(height, width)), rel=0.15, abs=1.5)
    assert found.speed == pytest.approx(2.4 * scale, rel=0.2)
    assert found.confidence > 0.7
    assert found.objects == pytest.approx(1, abs=0.2)


def test_pieces_and_pairs_of_things_do_not_change_their_size(tmp_path: Path) -> None:
    """Now and then a belt of the scene's own colour parts a walker in two, or two walk as one."""
    scene = films.street()

    def draw(picture: np.ndarray, t: int) -> None:
        for number in range(2):
            x, y = (8 + 57 * number + 2.3 * t) % 120, 24 + 44 * number
            picture[films.ellipse((x, y), 30, 12)] = (235, 30, 60)
            if (t + number) % 4 == 0:
                picture[y - 2 : y + 2] = scene[y - 2 : y + 2]
            elif (t + number) % 4 == 1:
                picture[films.ellipse((x + 9, y), 30, 12)] = (235, 30, 60)

    assert look(films.film(tmp_path / "a.npy", scene, draw)).object_size == pytest.approx((30, 12), abs=3)


def test_long_things_that_lie_every_way_have_a_typical_side(tmp_path: Path) -> None:
    row, column = np.mgrid[:96, :128] + 0.5

    def draw(picture: np.ndarray, t: int) -> None:
        for number in range(3):
            angle, x, y = 0.35 * t + 2 * number, 22 + 42 * number, 20 + (11 * t + 37 * number) % 56
            along = (column - x) * np.cos(angle) + (row - y) * np.sin(angle)
            across = (row - y) * np.cos(angle) - (column - x) * np.sin(angle)
            picture[(along / 14) ** 2 + (across / 3) ** 2 < 1] = 60

    found = look(films.film(tmp_path / "a.npy", films.plain(150), draw))
    assert found.any_direction
    assert not found.test.colourful
    assert found.body == pytest.approx((28, 6), abs=2)
    assert found.object_size[0] == found.object_size[1] == pytest.approx(28 / 2**0.5, rel=0.15)
    assert found.objects == pytest.approx(3, abs=0.5)


def test_the_light_changes_nothing_that_is_found(tmp_path: Path) -> None:
    def draw(picture: np.ndarray, t: int) -> None:
        picture[films.ellipse((8 + 2.4 * t, 40), 24, 12)] = (235, 30, 60)

    steady = look(films.film(tmp_path / "a.npy", films.street(), draw))
    stepped = look(films.film(tmp_path / "b.npy", films.street(), draw, lambda t: 1 if t < 24 else 0.65))
    assert stepped.object_size == pytest.approx(steady.object_size, abs=1.5)
    assert stepped.objects == pytest.approx(steady.objects, abs=0.2)
    assert stepped.moving == pytest.approx(steady.moving, rel=0.2)


def test_how_much_moves_and_how_noisy_it_is_are_told(tmp_path: Path) -> None:
    def draw(picture: np.ndarray, t: int) -> None:
        picture[films.ellipse((8 + 2.4 * t, 40), 24, 12)] = (235, 30, 60)

    found = look(films.film(tmp_path / "a.npy", films.street(), draw, noise=4))
    assert found.moving == pytest.approx(np.pi * 24 * 12 / 4 / (96 * 128), rel=0.25)
    assert found.noise == pytest.approx(4 / 255, rel=0.4)
    assert found.strength == pytest.approx(0.6, abs=0.2)


def test_things_of_all_sizes_leave_less_confidence(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    sides = np.exp(random.uniform(np.log(6), np.log(60), (48, 2, 2)))
    places = random.uniform((35, 30), (95, 66), (48, 2))

    def alike(picture: np.ndarray, t: int) -> None:
        picture[films.ellipse(tuple(places[t]), 20, 14)] = (235, 30, 60)

    def unlike(picture: np.ndarray, t: int) -> None:
        picture[films.ellipse(tuple(places[t]), *sides[t, 0])] = (235, 30, 60)

    one = look(films.film(tmp_path / "a.npy", films.street(), alike))
    other = look(films.film(tmp_path / "b.npy", films.street(), unlike))
    assert other.confidence < 0.5 < one.confidence


def test_a_given_size_counts(tmp_path: Path) -> None:
    video = open_video(walking_boxes(tmp_path / "film.npy"))
    found = survey(video, StillBackground.of(video), (20.0, 9.0))
    assert found.object_size == (20.0, 9.0)
    assert found.speed == pytest.approx(2, rel=0.3)


def test_a_still_video_is_told(tmp_path: Path) -> None:
    video = open_video(walking_boxes(tmp_path / "film.npy", objects=0))
    with pytest.raises(InputError, match="shows nothing that moves"):
        look(video)


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_correlation_is_spearmans_also_with_equal_values(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows = chance.uniform(0, 100, 60)
    heights = np.round(rows / 20 + chance.normal(0, 1, 60))
    assert rank_correlation(rows, heights) == pytest.approx(spearmanr(rows, heights).statistic, abs=1e-12)
