"""Classical trackers by name, where weights have theirs."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.still.films import ellipse, film, street

from .conftest import Say

TRACK = ("track", "--object-size", "7x7", "--out", "seen")


@pytest.mark.parametrize("way", ["colour", "foreground", "motion"])
def test_a_video_is_tracked_without_weights(way: str, say: Say, videos: dict[str, Path]) -> None:
    document = say(*TRACK, videos["npy"], "--weights", f"classical-{way}", "--json").document
    assert document["frames"] == 6
    assert document["objects"] > 0
    with open("seen/tracks.csv") as file:
        assert len(list(csv.DictReader(file))) == document["rows"]
    for name in ("overlay.mp4", "tracks_mot.txt"):
        assert (Path("seen") / name).stat().st_size > 0


def test_how_large_things_that_move_are_is_measured_unless_it_is_said(say: Say, tmp_path: Path) -> None:
    def draw(picture: np.ndarray, t: int) -> None:
        for number in range(2):
            picture[ellipse((8 + 2.4 * t, 24 + 45 * number), 24, 12)] = (235, 30, 60)

    film(tmp_path / "film.npy", street(), draw)
    document = say("track", tmp_path / "film.npy", "--weights", "classical-motion", "--out", "seen", "--json").document
    assert (document["frames"], document["objects"]) == (48, 2)
    with open("seen/tracks.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 80
    sides = np.array([(float(row["y1"]) - float(row["y0"]), float(row["x1"]) - float(row["x0"])) for row in rows])
    assert np.median(sides, 0).tolist() == pytest.approx([24, 12], abs=2)


def test_a_classical_tracker_is_evaluated_on_the_scenes_of_a_preset(say: Say) -> None:
    words = ("evaluate", "classical-colour", "--preset", "shapes-tiny", "--clips", 2)
    document = say(*words, "--json").document
    assert (document["weights"], document["clips"], document["metrics"]["clips"]) == ("classical-colour", 2, 2)
    assert document["metrics"]["strict_mota"] > 0.9
    shown = say(*words).out
    for word in ("MOTA", "strict", f"{document['metrics']['strict_mota']:.3f}", "HOTA", "2 unseen clips"):
        assert word in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["track", "VIDEO", "--weights", "classical-colour"], ["needs the size of the objects", "--object-size 9x9"]),
        ([*TRACK, "VIDEO", "--weights", "classical-color"], ["'classical-color'", "classical-colour"]),
        ([*TRACK, "VIDEO", "--weights", "classical-colour", "--masks"], ["it has no masks", "leave --masks out"]),
        ([*TRACK, "VIDEO", "--weights", "classical-colour", "--slots", "4"], ["leave --slots out"]),
        ([*TRACK, "VIDEO", "--weights", "classical-motion", "--raw"], ["no post-processing", "leave --raw out"]),
        (["track", "VIDEO", "--object-size", "9"], ["'9'", "for example 9x9"]),
        (["track", "VIDEO", "--object-size", "0x9"], ["'0x9'", "for example 9x9"]),
        (["evaluate", "classical-colour"], ["no test scenes of its own", "--preset shapes-md"]),
        (["evaluate", "classical-luck", "--preset", "shapes-md"], ["'classical-luck'", "classical-motion"]),
        (
            ["evaluate", "classical-colour", "--preset", "shapes-md", "--nll-samples", "2"],
            ["no likelihood", "leave --nll-samples out"],
        ),
    ],
    ids=lambda value: " ".join(value),
)
def test_words_that_make_no_sense(words: list[str], said: list[str], say: Say, videos: dict[str, Path]) -> None:
    complaint = say(*(videos["npy"] if word == "VIDEO" else word for word in words)).complaint
    for part in said:
        assert part in complaint
