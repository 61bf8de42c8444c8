"""Films in segments: the same frames at the same times as in one piece, wherever the writing was stopped."""

from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

from scalor.video import VideoWriter, segments
from scalor.video.segments import SegmentedFilm, Writer
from scalor.viewer.film import FilmWriter, film_rate

SHAPE = (11, 48, 64, 3)
KINDS: dict[str, Callable[[Path], Writer]] = {
    "overlay": lambda path: VideoWriter(path, 29.97),
    "film of the page": lambda path: FilmWriter(path, film_rate(7.5)),
}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT", 4)


def pictures() -> np.ndarray:
    film = np.full(SHAPE, 30, np.uint8)
    for t, picture in enumerate(film):
        picture[8:24, 4 * t : 4 * t + 16] = 200
    return film


def shown(path: Path) -> list[tuple[float, np.ndarray]]:
    with av.open(path) as film:
        return [(frame.time, frame.to_ndarray(format="gray").astype(int)) for frame in film.decode(video=0)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_film_in_segments_shows_what_one_in_a_piece_shows(kind: str, tmp_path: Path) -> None:
    with SegmentedFilm(tmp_path / "joined.mp4", tmp_path / "parts", KINDS[kind]) as film:
        for picture in pictures():
            film.write(picture)
    with KINDS[kind](tmp_path / "whole.mp4") as whole:
        for picture in pictures():
            whole.write(picture)
    joined, plain = shown(tmp_path / "joined.mp4"), shown(tmp_path / "whole.mp4")
    assert len(joined) == len(plain) == SHAPE[0]
    for (time, picture), (expected, other) in zip(joined, plain, strict=True):
        assert time == pytest.approx(expected, abs=1e-4)
        assert abs(picture - other).mean() < 2
    assert list((tmp_path / "parts").iterdir()) == []


def test_a_film_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    def write(film: SegmentedFilm, first: int, end: int) -> None:
        for picture in pictures()[first:end]:
            film.write(picture)

    with SegmentedFilm(tmp_path / "whole.mp4", tmp_path / "of whole", KINDS["overlay"]) as film:
        write(film, 0, 11)
    stopped = SegmentedFilm(tmp_path / "film.mp4", tmp_path / "parts", KINDS["overlay"])
    stopped.__enter__()
    write(stopped, 0, 8)
    complete = stopped.save()
    write(stopped, 8, 10)
    stopped.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert complete == 2
    assert not (tmp_path / "film.mp4").exists()
    with SegmentedFilm(tmp_path / "film.mp4", tmp_path / "parts", KINDS["overlay"], complete) as film:
        write(film, 8, 11)
    assert (tmp_path / "film.mp4").read_bytes() == (tmp_path / "whole.mp4").read_bytes()
