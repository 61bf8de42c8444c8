"""Bad input: exit code 2, one line that names the value and the way out, and nothing that was saved is lost."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import scalor
from scalor.outputs.tables import TrackedFrame, TrackTables
from scalor.video import write_video
from scalor.visual import save_png
from tests.video.clips import write_container

from .conftest import TINY, Say, contents

Case = tuple[list[Any], list[str]]


@pytest.fixture
def run_folder(weights: Path, tmp_path: Path) -> Path:
    """A folder with a run in it, as far as anyone can tell from outside."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("model.safetensors", "resume.safetensors"):
        shutil.copy(weights, folder / name)
    (folder / "log.jsonl").write_text('{"step": 4}\n')
    (folder / "config.json").write_text("{}\n")
    return folder


@pytest.fixture
def refused(say: Say, tmp_path: Path, run_folder: Path) -> Callable[[Case], None]:
    """Runs a case and sees that it ends as it should, with every file that was there unharmed."""

    def check(case: Case) -> None:
        words, named = case
        before = contents(tmp_path)
        complaint = say(*words).complaint
        for part in named:
            assert part in complaint, complaint
        assert contents(tmp_path) == before

    return check


TRAIN = ["train", "shapes-tiny", "--out", "run", "--resume"]


@pytest.mark.parametrize(
    "case",
    [
        ([], ["COMMAND", "scalor --help"]),
        (["trian"], ["'trian'", "train"]),
        (["presets", "shapes-mdd"], ["'shapes-mdd'", "did you mean shapes-md"]),
        (["presets", "zzz"], ["'zzz'", "`scalor presets` lists them all"]),
        (["presets", "--loud"], ["'--loud'", "scalor presets --help"]),
        (["train"], ["preset", "scalor train --help"]),
        (["train", "shapes-tinny"], ["'shapes-tinny'", "did you mean shapes-tiny"]),
        ([*TRAIN, "--model.slotz", "3"], ["--model.slotz", "did you mean --model.slots"]),
        ([*TRAIN, "--qqqqqq", "3"], ["--qqqqqq", "lists them all"]),
        ([*TRAIN, "--model", "3"], ["--model:", "no such setting"]),
        ([*TRAIN, "--model.slots"], ["--model.slots has no value", "--model.slots VALUE"]),
        ([*TRAIN, "--model.slots", "--model.glimpse", "8"], ["--model.slots has no value"]),
        ([*TRAIN, "48"], ["'48'", "--model.slots 48"]),
        ([*TRAIN, "--model.slots", "many"], ["model.slots is 'many'", "a whole number"]),
        ([*TRAIN, "--model.slots", "2.5"], ["model.slots is 2.5", "a whole number"]),
        ([*TRAIN, "--model.slots", "true"], ["model.slots is True", "a whole number"]),
        ([*TRAIN, "--model.slots", "0"], ["model.slots is 0", "at least 1"]),
        ([*TRAIN, "--model.search", "1"], ["model.search is 1", "true or false"]),
        ([*TRAIN, "--model.sigma=-1"], ["model.sigma is -1", "positive"]),
        ([*TRAIN, "--model.grid", "5x5"], ["model.frame is (32, 32)", "multiple of the 5 cells"]),
        ([*TRAIN, "--model.frame", "[32]"], ["model.frame is [32]", "give 2 values"]),
        ([*TRAIN, "--model.grid", "5.x"], ["model.grid is '5.x'"]),
        ([*TRAIN, "--model.object_size", "07x.0"], ["model.object_size is (7.0, 0.0)"]),
        ([*TRAIN, "--scene.frame", "33x32"], ["scene.frame is (33, 32)", "8 px cells"]),
        ([*TRAIN, "--train.steps", "-5"], ["train.steps is -5", "at least 1"]),
        ([*TRAIN, "--train.learning_rate", "NaN"], ["train.learning_rate is nan", "positive and finite"]),
        ([*TRAIN, "--train.lengths", "[[0, 99]]"], ["train.lengths is ((0, 99),)", "must fit into scene.length 10"]),
        ([*TRAIN, "--clips", "-3"], ["'-3'", "at least 1"]),
        ([*TRAIN, "--device", "nonsense"], ["'nonsense'", "auto, cpu or cuda"]),
        ([*TRAIN], ["folder run holds a run with another model"]),
        (["train", "shapes-tiny", "--out", "run"], ["folder run already holds a run", "--resume"]),
        (["train", "shapes-tiny", "shapes-mdd"], ["'shapes-mdd'", "did you mean shapes-md"]),
        ([*TRAIN, "--seeds"], ["--seeds", "scalor train --help"]),
        ([*TRAIN, "--seeds", "0", "-1"], ["'-1'"]),
        ([*TRAIN, "--seeds", "0", "one"], ["'one'", "a whole number"]),
        ([*TRAIN, "--seeds", "0", "1", "--train.seed", "3"], ["--seeds is 0 1", "--train.seed is 3", "leave one out"]),
        ([*TRAIN, "--seeds", "4", "--train.seed=4"], ["--seeds is 4", "--train.seed is 4", "leave one out"]),
        ([*TRAIN, "--seeds", "2", "2"], ["folder run/shapes-tiny-seed2 would hold two runs", "every seed once"]),
        (["train", "shapes-tiny", "shapes-tiny"], ["folder runs/shapes-tiny would hold two runs", "every preset"]),
        (["evaluate", "run", "--clips", "0"], ["'0'", "at least 1"]),
        (["evaluate", "run", "--nll-samples", "-1"], ["'-1'", "at least 0"]),
        (["evaluate", "run", "--preset", "shapes-mdd"], ["did you mean shapes-md"]),
        (["evaluate", "nowhere"], ["'nowhere'", "neither shipped nor a file"]),
        (["info", "nowhere.safetensors"], ["'nowhere.safetensors'", "neither shipped nor a file"]),
        (["track"], ["video", "scalor track --help"]),
        (["track", "clip.mp4", "--slots", "0"], ["'0'", "at least 1"]),
        (["track", "clip.mp4", "--stride", "0"], ["'0'", "at least 1"]),
        (["track", "clip.mp4", "--start", "soon"], ["--start", "'soon'", "must be a number"]),
        (["track", "clip.mp4", "--region", "0", "0", "9"], ["--region", "scalor track --help"]),
        (["track", "clip.mp4", "--weights", "run", "--region", "9", "0", "3", "9"], ["region is (9, 0, 3, 9)", "x1"]),
        (["track", "clip.mp4", "--weights", "run", "--start", "5", "--end", "2"], ["end is 2.0", "start, which is 5"]),
        (["track", "clip.mp4", "--weights", "run", "--start", "nan"], ["start is nan", "0 or more"]),
        (["track", "clip.mp4", "--weights", "run", "--fps", "0"], ["fps is 0.0", "above 0"]),
        (["track", "clip.mp4", "--weights", "nowhere"], ["'nowhere'", "neither shipped nor a file"]),
        (["score", "tracks.csv"], ["--truth", "scalor score --help"]),
        (["score", "tracks.csv", "--truth", "gt.txt"], ["gt.txt cannot be read", "give a file of boxes"]),
        (["score", "tracks.csv", "--truth", "gt.txt", "--frames", "9-3"], ["--frames is '9-3'", "478-795"]),
        (["score", "tracks.csv", "--truth", "gt.txt", "--minimum-presence", "2"], ["'2'", "between 0 and 1"]),
        (["generate", "--rate", "1.5", "--weights", "run"], ["'1.5'", "between 0 and 1"]),
        (["generate", "--rate", "often", "--weights", "run"], ["'often'", "between 0 and 1"]),
        (["generate", "--horizon", "0"], ["'0'", "at least 1"]),
        (["generate", "--clip", "-1"], ["'-1'", "at least 0"]),
    ],
    ids=lambda case: " ".join(case[0]) or "nothing",
)
def test_words_that_make_no_sense(case: Case, refused: Callable[[Case], None]) -> None:
    refused(case)


