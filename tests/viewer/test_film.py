"""The page's video: every frame at its place, so that a seek finds it."""

from pathlib import Path

import av
import numpy as np
import pytest

from scalor.viewer.film import KEY_FRAME_EVERY, FilmWriter, film_rate, film_size


@pytest.mark.parametrize(
    ("size", "film"),
    [
        ((576, 768), (540, 720)),
        ((1080, 1920), (406, 720)),
        ((64, 64), (320, 320)),
        ((360, 480), (360, 480)),
        ((35, 401), (36, 400)),
    ],
)
def test_the_film_is_of_a_size_that_plays_well(size: tuple[int, int], film: tuple[int, int]) -> None:
    height, width = film_size(size)
    assert abs(height - film[0]) <= 2
    assert abs(width - film[1]) <= 2
    assert height % 2 == width % 2 == 0


@pytest.mark.parametrize("fps", [25, 30000 / 1001, 0.5])
def test_frames_lie_at_whole_multiples_of_the_frame_time(fps: float, tmp_path: Path) -> None:
    count = 2 * KEY_FRAME_EVERY + 5
    with FilmWriter(tmp_path / "a.mp4", film_rate(fps)) as film:
        for k in range(count):
            film.write(np.full((48, 64, 3), 6 * k, np.uint8))
    with av.open(tmp_path / "a.mp4") as container:
        frames = list(container.decode(video=0))
    assert [round(frame.time * film.rate, 3) for frame in frames] == list(range(count))
    assert [k for k, frame in enumerate(frames) if frame.key_frame][:3] == [0, KEY_FRAME_EVERY, 2 * KEY_FRAME_EVERY]
    levels = [frame.to_ndarray(format="rgb24").mean() for frame in frames]
    assert np.abs(np.array(levels) - 6 * np.arange(count)).max() < 4
    assert film.size == (240, 320)
