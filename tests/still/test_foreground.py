"""What stands out from a still scene: things do, noise and shadows do not."""

import numpy as np
import pytest
from scipy import ndimage

from scalor.boxes import FLAT
from scalor.still.blobs import find_blobs, join_blobs, large_enough
from scalor.still.foreground import (
    DEFAULT_TEST,
    MAX_THRESHOLD,
    ForegroundTest,
    close,
    coarseness,
    least_for,
    noise_of,
    thinned,
    to_floats,
)

from . import films
from .films import ellipse


def street(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.45, 0.55, (3, 60, 80)).astype(np.float32)


@pytest.mark.parametrize(("light", "found"), [(0.7, False), (0.3, True), (1.3, True)])
def test_a_shadow_does_not_stand_out(light: float, found: bool) -> None:
    frame = street()
    frame[:, 20:40, 30:38] *= light
    assert DEFAULT_TEST(frame, street())[20:40, 30:38].any() == found


def test_colour_stands_out_at_any_light() -> None:
    frame = street()
    frame[:, 20:40, 30:38] *= np.array([1.0, 0.7, 0.5])[:, None, None]
    assert DEFAULT_TEST(frame, street())[20:40, 30:38].mean() > 0.9


def test_noise_does_not_stand_out() -> None:
    rng = np.random.default_rng(3)
    frame = street() + rng.normal(0, 0.05, (3, 60, 80))
    assert DEFAULT_TEST(frame, street()).mean() < 0.01


def test_specks_go_and_gaps_close() -> None:
    inside = np.zeros((60, 80), bool)
    inside[20:40, 30:38] = True
    whole = close(inside, (20.0, 8.0))
    inside[30, 30:38] = False
    inside[5, 5] = True
    assert np.array_equal(close(inside, (20.0, 8.0)), whole)


@pytest.mark.parametrize(("size", "squares"), [((9.0, 9.0), 1), ((80.0, 28.0), 2), ((100.0, 60.0), 5)])
def test_large_objects_are_seen_in_coarse_pictures(size: tuple[float, float], squares: int) -> None:
    assert coarseness(size) == squares


GREY, COLOURFUL = ForegroundTest(colourful=False), ForegroundTest(colourful=True)
THING = films.ellipse((64, 48), 30, 16)


def scene(kind: str) -> np.ndarray:
    """Colours of 0 to 1, channels first, of a textured, a plain or a colourful scene."""
    if kind == "plain":
        return to_floats(films.plain(150).astype(np.uint8))
    street = films.street() + 40
    if kind == "textured":
        street = np.repeat(
            street.mean(-1, keepdims=True) + np.random.default_rng(5).uniform(-25, 25, (96, 128, 1)), 3, 2
        )
    return to_floats(street.clip(0, 255).astype(np.uint8))


def shadowed(picture: np.ndarray, light: float) -> np.ndarray:
    """With a soft shadow that leaves so much of the light in its middle."""
    shade = ndimage.gaussian_filter(THING.astype(np.float32), 3)
    darkened: np.ndarray = picture * (1 - (1 - light) * shade)
    return darkened


def noisy(picture: np.ndarray, deviation: float = 0.006) -> np.ndarray:
    return (picture + np.random.default_rng(6).normal(0, deviation, picture.shape)).astype(np.float32)


@pytest.mark.parametrize(("kind", "test"), [("colourful", COLOURFUL), ("textured", GREY)])
@pytest.mark.parametrize("light", [0.55, 0.7])
def test_a_soft_shadow_is_told_by_colour_and_by_texture(kind: str, test: ForegroundTest, light: float) -> None:
    empty = scene(kind)
    assert test(noisy(shadowed(empty, light)), empty)[THING].mean() < 0.15


@pytest.mark.parametrize("kind", ["textured", "plain"])
@pytest.mark.parametrize("light", [0.55, 0.75])
def test_a_dark_thing_stands_out_from_a_grey_scene(kind: str, light: float) -> None:
    empty, picture = scene(kind), scene(kind)
    picture[:, THING] = light * empty[:, THING].mean()
    assert GREY(noisy(picture), empty)[THING].mean() > 0.6  # some of the texture is as dark as the thing
    assert GREY(noisy(picture), empty)[~ndimage.binary_dilation(THING, iterations=3)].mean() < 0.001


@pytest.mark.parametrize("gain", [0.7, 1.2])
@pytest.mark.parametrize("test", [GREY, COLOURFUL])
def test_the_same_gain_on_picture_and_scene_leaves_the_foreground_as_it_is(test: ForegroundTest, gain: float) -> None:
    empty = scene("colourful")
    picture = noisy(empty)
    picture[:, THING] = np.array([0.9, 0.1, 0.2])[:, None]
    np.testing.assert_array_equal(test(picture, empty)[THING], test(gain * picture, gain * empty)[THING])


