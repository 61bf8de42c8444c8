"""Every command does its work, and with --json says it in one document on stdout."""

import json
import math
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from torch import Tensor

import scalor
from scalor import InputError, checkpoint, presets
from scalor.cli import train
from scalor.systems import config_from_dict
from scalor.training.step import Anneals, TrainingStep
from scalor.video import iterate_frames

from .conftest import TINY, Say, contents

# Listing ----------------------------------------------------------------------------------------------


def test_presets_lists_them_all(say: Say) -> None:
    spoken = say("presets")
    lines = spoken.out.splitlines()
    assert [line.split()[0] for line in lines] == list(presets.PRESETS)
    assert all(len(line.split()) > 3 for line in lines)
    assert say("presets", "--json").document == {name: presets.describe(name) for name in presets.PRESETS}


def test_presets_shows_one_whole(say: Say) -> None:
    document = say("presets", "shapes-tiny", "--json").document
    assert config_from_dict(document) == scalor.get_preset("shapes-tiny")
    lines = dict(line.split(maxsplit=1) for line in say("presets", "shapes-tiny").out.splitlines())
    assert json.loads(lines["model.slots"]) == 10
    assert json.loads(lines["train.lengths"]) == [[0, 1], [400, 2], [1200, 4]]
    assert json.loads(lines["system"]) == document.pop("system") == "scalor"
    assert len(lines) == 1 + sum(len(section) for section in document.values())


def test_info_tells_what_is_in_a_checkpoint(say: Say, weights: Path) -> None:
    document = say("info", weights, "--json").document
    model = scalor.load(weights)
    assert document["parameters"] == sum(p.numel() for p in model.state_dict().values())
    assert document["bytes"] == weights.stat().st_size
    assert document["config"]["model"]["slots"] == 4
    assert {"command", "commit", "seed", "step", "hardware", "date"} <= set(document["provenance"])
    out = say("info", weights).out
    assert f"{document['parameters']:,} parameters" in out
    assert "32x32, grid 4x4" in out
    assert "up to 4, about 7x7 px" in out


# Learning ---------------------------------------------------------------------------------------------


def test_train_then_evaluate(say: Say, tmp_path: Path) -> None:
    spoken = say("train", "shapes-tiny", "--clips", 2, "--json", "--out", "run", "--device", "cpu", *TINY)
    document = spoken.document
    assert "step" in spoken.err
    assert (document["folder"], document["step"], document["skipped_steps"], document["clips"]) == ("run", 4, 0, 2)
    assert document["metrics"]["clips"] == 2
    assert len(document["metrics"]["forecast"]["mse"]) == 2
    assert document["provenance"]["step"] == 4

    measured = say("evaluate", "run", "--clips", 2, "--json").document
    # Not to the last digit: where weights lie in memory decides in which order they are summed.
    assert leaves(measured["metrics"]) == pytest.approx(leaves(document["metrics"]), rel=1e-5, nan_ok=True)
    assert measured["provenance"]["step"] == 4
    assert measured["weights"] == "run"
    table = say("evaluate", "run", "--clips", 1, "--nll-samples", 1).out
    for word in ("MOTA", "paper", "strict", "iou", "HOTA", "1 unseen clips", "nats per pixel (1 samples)"):
        assert word in table


