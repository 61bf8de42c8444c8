"""`scalor predict`: seen frames, imagined frames, one result folder."""

import csv
from pathlib import Path

import numpy as np
import pytest

from scalor.camera import CameraCheck
from scalor.tracking.video_view import VideoView
from scalor.video import Video, open_video
from scalor.visual.strips import RED

from .conftest import Say


def test_the_files_tell_of_seen_and_imagined_frames(say: Say, weights: Path, videos: dict[str, Path]) -> None:
    spoken = say(
        "predict", videos["npy"], "--weights", weights, "--observe", 3, "--at", 0.3, "--seconds", 0.2, "--json"
    )
    assert (spoken.document["seen"], spoken.document["imagined"]) == (3, 2)
    with open("predicted/counts.csv") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["frame"]) for row in rows] == [0, 1, 2, 3, 4]
    assert [float(row["seconds"]) for row in rows] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert Path("predicted/strip.png").stat().st_size > 500
    pictures = [frame.picture for frame in open_video("predicted/overlay.mp4")]
    red = [bool((np.abs(picture[1].astype(int) - RED).max(axis=-1) < 60).mean() > 0.9) for picture in pictures]
    assert red == [False, False, False, True, True]
    report = Path("predicted/report.html").read_text()
    assert "observed the first 3 of these 5 frames and imagined the other 2: from 0:00.3 on" in report
    assert "frames after the observed ones included" in report


def test_a_moving_camera_is_refused(
    say: Say, weights: Path, videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def moving(video: Video) -> VideoView:
        camera = CameraCheck(True, 1.0, (9.0, 9.0), (3.0, 3.0))
        return VideoView(video, video, None, None, camera)

    monkeypatch.setattr("scalor.forecast.look_at", moving)
    complaint = say("predict", videos["npy"], "--weights", weights, "--seconds", 0.1).complaint
    assert "predictions need a camera that stands still" in complaint


def test_by_default_the_future_begins_where_the_video_ends(say: Say, weights: Path, videos: dict[str, Path]) -> None:
    spoken = say("predict", videos["npy"], "--weights", weights, "--seconds", 0.1)
    assert spoken.code == 0, spoken.err
    assert "5 frames observed, 1 generated" in spoken.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--observe", "9"], "--observe is 9"),
        (["--at", "0"], "has 0 frames before"),
        (["--weights", "nowhere"], "weights 'nowhere'"),
        (["--seconds", "nan"], "'nan' must be a number of seconds above 0"),
        (["--seconds", "inf"], "'inf' must be a number of seconds above 0"),
        (["--seconds", "1e5"], "seconds is 100000.0: give at most"),
        (["--seconds", "99999999999999999999"], "for all frames are held in memory"),
        (["--seconds", "1e308"], "for all frames are held in memory"),
        (["--seconds", "-1"], "'-1' must be a number of seconds above 0"),
    ],
)
def test_what_cannot_be_is_refused(
    words: list[str], said: str, say: Say, weights: Path, videos: dict[str, Path]
) -> None:
    assert said in say("predict", videos["npy"], "--weights", weights, *words).complaint
