"""Colours by id: stable, bright, and different for ids that live side by side."""

import numpy as np

from scalor.visual import colors_of, label_picture


def test_the_same_id_has_the_same_colour_whatever_its_company() -> None:
    alone = colors_of(np.array(7))
    among = colors_of(np.arange(30).reshape(5, 6))
    assert np.array_equal(alone, among.reshape(-1, 3)[7])
    assert among.shape == (5, 6, 3)
    assert among.dtype == np.uint8


def test_neighbouring_ids_differ_clearly() -> None:
    colors = colors_of(np.arange(300)).astype(float)
    for apart, least in ((1, 120), (2, 80), (3, 50), (4, 100), (5, 40)):
        assert np.linalg.norm(colors[apart:] - colors[:-apart], axis=1).min() > least, apart


def test_the_first_sixteen_ids_all_differ() -> None:
    colors = colors_of(np.arange(16)).astype(float)
    distance = np.linalg.norm(colors[:, None] - colors, axis=-1)
    assert distance[~np.eye(16, dtype=bool)].min() > 35


def test_colours_are_bright() -> None:
    assert colors_of(np.arange(300)).max(axis=-1).min() > 150


def test_a_label_map_shows_ids_in_their_colours_and_the_background_black() -> None:
    labels = np.array([[[-1, 0], [12, 0]]])
    picture = label_picture(labels)
    assert picture.shape == (1, 2, 2, 3)
    assert picture[0, 0, 0].tolist() == [0, 0, 0]
    assert np.array_equal(picture[0, 0, 1], colors_of(np.array(0)))
    assert np.array_equal(picture[0, 1, 0], colors_of(np.array(12)))


def test_unsigned_label_maps_are_taken_too() -> None:
    assert np.array_equal(label_picture(np.array([3], np.uint8)), colors_of(np.array([3])))
