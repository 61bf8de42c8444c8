"""`scalor fit`: from a video to a run folder that `scalor track` takes."""

from pathlib import Path

import numpy as np
import pytest
import torch

from scalor import checkpoint
from scalor.data.footage import Frames
from scalor.errors import InputError
from scalor.fitting import refine
from scalor.fitting.fit import name_of
from scalor.fitting.refine import LabelFreeScore
from scalor.tracking.video_view import VideoView

from .conftest import Say

REFINED = [
    *("--steps", "4", "--train.batch", "2", "--train.save_every", "2", "--train.picture_every", "2", "--device", "cpu")
]
SMALL = [
    *(
        "--scratch",
        "--steps",
        "6",
        "--train.batch",
        "2",
        "--train.save_every",
        "2",
        "--model.glimpse",
        "8",
        "--model.what_dim",
        "4",
    ),
    *("--model.feature_dim", "8", "--model.tracker_dim", "8", "--model.prior_dim", "8", "--device", "cpu"),
]


@pytest.fixture
def film(tmp_path: Path) -> Path:
    """Two boxes walk over a noisy scene."""
    return draw_film(tmp_path / "film.npy")


def draw_film(path: Path) -> Path:
    """Write a video of two boxes that walk over a noisy scene."""
    random = np.random.default_rng(0)
    pictures = np.repeat(random.integers(60, 140, (1, 48, 64, 3)), 40, 0)
    for t in range(40):
        for top, left in ((6, 2 * t - 10), (28, 60 - 2 * t)):
            pictures[t, top : top + 14, max(left, 0) : max(left + 7, 0)] = (250, 20, 30)
    np.save(path, pictures.astype(np.uint8))
    return path


def test_universal_weights_are_refined_and_compared_without_labels(say: Say, film: Path) -> None:
    spoken = say("fit", film, "--out", "mine", *REFINED)
    assert spoken.code == 0, spoken.err
    assert "refines  any in 4 steps, on 40 frames" in spoken.out
    assert "any      explains " in spoken.out
    assert "refined  explains " in spoken.out
    files = {file.name for file in Path("mine").iterdir()}
    assert {"model.safetensors", "chosen.json", "footage.npz", "log.jsonl", "preview.png"} <= files
    document = say("track", film, "--weights", "mine", "--json").document
    assert document["frames"] == 40
    assert document["health"]["verdict"] in ("good", "doubtful", "not to be trusted")


