"""One long video in several stretches: the same kind of folder, and nearly the same tracks, as in one piece."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalor
from scalor.files import Stopped
from scalor.many import stretches
from scalor.many.stretches import FOLDER, STRETCH
from scalor.many.videos import VideoJob
from scalor.outputs import ResultFolder
from scalor.video import open_video, segments, write_video
from scalor.video.sources import Selection
from scalor.video.stretch import VideoStretch

from .conftest import Say

FRAMES = 72


@pytest.fixture
def walkers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: None) -> Path:
    """Three squares that walk over a textured floor."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stretches, "SHARED", 24)
    noise = np.random.default_rng(0).integers(0, 12, (FRAMES, 48, 64, 3), dtype=np.uint8)
    film = np.random.default_rng(1).integers(60, 90, (48, 64, 3), dtype=np.uint8) + noise
    for t, frame in enumerate(film):
        for row, speed in ((2, 1), (18, 2), (34, -1)):
            x = (20 * (row % 7) + speed * t) % 64
            frame[row : row + 12, x : x + 10] = 220 - row
    np.save("walkers.npy", film)
    return Path("walkers.npy")


def test_stretches_give_the_tracks_and_the_files_of_one_piece(walkers: Path, say: Say) -> None:
    assert say("track", walkers, "--masks", "--out", "whole").code == 0
    said = say("track", walkers, "--masks", "--out", "parts", "--stretches", 2)
    assert said.code == 0, said.err
    assert {path.name for path in Path("parts").iterdir()} == {path.name for path in Path("whole").iterdir()}
    whole, parts = (scalor.read_tracks(name) for name in ("whole", "parts"))
    scores = scalor.score(parts, whole).gates["iou .5"]
    assert scores.identity.idf1 > 0.95
    assert abs(len(np.unique(whole.id)) - len(np.unique(parts.id))) <= 1
    # The first stretch sees what one piece sees; the last frames before the seam have other frames after them.
    early = [one.select(one.frame < FRAMES // 2 - 12) for one in (whole, parts)]
    np.testing.assert_array_equal(early[0].box, early[1].box)
    np.testing.assert_array_equal(early[0].id, early[1].id)
    assert Path("whole/counts.csv").read_text().count("\n") == Path("parts/counts.csv").read_text().count("\n")


def test_what_is_complete_is_kept_when_a_run_is_stopped(
    walkers: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SEGMENT", 6)
    words = ["track", walkers, "--out", "parts", "--stretches", 2]
    assert say("track", walkers, "--out", "other", "--stretches", 2).code == 0
    tracked: list[VideoJob] = []

    def work(job: VideoJob, *more: Any) -> dict[str, Any]:
        tracked.append(job)
        return STRETCH.work(job, *more)

    monkeypatch.setattr(stretches, "STRETCH", replace(STRETCH, work=work))
    add = ResultFolder.add

    def stop(self: ResultFolder, *shot: object, **more: object) -> None:
        if self.frames == 50:
            raise Stopped(15)
        add(self, *shot, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(ResultFolder, "add", stop)
        stopped = say(*words)
    assert stopped.code == 143
    assert "Repeat the command to resume." in stopped.err
    assert len(tracked) == 2
    assert len(list(Path("parts", FOLDER).glob("*.stretch"))) == 2
    shutil.copy(f"parts/{FOLDER}/0001.stretch", f"parts/{FOLDER}/0002.stretch")  # of a run with more stretches
    assert say(*words).code == 0
    assert len(tracked) == 2
    assert not Path("parts", FOLDER).exists()
    for name in ("tracks.csv", "overlay.mp4", "results.json"):
        same = [Path(folder, name).read_bytes().replace(b"other", b"parts") for folder in ("parts", "other")]
        assert same[0] == same[1], name


def test_wrong_numbers_of_stretches_are_told(walkers: Path, footage: Path, say: Say) -> None:
    complaint = say("track", walkers, "--stretches", 4).complaint
    assert complaint == (
        "stretches is 4 and walkers.npy has 72 frames to track: each stretch needs 24, so give 3 at most."
    )
    assert "--stretches is 2: it is for one video" in say("track", footage, "--stretches", 2).complaint


@pytest.mark.parametrize("kind", ["npy", "mp4"])
def test_a_stretch_has_the_frames_of_the_whole(kind: str, tmp_path: Path) -> None:
    film = np.random.default_rng(0).integers(0, 255, (50, 32, 32, 3), dtype=np.uint8)
    path = tmp_path / f"film.{kind}"
    if kind == "npy":
        np.save(path, film)
    else:
        write_video(path, film, 10)
    video = open_video(path, Selection(start=0.5, end=4.5, stride=3))
    whole = {frame.index: frame for frame in video.whole_frames()}
    assert list(whole) == list(range(5, 45, 3))
    part = VideoStretch(video, 1.2, 3.1)
    found = list(part.whole_frames())
    assert [frame.index for frame in found] == [index for index in whole if 12 <= index < 31]
    for frame in found:
        assert frame.seconds == whole[frame.index].seconds
        np.testing.assert_array_equal(frame.picture, whole[frame.index].picture)
    assert [frame.index for frame in VideoStretch(video, 1.2, None).whole_frames()][-1] == 44
