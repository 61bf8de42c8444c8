"""Videos show what the tracks say, drawn frame by frame as if all at once."""

from dataclasses import replace

import numpy as np
import pytest

from scalor.outputs.films import EvenSample, OverlayFilm, label_frame
from scalor.outputs.tables import TrackedFrame
from scalor.tracks import join_tracks
from scalor.visual import colors_of, overlay
from tests.outputs.stories import Shot, shots


def seen(shot: Shot) -> TrackedFrame:
    return TrackedFrame(*shot)


def test_a_film_drawn_frame_by_frame_is_the_film_drawn_at_once() -> None:
    frames = [seen(shot) for shot in shots(40, stride=3)]
    film = OverlayFilm(fps=8)
    drawn = [film.draw(frame) for frame in frames]
    pictures = np.stack([frame.picture for frame in frames]).transpose(0, 3, 1, 2) / np.float32(255)
    at_once = overlay(pictures, join_tracks([frame.tracks for frame in frames]), trails=film.trails)
    assert film.trails == 8
    assert np.array_equal(drawn, at_once)


@pytest.mark.parametrize(("fps", "frames"), [(2, 8), (25, 25), (240, 60)])
def test_trails_last_a_second_within_limits(fps: float, frames: int) -> None:
    assert OverlayFilm(fps).trails == frames


def test_masks_tint_the_pixels_they_show() -> None:
    (*_, last) = shots(9, masks=True)
    with_masks, without = seen(last), seen(last._replace(tracks=replace(last.tracks, masks=None)))
    changed = (OverlayFilm(25).draw(with_masks) != OverlayFilm(25).draw(without)).any(axis=-1)
    assert changed.any()
    assert not changed[with_masks.owner == 0].any()


def test_a_label_frame_shows_each_object_in_its_colour_on_black() -> None:
    (*_, last) = shots(9, masks=True)
    frame = seen(last)
    picture = label_frame(frame)
    assert frame.tracks.masks is not None
    assert (picture[~frame.tracks.masks.any(axis=0)] == 0).all()
    for number, mask in zip(frame.tracks.id, frame.tracks.masks, strict=True):
        assert (picture[mask] == colors_of(np.array(number))).all()
        assert (frame.labels[mask] == number).all()


@pytest.mark.parametrize("count", [1, 5, 6, 7, 12, 13, 24, 25, 100, 997])
def test_stills_are_spread_over_a_video_of_any_length(count: int) -> None:
    stills = EvenSample()
    for t in range(count):
        stills.add(np.zeros((2, 2, 3), np.uint8), float(t))
    seconds = [when for when, _ in stills.chosen()]
    assert len(seconds) == min(6, count)
    assert seconds[0] == 0
    gaps = np.diff([*seconds, float(count)])
    assert (gaps > 0).all()
    assert gaps.max() <= max(2 * gaps[:-1].min(initial=np.inf), count / 3)