@pytest.mark.parametrize("command", ["train", "evaluate", "track", "generate"])
def test_a_gpu_where_there_is_none(
    command: str, refused: Callable[[Case], None], videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    words: dict[str, list[Any]] = {
        "train": [*TRAIN, *TINY],
        "evaluate": ["evaluate", "run"],
        "track": ["track", videos["npy"], "--weights", "run"],
        "generate": ["generate", "--weights", "run"],
    }
    refused(([*words[command], "--device", "cuda"], ["'cuda'", "no CUDA GPU"]))


# Checkpoints ------------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def foreign(path: Path) -> None:
    save_file({"a": torch.zeros(3)}, path)


def words(path: Path) -> None:
    path.write_text("weights")


def nothing(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("command", ["info", "evaluate", "track", "generate", "train"])
@pytest.mark.parametrize("harm", [cut, foreign, words, nothing])
def test_checkpoints_that_are_none(
    harm: Callable[[Path], None],
    command: str,
    refused: Callable[[Case], None],
    run_folder: Path,
    videos: dict[str, Path],
) -> None:
    harm(run_folder / "model.safetensors")
    harm(run_folder / "resume.safetensors")
    given: dict[str, list[Any]] = {
        "info": ["info", "run"],
        "evaluate": ["evaluate", "run/model.safetensors"],
        "track": ["track", videos["npy"], "--weights", "run"],
        "generate": ["generate", "--weights", "run"],
        "train": [*TRAIN, *TINY],
    }
    file = "run/resume.safetensors" if command == "train" else "run/model.safetensors"
    said = "was not written by scalor" if harm is foreign else "truncated or not a safetensors file"
    refused((given[command], [file, said]))


def test_a_run_in_the_way_of_one_of_several(say: Say, run_folder: Path, tmp_path: Path) -> None:
    run_folder.rename(tmp_path / "shapes-tiny-seed1")
    before = contents(tmp_path)
    words = ["train", "shapes-tiny", "--seeds", 0, 1, "--out", ".", *TINY]
    assert "folder shapes-tiny-seed1 already holds a run: add --resume" in say(*words).complaint
    assert contents(tmp_path) == before


def test_going_on_from_another_size(refused: Callable[[Case], None]) -> None:
    refused(([*TRAIN, *TINY, "--model.tracker_dim", "16"], ["folder run", "another model"]))


def test_going_on_from_weights_without_their_training(refused: Callable[[Case], None]) -> None:
    refused(([*TRAIN, *TINY], ["run/resume.safetensors", "no state of the optimiser"]))


def test_a_demo_without_its_weights(refused: Callable[[Case], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalor.checkpoint.WEIGHTS", Path("nowhere"))
    refused((["demo"], ["'shapes-md'", "neither shipped nor a file"]))


# Videos -----------------------------------------------------------------------------------------------


def picture(height: int = 32, width: int = 32, count: int = 3) -> np.ndarray:
    return np.full((count, height, width, 3), 90, np.uint8)


def write_nothing(path: Path) -> None:
    """A good mp4 in all but its frames."""
    with av.open(path, "w") as container:
        container.add_stream("libx264", 6, width=32, height=32, pix_fmt="yuv420p")


def write_half(path: Path) -> None:
    write_video(path, picture(count=9), fps=6)
    path.write_bytes(path.read_bytes()[:700])


def write_cut(path: Path) -> None:
    """Its table of contents is whole, its frames are not."""
    noise = np.random.default_rng(0).integers(0, 256, (9, 32, 32, 3)).astype(np.uint8)
    write_video(path, noise, fps=6)
    path.write_bytes(path.read_bytes()[:-3000])


def write_two_sizes(path: Path) -> None:
    """Two recordings, one after the other in one file."""
    parts = [write_container(path.with_name(f"{width}.ts"), picture(32, width)) for width in (32, 48)]
    path.write_bytes(b"".join(part.read_bytes() for part in parts))


def write_folder(path: Path) -> None:
    path.mkdir()
    for side in (32, 40):
        save_png(path / f"{side}.png", picture(side)[0])


VIDEOS: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "missing.mp4": (lambda path: None, ["does not exist"]),
    "empty.mp4": (write_nothing, [""]),
    "empty.npy": (lambda path: np.save(path, picture(count=0)), ["holds no frame"]),
    "half.mp4": (write_half, ["cut short"]),
    "cut.mp4": (write_cut, ["cannot be decoded", "choose an end of", "export the file again"]),
    "turning.ts": (write_two_sizes, ["frame 3", "48 x 32", "32 x 32", "one size"]),
    "text.mp4": (lambda path: path.write_text("not a video at all\n" * 50), ["cannot be decoded as a video"]),
    "text.npy": (lambda path: path.write_text("not an array at all\n" * 50), ["numpy.save"]),
    "text.txt": (lambda path: path.write_text("what is this"), ["cannot be decoded as a video"]),
    "flat.npy": (lambda path: np.save(path, picture()[..., 0]), ["[3, 32, 32]", "[T, H, W, 3]"]),
    "bright.npy": (lambda path: np.save(path, picture() * 1.0), ["90", "scale them to [0, 1]"]),
    "nan.npy": (lambda path: np.save(path, picture() * np.nan), ["nan", "[0, 1]"]),
    "nothing": (lambda path: path.mkdir(), ["holds no images"]),
    "mixed": (write_folder, ["frame 1", "40", "32", "one size"]),
}
Make = Callable[[Path], object]
TOO_LITTLE_TO_GO_ON_FROM: dict[str, tuple[Make, list[str]]] = {
    "one.mp4": (lambda path: write_video(path, picture(count=1), fps=6), ["1 frame"]),
    "one.npy": (lambda path: np.save(path, picture(count=1)), ["1 frame"]),
}
ODD: dict[str, tuple[Make, list[str]]] = {
    "odd.npy": (lambda path: np.save(path, picture(36, 32)), ["the height 36", "8 px cells", "for example 32"]),
    "odd.mp4": (lambda path: write_video(path, picture(32, 50), fps=6), ["the width 50", "8 px cells"]),
}


@pytest.mark.parametrize("command", ["track", "generate"])
@pytest.mark.parametrize("name", VIDEOS)
def test_videos_that_are_none(name: str, command: str, refused: Callable[[Case], None], tmp_path: Path) -> None:
    make, said = VIDEOS[name]
    make(tmp_path / name)
    more = ["--observe", "2", "--horizon", "1"] if command == "generate" else []
    refused(([command, name, "--weights", "run", "--out", "run", *more], [name, *said]))


@pytest.mark.parametrize("name", [*TOO_LITTLE_TO_GO_ON_FROM, *ODD])
def test_videos_that_can_be_tracked_but_not_gone_on_from(
    name: str, refused: Callable[[Case], None], tmp_path: Path
) -> None:
    make, said = {**TOO_LITTLE_TO_GO_ON_FROM, **ODD}[name]
    make(tmp_path / name)
    words = ["generate", name, "--weights", "run", "--out", "run", "--observe", "2", "--horizon", "1"]
    # A frame of a wrong size is told by its shape, everything else by the file's name.
    refused((words, said if name in ODD else [name, *said]))


def test_a_video_too_short_to_go_on_from(refused: Callable[[Case], None], videos: dict[str, Path]) -> None:
    refused((["generate", videos["npy"], "--weights", "run", "--observe", 7], ["6 frames", "--observe 7"]))


@pytest.mark.parametrize("form", ["mp4", "npy", "png"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--region", "0", "0", "40", "32"], ["region is (0, 0, 40, 32)", "32 x 32 pixels", "stay within"]),
        (["--start", "7"], ["start is 7", "no frame from then on", "choose an earlier start"]),
    ],
)
def test_parts_that_a_video_does_not_have(
    words: list[str], said: list[str], form: str, refused: Callable[[Case], None], videos: dict[str, Path]
) -> None:
    refused((["track", videos[form], "--weights", "run", "--out", "run", *words], said))


# Places -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train", "track", "generate", "demo"])
def test_folders_that_cannot_be(
    command: str,
    refused: Callable[[Case], None],
    videos: dict[str, Path],
    weights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("any", "shapes-md"):
        shutil.copy(weights, tmp_path / f"{name}.safetensors")
    monkeypatch.setattr("scalor.checkpoint.WEIGHTS", tmp_path)
    (tmp_path / "file").write_text("a file, not a folder")
    given: dict[str, list[Any]] = {
        "train": ["train", "shapes-tiny", *TINY],
        "track": ["track", videos["npy"]],
        "generate": ["generate"],
        "demo": ["demo"],
    }
    for where in ("file", "file/below"):
        refused(([*given[command], "--out", where], [f"folder {where} cannot be written", "--out"]))


def test_a_folder_in_the_way_of_a_result(
    refused: Callable[[Case], None], videos: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "out" / "tracks.csv").mkdir(parents=True)
    refused((["track", videos["npy"], "--weights", "run", "--out", "out"], ["out/tracks.csv", "it is a folder"]))


def test_a_folder_that_may_not_be_written(
    refused: Callable[[Case], None], videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is for anyone but the superuser, whom no permission stops."""

    def forbidden(dir: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(dir))

    monkeypatch.setattr(tempfile, "TemporaryFile", forbidden)
    words = ["track", videos["npy"], "--weights", "run", "--out", "run"]
    refused((words, ["folder run cannot be written (Permission denied)", "choose another with --out"]))


def test_a_disk_that_fills_up_while_tracking(
    refused: Callable[[Case], None], say: Say, videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert say("track", videos["npy"], "--weights", "run", "--out", "out").code == 0
    add = TrackTables.add

    def full(self: TrackTables, frame: TrackedFrame) -> None:
        if frame.index == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        add(self, frame)

    monkeypatch.setattr(TrackTables, "add", full)
    refused((["track", videos["npy"], "--weights", "run", "--out", "out"], ["No space left on device"]))


def test_a_video_is_not_gone_on_from_with_weights_that_need_its_empty_scene(say: Say) -> None:
    write_video("seen.mp4", np.zeros((3, 32, 32, 3), np.uint8), 10)
    assert "`scalor predict seen.mp4 --weights pets`" in say("generate", "seen.mp4", "--weights", "pets").complaint


@pytest.mark.parametrize("command", ["track", "generate"])
def test_weights_that_know_no_objects_are_refused_where_objects_are_wanted(command: str, say: Say) -> None:
    scalor.save(scalor.build("vrnn-shapes-tiny"), "plain.safetensors")
    write_video("seen.mp4", np.zeros((3, 32, 32, 3), np.uint8), 10)
    spoken = say(command, "seen.mp4", "--weights", "plain.safetensors")
    assert spoken.code == 2
    assert "plain.safetensors are of a vrnn" in spoken.err


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")]
)
def test_too_little_memory_is_a_sentence(error: Exception, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("scalor.cli.main.dispatch", fail)
    assert say("presets").complaint.startswith("not enough memory: ask for less (a smaller --region")


def test_other_errors_of_the_libraries_are_not_hidden(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("scalor.cli.main.dispatch", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        say("presets")


def test_pipes_and_devices_are_not_waited_for(refused: Callable[[Case], None], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for words in (
        ["info", "pipe"],
        ["score", "pipe", "--truth", "pipe"],
        ["track", "pipe"],
        ["score", "/dev/zero", "--truth", "/dev/zero"],
    ):
        refused((words, ["is not a file"]))


@pytest.mark.parametrize("text", ["1,1,1e308,1e308,1e308,1e308,1", "1e300,1,1,1,2,2,1", "1,1e13,1,1,2,2,1"])
def test_numbers_that_no_table_of_tracks_can_hold(text: str, refused: Callable[[Case], None], tmp_path: Path) -> None:
    (tmp_path / "gt.txt").write_text(text + "\n")
    refused((["score", "gt.txt", "--truth", "gt.txt"], ["row 1", "at most 1e+12"]))


@pytest.mark.parametrize("number", ["99999999999999999999", "9" * 5_000, "\u0663", "\u00b2", "1_0", "-1", "1e3"])
def test_whole_numbers_have_bounds(number: str, refused: Callable[[Case], None], videos: dict[str, Path]) -> None:
    for option in ("--observe", "--seed", "--slots"):
        refused((["predict", videos["npy"], f"{option}={number}"], [option, "whole number of at least"]))