def test_a_refinement_goes_on_with_its_own_part_of_the_video(
    say: Say, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = []

    def watched(view: VideoView, tracker: object) -> LabelFreeScore:
        parts.append(view.video.selection.region)
        return LabelFreeScore(1.0, 1.0, 1.0, 1.0)

    monkeypatch.setattr("scalor.fitting.fit.label_free_score", watched)
    region = ["--region", "0", "0", "64", "40"]
    assert say("fit", film, "--out", "mine", *REFINED, *region).code == 0
    assert say("fit", film, "--out", "mine", "--resume", "--device", "cpu").code == 0
    assert parts == [(0, 0, 64, 40)] * 4
    assert (
        "--weights is given with --resume" in say("fit", film, "--out", "mine", "--resume", "--weights", "a").complaint
    )


def test_a_refinement_that_helps_is_kept(say: Say, film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([LabelFreeScore(0.8, 0.9, 0.9, 0.9), LabelFreeScore(0.9, 0.9, 0.9, 0.9)])
    monkeypatch.setattr("scalor.fitting.fit.label_free_score", lambda view, tracker: next(scores))
    assert "the refined weights are kept" in say("fit", film, "--out", "mine", *REFINED).out
    kept, started = checkpoint.read(Path("mine/model.safetensors")), checkpoint.read(checkpoint.find("any"))
    assert any(not torch.equal(kept.weights[name], tensor.float()) for name, tensor in started.weights.items())


@pytest.mark.parametrize("explained", [0.2, 0.9])
def test_a_refinement_that_does_not_help_clearly_is_not_kept(
    explained: float, say: Say, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([LabelFreeScore(0.9, 0.9, 0.9, 0.9), LabelFreeScore(explained, 0.9, 0.9, 0.9)])
    monkeypatch.setattr("scalor.fitting.fit.label_free_score", lambda view, tracker: next(scores))
    spoken = say("fit", film, "--out", "mine", *REFINED, "--train.learning_rate", "0.5")
    assert "refining did not help: the folder holds any's weights" in spoken.out
    kept, started = checkpoint.read(Path("mine/model.safetensors")), checkpoint.read(checkpoint.find("any"))
    for name, tensor in started.weights.items():
        assert torch.equal(kept.weights[name], tensor.float())
    assert kept.config.scene.kind == "footage"


def test_minutes_become_steps_and_words_that_do_not_fit_are_refused(
    say: Say, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refine, "FEWEST_STEPS", 4)
    document = say("fit", film, "--out", "mine", "--minutes", "0.01", "--train.batch", "2", "--device", "cpu", "--json")
    assert document.document["step"] == 4  # the fewest, as so little time leaves none
    assert "--scale is 0.5" in say("fit", film, "--out", "b", "--scale", "0.5").complaint
    assert "give --steps instead" in say("fit", film, "--out", "c", "--scratch", "--minutes", "3").complaint
    assert "give universal weights" in say("fit", film, "--out", "d", "--weights", "shapes-md").complaint


def test_a_video_is_fitted_and_then_tracked_with_what_came_of_it(say: Say, film: Path) -> None:
    spoken = say("fit", film, "--out", "mine", *SMALL)
    assert spoken.code == 0, spoken.err
    assert "objects      about 1" in spoken.out
    assert "next: scalor track" in spoken.out
    assert {"model.safetensors", "chosen.json", "footage.npz", "log.jsonl"} <= {f.name for f in Path("mine").iterdir()}
    document = say("track", film, "--weights", "mine", "--json").document
    assert document["frames"] == 40
    assert say("track", film, "--weights", "mine", "--raw", "--masks", "--json").document["frames"] == 40


def test_fits_of_many_videos_are_not_shared_by_ranks(say: Say, film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "--each is given under torchrun" in say("fit", film, "--each", "--out", "all").complaint


def test_a_fit_goes_on_where_it_stopped_and_is_not_written_over(say: Say, film: Path) -> None:
    assert say("fit", film, "--out", "mine", *SMALL).code == 0
    assert "continue it with --resume" in say("fit", film, "--out", "mine", *SMALL).complaint
    again = say("fit", film, "--out", "mine", "--resume", "--json", "--device", "cpu").document
    assert again["step"] == 6


def test_a_fit_that_goes_on_takes_no_other_settings(say: Say, film: Path) -> None:
    assert say("fit", film, "--out", "mine", *SMALL).code == 0
    given = "--steps 12", "--object-size 9x9", "--end 2", "--start 0", "--fps 25", "--model.sigma 0.1"
    for words in map(str.split, given):
        assert f"{words[0]} is given with --resume" in say("fit", film, "--out", "mine", "--resume", *words).complaint
    assert "folder other holds no run to resume" in say("fit", film, "--out", "other", "--resume").complaint
    assert not Path("other").exists()


def test_a_run_is_called_after_its_video() -> None:
    assert name_of("films/walkers.mp4") == "walkers"
    assert name_of("films/ants/*.png") == "ants"
    assert name_of("films/ants/") == "ants"
    for video in (".", "*.png", ".."):
        with pytest.raises(InputError, match="choose its folder with --out"):
            name_of(video)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--object-size", "9"], "--object-size"),
        (["--scale", "0"], "'0' must be above 0"),
        (["--region", "0", "0", "900", "40"], "region is (0, 0, 900, 40)"),
        (["--model.glimpse", "9"], "model.glimpse is 9"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], said: str, say: Say, film: Path) -> None:
    assert said in say("fit", film, "--out", "mine", *words).complaint


def test_a_setting_that_cannot_be_is_refused_before_frames_are_kept(
    say: Say, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("scalor.fitting.scratch.keep")
    assert "model.glimpse is 9" in say("fit", film, "--out", "mine", "--model.glimpse", "9").complaint


def test_frames_are_kept_as_the_settings_say(say: Say, film: Path) -> None:
    said = ("--scene.scale", "1.25", "--scene.stride", "2", "--scene.contrast", "1.5")
    spoken = say("fit", film, "--out", "mine", *said, *SMALL)
    assert spoken.code == 0, spoken.err
    kept = Frames.load(Path("mine/footage.npz"))
    assert kept.frames.shape == (20, 3, 60, 80)
    assert kept.frames.min() == 0 < np.load(film).min()  # what is dark becomes darker
    assert "learns from  20 frames" in spoken.out


@pytest.mark.parametrize("first", [True, False])
def test_a_video_too_short_for_a_clip_is_refused_by_its_name(say: Say, film: Path, tmp_path: Path, first: bool) -> None:
    np.save(tmp_path / "short.npy", np.load(film)[14:23])
    videos = (tmp_path / "short.npy", film) if first else (film, tmp_path / "short.npy")
    complaint = say("fit", *videos, "--out", "mine", "--stride", "1", *SMALL).complaint
    assert "short.npy has 9 frames at stride 1 and a clip needs 10" in complaint
    assert list(Path("mine").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stride", "5"], "film.npy has 8 frames at stride 5 and a clip needs 10"),
        (["--scene.stride", "5"], "film.npy has 8 frames at stride 5 and a clip needs 10"),
        (["--scene.frame", "[64, 64]"], "scene.frame is (64, 64)"),
    ],
)
def test_what_leaves_nothing_to_learn_from_is_refused_and_can_be_said_again(
    words: list[str], said: str, say: Say, film: Path
) -> None:
    assert said in say("fit", film, "--out", "mine", *SMALL, *words).complaint
    assert say("fit", film, "--out", "mine", *SMALL).code == 0


def test_a_video_with_nothing_moving_is_told(say: Say, tmp_path: Path) -> None:
    np.save(tmp_path / "still.npy", np.full((12, 48, 64, 3), 90, np.uint8))
    assert "shows nothing that moves" in say("fit", tmp_path / "still.npy", "--out", "mine").complaint


def test_videos_of_two_sizes_are_refused(say: Say, film: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "other.npy", np.load(film)[:, :40])
    assert "fit videos of one size together" in say("fit", film, tmp_path / "other.npy", "--out", "mine").complaint
