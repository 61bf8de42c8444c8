"""`scalor track`: the whole job, for videos of every kind, in all or in part; and what a stop leaves behind."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import scalor
from scalor import load, save
from scalor.outputs import FILES, mask_files
from scalor.replacement import MANIFEST
from scalor.tracker_choice import config_of
from scalor.video import iterate_frames, write_video

from .conftest import Say, contents

WITHOUT_MASKS = set(FILES) - {"masks.json", "labels.tif", "labels.mp4", "tracks.parquet"}


def rows_of(folder: str = "tracked") -> list[dict[str, float]]:
    lines = Path(folder, "tracks.csv").read_text().splitlines()
    return [{name: float(word) for name, word in row.items()} for row in csv.DictReader(lines)]


@pytest.mark.filterwarnings("error:The given NumPy array is not writable")
@pytest.mark.parametrize("form", ["mp4", "npy", "png"])
def test_track_reads_a_video_in_any_form(form: str, say: Say, weights: Path, videos: dict[str, Path]) -> None:
    spoken = say("track", videos[form], "--weights", weights, "--json", "--out", "seen")
    document = spoken.document
    assert "/6 [" in spoken.err
    assert document["frames"] == 6
    made = {Path(file).name for file in document["files"]}
    assert made - {"tracks.parquet"} == WITHOUT_MASKS
    assert made | {MANIFEST} == {path.name for path in Path("seen").iterdir()}
    rows = rows_of("seen")
    assert len(rows) == document["rows"] == len(Path("seen/tracks_mot.txt").read_text().splitlines()) > 0
    assert len({row["id"] for row in rows}) == document["objects"]
    assert {row["frame"] for row in rows} <= set(range(6))
    assert len(list(iterate_frames("seen/overlay.mp4"))) == 6


def test_track_is_the_same_for_the_command_line_and_the_library(
    say: Say, weights: Path, videos: dict[str, Path], frames: np.ndarray
) -> None:
    spoken = say("track", videos["npy"], "--weights", weights, "--masks")
    assert spoken.code == 0
    assert "in 6 frames; see tracked/report.html\nhealth: " in spoken.out
    tracks = scalor.load(weights).track(frames.transpose(0, 3, 1, 2).astype(np.float32) / 255, masks=True)
    rows = rows_of()
    assert [(row["frame"], row["id"]) for row in rows] == list(zip(tracks.frame, tracks.id, strict=True))
    boxes = [[row[name] for name in ("x0", "y0", "x1", "y1")] for row in rows]
    np.testing.assert_allclose(boxes, tracks.box, atol=6e-4)
    whole = scalor.track(videos["npy"], weights, quiet=True)
    assert np.array_equal(whole.frame, tracks.frame)
    assert np.array_equal(whole.id, tracks.id)
    np.testing.assert_allclose(whole.box, tracks.box, atol=1e-3)
    every_other = scalor.track(videos["npy"], weights, start=0.1, stride=2, quiet=True)
    assert set(every_other.frame.tolist()) == {1, 3, 5}
    masks = json.loads(Path("tracked/masks.json").read_text())["annotations"]
    assert tracks.masks is not None
    for annotation, mask in zip(masks, tracks.masks, strict=True):
        assert np.array_equal(mask_files.decode(annotation["segmentation"]["counts"], (32, 32)), mask)


def test_the_report_tells_where_it_comes_from(say: Say, weights: Path, videos: dict[str, Path]) -> None:
    assert say("track", videos["mp4"], "--weights", weights).code == 0
    page = Path("tracked/report.html").read_text()
    for word in (str(videos["mp4"]), str(weights), "command", "commit", "date"):
        assert word in page


def test_track_with_more_slots_finds_more_objects(say: Say, weights: Path, videos: dict[str, Path]) -> None:
    most = {}
    for slots in (1, 8):
        assert say("track", videos["npy"], "--weights", weights, "--slots", slots).code == 0
        most[slots] = max(Counter(row["frame"] for row in rows_of()).values())
    assert most[1] == 1 < most[8] <= 8


# Parts ------------------------------------------------------------------------------------------------


def test_a_region_is_tracked_as_if_it_were_the_video_and_told_in_pixels_of_the_whole(
    say: Say, weights: Path, frames: np.ndarray
) -> None:
    wide = np.full((6, 50, 70, 3), 7, np.uint8)
    wide[:, 10:42, 30:62] = frames
    np.save("alone.npy", frames)
    np.save("wide.npy", wide)
    options = ("--weights", weights, "--masks")
    assert say("track", "alone.npy", *options, "--out", "alone").code == 0
    assert say("track", "wide.npy", *options, "--out", "wide", "--region", 30, 10, 62, 42).code == 0
    alone, within = rows_of("alone"), rows_of("wide")
    moved = [{**row, **{n: row[n] + by for n, by in OFFSETS.items()}} for row in alone]
    assert [pytest.approx(row, abs=2e-3) for row in moved] == within
    shown = {name: json.loads(Path(name, "masks.json").read_text())["annotations"] for name in ("alone", "wide")}
    for small, large in zip(shown["alone"], shown["wide"], strict=True):
        mask = mask_files.decode(large["segmentation"]["counts"], (50, 70))
        assert np.array_equal(mask[10:42, 30:62], mask_files.decode(small["segmentation"]["counts"], (32, 32)))
        assert mask.sum() == small["area"]


OFFSETS = {"x0": 30, "y0": 10, "x1": 30, "y1": 10, "x": 30, "y": 10}


def test_a_stretch_of_time_and_a_stride_keep_the_numbers_and_times_of_the_video(
    say: Say, weights: Path, videos: dict[str, Path]
) -> None:
    words = ("--start", 0.2, "--end", 1.1, "--stride", 2, "--fps", 5, "--json")
    assert say("track", videos["npy"], "--weights", weights, *words).document["frames"] == 3
    counts = list(csv.DictReader(Path("tracked/counts.csv").read_text().splitlines()))
    assert [(int(row["frame"]), float(row["seconds"])) for row in counts] == [(1, 0.2), (3, 0.6), (5, 1.0)]


def test_a_stride_that_the_weights_were_fitted_with_is_told(say: Say, weights: Path, videos: dict[str, Path]) -> None:
    config = config_of(weights)
    save(load(weights), "fitted.safetensors", replace(config, scene=replace(config.scene, stride=3)))
    words = ("track", videos["npy"], "--fps", 5, "--weights", "fitted.safetensors")
    said = say(*words).out
    assert "in 2 frames (one frame in 3 of the video, as the weights were fitted; --stride 1 tracks all)" in said
    assert "<b>2</b> frames (one frame in 3 of the video)" in Path("tracked/report.html").read_text()
    assert "in 3 frames (one frame in 2 of the video);" in say(*words, "--stride", 2).out
    assert "in 6 frames;" in say(*words, "--stride", 1).out
    assert say(*words, "--json").document["stride"] == 3


# What must simply work --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["one.mp4", "one.npy"])
def test_one_frame_is_a_video(form: str, say: Say, weights: Path, frames: np.ndarray) -> None:
    write_video("one.mp4", frames[:1], fps=6)
    np.save("one.npy", frames[:1])
    assert say("track", form, "--weights", weights, "--json").document["frames"] == 1


@pytest.mark.parametrize(("height", "width"), [(33, 47), (5, 3), (1, 1)])
def test_odd_sizes(height: int, width: int, say: Say, weights: Path) -> None:
    np.save("odd.npy", np.random.default_rng(0).integers(0, 256, (3, height, width, 3)).astype(np.uint8))
    document = say("track", "odd.npy", "--weights", weights, "--masks", "--json").document
    assert document["frames"] == 3
    assert all(row["x"] < width and row["y"] < height for row in rows_of())


@pytest.mark.parametrize("system", ["WEIGHTS", "classical-motion"])
def test_a_still_video_with_nothing_moving(system: str, say: Say, weights: Path) -> None:
    np.save("still.npy", np.full((8, 32, 32, 3), 90, np.uint8))
    chosen = ["--weights", weights] if system == "WEIGHTS" else ["--weights", system, "--object-size", "7x7"]
    document = say("track", "still.npy", *chosen, "--json").document
    assert document["frames"] == 8
    if system != "WEIGHTS":  # what an untrained model sees in a grey wall is its own affair
        assert document["objects"] == 0
        assert "Nothing was found" in Path("tracked/report.html").read_text()


def test_a_frame_of_4k(say: Say, weights: Path) -> None:
    write_video("large.mp4", np.full((1, 2160, 3840, 3), 60, np.uint8), fps=25)
    assert say("track", "large.mp4", "--weights", weights, "--json").document["frames"] == 1
    (shown,) = iterate_frames("tracked/overlay.mp4")
    assert shown.shape == (2160, 3840, 3)


# Stops ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_in_the_middle_leaves_the_earlier_result_and_nothing_else(
    which: signal.Signals, say: Say, weights: Path, videos: dict[str, Path], frames: np.ndarray
) -> None:
    assert say("track", videos["npy"], "--weights", weights).code == 0
    before = contents(Path("tracked"))
    np.save("long.npy", np.tile(frames, (500, 1, 1, 1)))
    process = subprocess.Popen(
        [sys.executable, "-m", "scalor", "track", "long.npy", "--weights", weights],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(scalor.__file__).parent.parent)},
    )
    assert process.stderr is not None
    said = b""
    while not re.search(rb" [1-9]\d*/3000 ", said):
        said += os.read(process.stderr.fileno(), 4096)
        assert process.poll() is None, said
    assert Path("tracked/.partial").exists()
    process.send_signal(which)
    out, rest = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + which, b"")
    assert rest.decode().split("\r")[-1] == "scalor: stopped; tracked holds no half-written file.\n"
    assert contents(Path("tracked")) == before