def pairs(kind: str, colour: tuple[int, int, int]) -> list[tuple[np.ndarray, np.ndarray]]:
    empty = (255 * scene(kind)).round().astype(np.uint8).transpose(1, 2, 0)
    seen = []
    for x in range(20, 110, 10):
        picture = empty.copy()
        picture[films.ellipse((x, 48), 30, 16)] = colour
        seen.append((picture, empty))
    return seen


def test_colour_tells_only_where_things_have_colours() -> None:
    assert ForegroundTest.of(pairs("colourful", (220, 40, 60))).colourful
    assert not ForegroundTest.of(pairs("plain", (90, 90, 90))).colourful
    assert ForegroundTest.of([]) == DEFAULT_TEST


def test_dark_things_of_the_one_tint_of_a_scene_are_no_shadows() -> None:
    """As under a microscope: everything is yellow, and things are the darker parts."""
    yellow = np.tile(np.array([150, 130, 60], np.uint8), (96, 128, 1))
    picture = yellow.copy()
    picture[THING] = (105, 91, 42)
    test = ForegroundTest.of([(picture, yellow)] * 3)
    assert not test.colourful
    assert test(to_floats(picture), to_floats(yellow))[THING].all()


def test_the_fainter_the_things_the_less_is_enough() -> None:
    assert least_for(0.8) == MAX_THRESHOLD
    least = [least_for(strength) for strength in np.linspace(0, 1, 30)]
    assert (np.diff(least) >= 0).all()
    assert 0 < least[0] < least_for(0.2) < MAX_THRESHOLD
    faint = ForegroundTest.of(pairs("plain", (138, 138, 138)))
    assert faint.least < 0.03


@pytest.mark.parametrize("covered", [0.0, 0.3, 0.6])
def test_noise_is_that_of_the_scene_however_much_moves(covered: float) -> None:
    empty = scene("plain")
    picture = noisy(empty, 0.02)
    picture[:, : round(96 * covered)] = 0.1
    assert 0.015 < noise_of(picture, empty) < 0.02 * (1.2 if covered == 0 else 2 if covered == 0.3 else 4)


def test_thinned_pairs_are_spread_evenly() -> None:
    many = [(np.full((1, 1, 3), n, np.uint8),) * 2 for n in range(40)]
    assert [int(one[0, 0, 0]) for one, _ in thinned(many, 4)] == [0, 10, 20, 30]
    assert len(thinned(many, 60)) == 40


def test_blobs_are_the_pieces_that_hang_together() -> None:
    changed = np.zeros((20, 30), bool)
    changed[2:8, 3:7] = changed[10:20, 20:28] = changed[0, 29] = True
    blobs = find_blobs(changed)
    assert blobs.centre.tolist() == [[5, 5], [24, 15]]
    assert blobs.size.tolist() == [[6, 4], [10, 8]]
    assert blobs.area.tolist() == [24, 80]
    assert blobs.whole.tolist() == [True, False]


def test_the_nearer_a_blob_the_larger_it_must_be_for_an_object() -> None:
    changed = np.zeros((100, 60), bool)
    changed[2:8, 3:9] = changed[80:86, 3:9] = changed[80:98, 20:38] = True
    blobs = find_blobs(changed)
    assert large_enough(blobs, (20, 10), 100, FLAT).tolist() == [True, True, True]
    assert large_enough(blobs, (20, 10), 100, (0.5, 2.0)).tolist() == [True, False, True]


def test_pieces_nearby_are_one_where_a_gap_is_allowed() -> None:
    changed = np.zeros((40, 40), bool)
    changed[5:12, 10:20] = changed[15:25, 10:20] = changed[5:12, 30:38] = True
    assert len(find_blobs(changed).box) == 3
    joined = find_blobs(changed, gap=2)
    assert joined.box.tolist() == [[10, 5, 20, 25], [30, 5, 38, 12]]
    assert joined.area.tolist() == [170, 56]
    assert joined.moments.sum(0) == pytest.approx(find_blobs(changed).moments.sum(0))


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.2, -0.8])
def test_the_axes_of_an_ellipse_are_found_at_any_angle(angle: float) -> None:
    row, column = np.mgrid[:96, :128] + 0.5
    along = (column - 60) * np.cos(angle) + (row - 50) * np.sin(angle)
    across = (row - 50) * np.cos(angle) - (column - 60) * np.sin(angle)
    length, breadth, found = find_blobs((along / 25) ** 2 + (across / 6) ** 2 < 1).axes()
    assert (length[0], breadth[0]) == pytest.approx((50, 12), rel=0.03)
    assert np.exp(2j * found[0]) == pytest.approx(np.exp(2j * angle), abs=0.03)


def test_nothing_has_no_blobs() -> None:
    nothing = find_blobs(np.zeros((20, 30), bool))
    assert len(nothing.box) == len(nothing.axes()[0]) == 0
    some = find_blobs(ellipse((40, 40), 20, 12))
    assert len(join_blobs([nothing, some, some]).box) == 2