def leaves(value: Any, name: str = "") -> dict[str, float]:
    """Every single figure of a document, by its path; NaN where there is none."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {path: leaf for key, part in parts for path, leaf in leaves(part, f"{name}.{key}").items()}
    return {name: math.nan if value is None else value}


def test_train_for_people_goes_to_its_own_folder_and_goes_on(say: Say, tmp_path: Path) -> None:
    spoken = say("train", "shapes-tiny", "--clips", 1, *TINY)
    assert spoken.code == 0
    assert spoken.out.startswith("trained 4 steps in ")
    assert "runs/shapes-tiny" in spoken.out
    assert "{" not in spoken.out
    assert checkpoint.read(tmp_path / "runs/shapes-tiny/model.safetensors").config.train.steps == 4
    again = say("train", "shapes-tiny", "--clips", 1, "--resume", "--json", *TINY, "--train.steps=5")
    assert again.document["step"] == 5


def test_seeds_train_side_by_side_each_into_its_own_folder(say: Say, tmp_path: Path) -> None:
    documents = say("train", "shapes-tiny", "--seeds", 3, 1, "--clips", 2, "--json", *TINY).document
    assert [document["folder"] for document in documents] == ["runs/shapes-tiny-seed3", "runs/shapes-tiny-seed1"]
    assert [document["provenance"]["seed"] for document in documents] == [3, 1]
    for document in documents:
        assert json.loads(Path(document["folder"], "metrics.json").read_text()) == document
    single = say("train", "shapes-tiny", "--out", "one", "--clips", 2, "--json", *TINY, "--train.seed", 1).document
    assert single["metrics"] == documents[1]["metrics"]
    assert tensors("one") == tensors("runs/shapes-tiny-seed1") != tensors("runs/shapes-tiny-seed3")


def tensors(folder: str) -> dict[str, list[float]]:
    read = checkpoint.read(Path(folder, "resume.safetensors")).tensors
    return {name: tensor.flatten().tolist() for name, tensor in read.items()}


def test_side_by_side_people_get_a_line_a_run_and_the_spread_of_the_seeds(say: Say) -> None:
    words = ["train", "shapes-tiny", "shapes-vld", "--seeds", 0, 1, "--out", "all", "--clips", 1, *TINY]
    spoken = say(*words, "--train.steps", 1)
    assert spoken.code == 0
    header, *lines = spoken.out.splitlines()
    assert header.split()[:3] == ["run", "steps", "seconds"]
    names = [f"{preset}-seed{seed}" for preset in ("shapes-tiny", "shapes-vld") for seed in (0, 1)]
    assert [line.split()[:2] for line in lines[:4]] == [[f"all/{name}", "1"] for name in names]
    assert len({len(line) for line in (header, *lines[:4])}) == 1
    for line, preset in zip(lines[4:], ("shapes-tiny", "shapes-vld"), strict=True):
        assert re.fullmatch(rf"{preset}, 2 seeds: strict MOTA {SPREAD}, paper MOTA {SPREAD}", line)
    assert all(f"{name}: 100%" in spoken.err for name in names)
    again = say(*words, "--train.steps", 2, "--resume", "--json")
    assert [document["step"] for document in again.document] == [2, 2, 2, 2]


SPREAD = r"-?\d+\.\d{3} \(-?\d+\.\d{3}\.\.-?\d+\.\d{3}\)"


def test_the_spread_is_the_mean_and_the_range() -> None:
    assert train.spread([0.5, 0.9, 0.7]) == "0.700 (0.500..0.900)"


def test_presets_train_side_by_side_with_a_seed_of_their_own(say: Say) -> None:
    words = ["train", "shapes-tiny", "shapes-vld", "--clips", 1, *TINY, "--train.steps", 1, "--train.seed", 7]
    documents = say(*words, "--json").document
    assert [document["folder"] for document in documents] == ["runs/shapes-tiny", "runs/shapes-vld"]
    assert [document["provenance"]["seed"] for document in documents] == [7, 7]


def test_a_run_that_breaks_is_told_of_at_the_end_and_the_others_are_measured(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = TrainingStep.__call__

    def sometimes(self: TrainingStep, number: int, now: Anneals) -> Tensor:
        if self.config.train.seed == 1:
            raise InputError("the moon is too high: wait.")
        return step(self, number, now)

    monkeypatch.setattr(TrainingStep, "__call__", sometimes)
    spoken = say("train", "shapes-tiny", "--seeds", 0, 1, 2, "--clips", 1, "--json", *TINY)
    assert spoken.code == 2
    folders = [document["folder"] for document in json.loads(spoken.out)]
    assert folders == ["runs/shapes-tiny-seed0", "runs/shapes-tiny-seed2"]
    assert all(Path(folder, "metrics.json").exists() for folder in folders)
    assert spoken.err.endswith("scalor: runs/shapes-tiny-seed1: the moon is too high: wait.\n")


def test_a_stop_signal_is_told_run_by_run(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    step = TrainingStep.__call__

    def stopped(self: TrainingStep, number: int, now: Anneals) -> Tensor:
        if (self.config.train.seed, number) == (1, 1):
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, number, now)

    words = ["train", "shapes-tiny", "--seeds", 0, 1, "--clips", 1, *TINY]
    with monkeypatch.context() as patch:
        patch.setattr(TrainingStep, "__call__", stopped)
        spoken = say(*words)
    assert (spoken.code, spoken.out) == (128 + signal.SIGTERM, "")
    assert spoken.err.endswith(
        "runs/shapes-tiny-seed0: stopped at step 3; continue it with --resume\n"
        "runs/shapes-tiny-seed1: stopped at step 2; continue it with --resume\n"
    )
    assert [document["step"] for document in say(*words, "--resume", "--json").document] == [4, 4]


def test_evaluate_on_the_scenes_of_another_preset(say: Say, weights: Path) -> None:
    document = say("evaluate", weights, "--clips", 1, "--preset", "shapes-vld", "--json").document
    assert len(document["metrics"]["forecast"]["mse"]) == 5  # ten frames, not the model's own seven
    assert document["metrics"]["nll"] is None


# Seeing -----------------------------------------------------------------------------------------------


IMAGINED = {"strip.png", "generated.mp4", "generated.gif", "generated_tracks.csv"}


@pytest.mark.parametrize(("source", "total"), [("clip", 6), ("video", 6), ("beyond", 9), ("scratch", 6)])
@pytest.mark.parametrize("as_json", [True, False])
def test_generate_imagines_how_a_scene_goes_on(
    source: str, total: int, as_json: bool, say: Say, weights: Path, videos: dict[str, Path]
) -> None:
    observe = 4
    sources: dict[str, list[object]] = {
        "clip": ["--clip", 3],
        "video": [videos["mp4"]],  # six frames: the truth of the imagined ones is known
        "beyond": [videos["mp4"]],
        "scratch": ["--scratch", "--rate", 0.5],
    }
    command = ["generate", *sources[source], "--weights", weights, "--observe", observe, "--horizon", total - observe]
    spoken = say(*command, *(["--json"] if as_json else []))
    if as_json:
        document = spoken.document
        assert document["folder"] == "generated"
        counted = document["frames"] if source == "scratch" else document["observed"] + document["imagined"]
        assert counted == total
    else:
        assert spoken.code == 0
        assert len(spoken.out.splitlines()) == 1
        assert spoken.out.endswith("see generated\n")
    assert {path.name for path in Path("generated").iterdir()} == IMAGINED
    for name in ("generated.mp4", "generated.gif"):
        assert len(list(iterate_frames(f"generated/{name}"))) == total
    with Image.open("generated/strip.png") as strip:
        assert strip.width > 32 * total


def test_the_seed_is_the_imagination(say: Say, weights: Path) -> None:
    drawn = []
    for seed in (1, 1, 2):
        say(
            "generate", "--scratch", "--rate", 0.5, "--weights", weights, "--seed", seed, "--observe", 1, "--horizon", 1
        )
        drawn.append(Path("generated/strip.png").read_bytes())
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("as_json", [True, False])
def test_demo_shows_everything(
    as_json: bool, say: Say, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "weights"
    shipped.mkdir()
    (shipped / "shapes-md.safetensors").write_bytes(weights.read_bytes())
    monkeypatch.setattr(checkpoint, "WEIGHTS", shipped)
    before = contents(shipped)
    spoken = say("demo", "--clips", 1, *(["--json"] if as_json else []))
    made = {path.name for path in Path("demo").iterdir()}
    assert {"overlay.mp4", "overlay.gif", "tracks.csv", "tracks_mot.txt"} <= made
    assert made - {"overlay.mp4", "overlay.gif", "tracks.csv", "tracks_mot.txt"} == IMAGINED
    frames = {"overlay.mp4": 20, "overlay.gif": 20, "generated.mp4": 15, "generated.gif": 15}
    for name, count in frames.items():
        assert len(list(iterate_frames(f"demo/{name}"))) == count
    with Image.open("demo/strip.png") as strip:
        strip.load()
    assert len(Path("demo/tracks.csv").read_text().splitlines()) > 1
    if as_json:
        document = spoken.document
        assert {Path(file).name for file in document["files"]} == made
        assert (document["clips"], document["metrics"]["clips"]) == (1, 1)
        assert document["provenance"]["date"]
    else:
        assert spoken.code == 0
        assert "MOTA" in spoken.out
        assert all(f"demo/{name}" in spoken.out for name in made)
    assert "tracking 1 unseen clips" in spoken.err
    assert contents(shipped) == before
