"""What is there is kept, what is missing is made, what is half done goes on, and what is something else is refused."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from scalor import InputError, checkpoint
from scalor.files import Stopped
from scalor.presets import PRESETS, get_preset
from scalor.reproduce import catalogue, experiments
from scalor.reproduce.catalogue import choose, locate
from scalor.reproduce.work import work
from scalor.systems import config_from_dict
from scalor.training import loop
from scalor.training.loop import Job, train_together
from scalor.training.step import TrainingStep

from .small import STEPS, cell, order, shrink_presets, write_digits, write_station


@pytest.fixture(autouse=True)
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_presets(monkeypatch)
    write_digits(tmp_path)
    monkeypatch.setenv("SCALOR_MNIST", str(tmp_path))
    monkeypatch.setattr(experiments, "OBJECTS", (1, 2))
    monkeypatch.setattr(experiments, "TIMED_FRAMES", 4)
    monkeypatch.setattr(catalogue, "CURVE_POINTS", 2)


@pytest.fixture(scope="module")
def md(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished training of shapes-md, seed 0. Look, do not touch."""
    folder = tmp_path_factory.mktemp("md")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch.utils.tensorboard", None)
        shrink_presets(patch)
        loop.train(cell("tracking", "md").config, folder, order(folder).device, quiet=True)
    return folder


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The folders of every training from now on, side by side in one list."""
    batches = []

    def noted(jobs: list[Job], *more: Any, **named: Any) -> Any:
        batches.append([job.folder.name for job in jobs])
        return train_together(jobs, *more, **named)

    monkeypatch.setattr("scalor.reproduce.work.train_together", noted)
    return batches


def before_step(monkeypatch: pytest.MonkeyPatch, action: Callable[[TrainingStep, int], None]) -> None:
    step = TrainingStep.__call__

    def wrapped(self: TrainingStep, number: int, now: Any) -> Tensor:
        action(self, number)
        return step(self, number, now)

    monkeypatch.setattr(TrainingStep, "__call__", wrapped)


# What is in a result ----------------------------------------------------------------------------------


def test_a_result_says_what_was_measured_and_where_it_comes_from(tmp_path: Path) -> None:
    where = order(tmp_path)
    one = cell("tracking", "md", seed=3)
    outcome = work([one], where)
    document = json.loads((tmp_path / "results/tracking/shapes-md-seed3.json").read_text())
    assert outcome.documents == {one: document}
    assert (document["table"], document["setting"], document["seed"]) == ("tracking", "shapes-md", 3)
    metrics = document["metrics"]
    assert {f"{gate}_mota" for gate in ("paper", "strict", "iou")} <= set(metrics)
    assert {"hota", "strict_idf1", "count_mae", "mse", "clips"} <= set(metrics)
    assert metrics["nll"] is None
    training, evaluation = document["training_provenance"], document["evaluation_provenance"]
    assert {"command", "commit", "hardware", "date", "torch"} <= set(training) & set(evaluation)
    assert (training["step"], training["seed"], training["side_by_side"]) == (STEPS, 3, 1)
    assert training["seconds"] > 0
    assert (evaluation["clips"], evaluation["nll_samples"]) == (1, 0)
    assert config_from_dict(document["asked"]["config"]) == one.config


def test_a_classical_tracker_is_measured_without_a_training(tmp_path: Path, trained: list[list[str]]) -> None:
    one = cell("tracking", "md-classical-foreground", seed=3)
    outcome = work([one], order(tmp_path))
    path = tmp_path / "results/tracking/shapes-md-classical-foreground-seed0.json"
    document = json.loads(path.read_text())
    assert outcome.documents == {one: document}
    assert (document["system"], document["preset"]) == ("classical, foreground", "shapes-md")
    assert {"strict_mota", "hota", "strict_idf1", "count_mae"} <= set(document["metrics"])
    assert (document["metrics"]["mse"], document["training_provenance"]) == (None, None)
    assert trained == []
    assert work([one], order(tmp_path)).kept == {one}
    document["asked"]["config"]["train"]["steps"] += 1  # of no use to it
    path.write_text(json.dumps(document))
    assert work([one], order(tmp_path)).kept == {one}


def test_every_table_has_its_own_figures(tmp_path: Path, trained: list[list[str]]) -> None:
    cells = [
        cell("likelihood", "md"),
        cell("ablation", "ablation-neither"),
        cell("generation", "md"),
        cell("efficiency", "md-cpu"),
        cell("efficiency", "sqair-vld-cpu"),
        cell("efficiency", "mnist-vld"),
        cell("generalisation", "crowd"),
        cell("generalisation", "dense-discovery"),
        cell("balls", "balls-interaction"),
    ]
    outcome = work(cells, order(tmp_path))
    assert outcome.broken == []
    likely, ablated, generated, fast, slow, learnt, crowd, dense, bouncing = outcome.documents.values()
    assert isinstance(likely["metrics"]["nll"], float)
    assert likely["evaluation_provenance"]["nll_samples"] == 1
    assert ablated["asked"]["config"]["model"]["rejection"] is False
    assert [line["step"] for line in ablated["evaluations"]] == [2, 4]
    assert len(generated["forecast"]["mse"]) == len(generated["forecast"]["centre_constant_velocity"]) == 15
    for timed in (fast, slow):
        assert [row["objects"] for row in timed["speed"]] == [1, 2]
        assert all(row["ms_per_frame"] > 0 for row in timed["speed"])
        assert (timed["device"], timed["threads"]) == ("cpu", torch.get_num_threads())
    assert (fast["system"], slow["system"]) == ("SCALOR", "SQAIR")
    assert [line["step"] for line in learnt["training"]] == [2, 4]
    assert learnt["training"][0]["seconds"] < learnt["training"][-1]["seconds"]
    assert crowd["metrics"]["strict_objects"] != crowd["metrics_as_trained"]["strict_objects"]
    assert "metrics_as_trained" not in dense  # tested on the scenes that it was trained on
    assert len(generated["looks"]["picture"]) == 30
    assert len(bouncing["rollouts"]["psnr"]) == 2  # twelve frames, ten of which are observed
    assert bouncing["metrics"]["forecast"] is None
    side_by_side, alone = trained
    assert len(side_by_side) == len(set(side_by_side)) == 6  # the same shapes-md for three tables
    assert likely["training_provenance"]["side_by_side"] == 6
    assert alone == ["mnist-vld-seed0"]  # its time is what is shown
    assert learnt["training_provenance"]["side_by_side"] == 1


def test_all_systems_are_trained_side_by_side_and_measured_in_the_same_way(
    tmp_path: Path, trained: list[list[str]]
) -> None:
    names = ("vld", "vrnn-vld", "sqair-vld", "vae-vld")
    cells = [cell("likelihood", name) for name in names]
    outcome = work([*cells, cell("tracking", "sqair-vld")], order(tmp_path, nll_samples=3))
    assert outcome.broken == []
    assert trained == [[f"{one.setting.name}-seed0" for one in cells]]
    *likely, tracked = outcome.documents.values()
    assert [document["system"] for document in likely] == ["SCALOR", "VRNN", "SQAIR", "sequential VAE"]
    for one, document in zip(cells, likely, strict=True):
        assert document["asked"]["config"]["system"] == one.config.system
        assert document["metrics"]["nll_samples"] == document["evaluation_provenance"]["nll_samples"] == 3
        assert isinstance(document["metrics"]["nll"], float)
        assert ("strict_mota" in document["metrics"]) == (document["system"] in ("SCALOR", "SQAIR"))
        assert document["training_provenance"]["side_by_side"] == 4
    assert (tracked["system"], tracked["preset"]) == ("SQAIR", "sqair-shapes-vld")
    assert {"strict_mota", "hota", "count_mae"} <= set(tracked["metrics"])
    assert work(cells, order(tmp_path, nll_samples=3)).kept == set(cells)


def test_a_replay_has_tracks_and_likelihoods_and_says_that_it_is_semi_synthetic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_station(tmp_path)
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))
    outcome = work(choose(["replay"], [], [0]), order(tmp_path, nll_samples=2))
    assert outcome.broken == []
    ours, vrnn, vae, small, given = outcome.documents.values()
    everyone = (ours, vrnn, vae, small, given)
    assert [one["system"] for one in everyone] == ["SCALOR", "VRNN", "sequential VAE", "SCALOR", "SCALOR"]
    for one in everyone:
        assert one["semi_synthetic"] is True
        assert isinstance(one["metrics"]["nll"], float)
        assert one["asked"]["nll_samples"] == one["metrics"]["nll_samples"] == 2
    assert {"paper_mota", "strict_mota", "iou_mota", "hota", "strict_idf1", "count_mae"} <= set(ours["metrics"])
    assert set(given["metrics"]) == set(ours["metrics"])
    assert "hota" not in vrnn["metrics"]


# What is not made again -------------------------------------------------------------------------------


def test_a_result_that_is_there_is_kept(md: Path, tmp_path: Path, trained: list[list[str]]) -> None:
    one = cell("tracking", "md")
    shutil.copytree(md, tmp_path / "runs/shapes-md-seed0")
    work([one], order(tmp_path))
    path = tmp_path / "results/tracking/shapes-md-seed0.json"
    before = path.read_bytes()
    shutil.rmtree(tmp_path / "runs")
    outcome = work([one], order(tmp_path))
    assert (path.read_bytes(), outcome.kept) == (before, {one})
    assert trained == []


@pytest.mark.parametrize("change", ["clips", "preset", "broken"])
def test_a_result_of_something_else_is_made_again(
    change: str, md: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: list[list[str]]
) -> None:
    one = cell("tracking", "length")
    shutil.copytree(md, tmp_path / "runs/shapes-md-seed0")
    work([one], order(tmp_path))
    path = tmp_path / "results/tracking/shapes-length-seed0.json"
    if change == "preset":
        config = get_preset("shapes-length")
        changed = replace(config, test=replace(config.test, length=14))
        monkeypatch.setitem(PRESETS, "shapes-length", lambda: changed)
    if change == "broken":
        path.write_text("{}")
    outcome = work([one], order(tmp_path, clips=2 if change == "clips" else 1))
    assert outcome.kept == set()
    assert outcome.documents[one]["metrics"]["clips"] == (2 if change == "clips" else 1)
    assert trained == []  # the weights are the same


def test_a_training_serves_every_preset_that_differs_only_in_its_test(tmp_path: Path, trained: list[list[str]]) -> None:
    work([cell("tracking", "length")], order(tmp_path))
    assert trained == [["shapes-md-seed0"]]
    assert checkpoint.read(tmp_path / "runs/shapes-md-seed0/model.safetensors").config == cell("tracking", "md").config
    work([cell("tracking", "md"), cell("likelihood", "md")], order(tmp_path))
    assert trained == [["shapes-md-seed0"]]


def test_a_training_is_also_found_under_the_name_of_its_twin(
    md: Path, tmp_path: Path, trained: list[list[str]]
) -> None:
    shutil.copytree(md, tmp_path / "runs/shapes-length-seed0")
    work([cell("likelihood", "md")], order(tmp_path))
    assert trained == []


def test_weights_that_were_copied_here_are_enough(md: Path, tmp_path: Path, trained: list[list[str]]) -> None:
    (tmp_path / "runs/shapes-md-seed0").mkdir(parents=True)
    shutil.copy(md / "model.safetensors", tmp_path / "runs/shapes-md-seed0")
    assert work([cell("tracking", "md")], order(tmp_path)).broken == []
    assert trained == []


def test_weights_of_an_older_version_do_not_know_how_long_they_took(md: Path, tmp_path: Path) -> None:
    one, saved = cell("tracking", "md"), checkpoint.read(md / "model.safetensors")
    origin = {key: value for key, value in saved.provenance.items() if key not in ("seconds", "side_by_side")}
    (tmp_path / "runs/shapes-md-seed0").mkdir(parents=True)
    checkpoint.write(tmp_path / "runs/shapes-md-seed0/model.safetensors", saved.tensors, saved.config, origin)
    document = work([one], order(tmp_path)).documents[one]
    assert document["training_provenance"]["seconds"] is None


# What goes on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_in_training_is_gone_on_from(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, handler = cell("tracking", "md"), signal.getsignal(number)
    with monkeypatch.context() as patch:
        before_step(patch, lambda step, at: os.kill(os.getpid(), number) if at == 1 else None)
        with pytest.raises(Stopped) as stop:
            work([one], order(tmp_path))
    assert stop.value.number == number
    assert signal.getsignal(number) is handler
    steps: list[int] = []
    before_step(monkeypatch, lambda step, at: steps.append(at))
    assert one in work([one], order(tmp_path)).documents
    assert steps == [2, 3]


def test_a_stop_in_a_measurement_keeps_what_was_measured(
    md: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [cell("tracking", "md"), cell("likelihood", "md")]
    shutil.copytree(md, tmp_path / "runs/shapes-md-seed0")

    def stop(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setitem(experiments.MEASURES, "likelihood", stop)
        with pytest.raises(Stopped):
            work(cells, order(tmp_path))
    outcome = work(cells, order(tmp_path))
    assert outcome.kept == {cells[0]}
    assert set(outcome.documents) == set(cells)


def test_at_most_so_many_are_trained_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    before_step(monkeypatch, lambda step, number: turns.append(step.config.train.seed))
    cells = choose(["tracking"], ["md"], [0, 1, 2])
    assert list(work(cells, replace(order(tmp_path), together=2)).documents) == cells
    assert turns.index(2) > max(turns.index(0), turns.index(1))
    assert turns.index(2) > min(last_place(turns, 0), last_place(turns, 1))


def last_place(turns: list[int], seed: int) -> int:
    return max(place for place, one in enumerate(turns) if one == seed)


def test_a_training_that_breaks_is_told_of_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(step: TrainingStep, number: int) -> None:
        if step.config.train.seed == 1:
            raise InputError("the moon is too high: wait.")

    before_step(monkeypatch, spoil)
    cells = choose(["tracking"], ["md"], [0, 1])
    outcome = work(cells, order(tmp_path))
    assert list(outcome.documents) == cells[:1]
    assert outcome.broken == [f"{tmp_path}/runs/shapes-md-seed1: the moon is too high: wait."]


# What is refused --------------------------------------------------------------------------------------


def test_a_folder_of_another_training_is_refused_by_the_setting_that_differs(
    md: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: list[list[str]]
) -> None:
    folder = tmp_path / "runs/shapes-md-seed0"
    shutil.copytree(md, folder)
    config = get_preset("shapes-md")
    changed = replace(config, model=replace(config.model, slots=3))
    monkeypatch.setitem(PRESETS, "shapes-md", lambda: changed)
    with pytest.raises(InputError) as error:
        work([cell("tracking", "vld"), cell("tracking", "md")], order(tmp_path))
    assert str(error.value) == (
        f"folder {folder} was trained with model.slots 4, but 3 is requested: move the folder away to train again."
    )
    assert trained == []


def test_what_is_only_written_down_may_differ(md: Path, tmp_path: Path) -> None:
    shutil.copytree(md, tmp_path / "runs/shapes-md-seed0")
    config = cell("tracking", "md").config
    assert locate(
        replace(config, train=replace(config.train, log_every=7, evaluate_every=2)), tmp_path / "runs"
    ).finished


def test_half_a_training_without_its_state_is_refused(md: Path, tmp_path: Path) -> None:
    saved, folder = checkpoint.read(md / "model.safetensors"), tmp_path / "runs/shapes-md-seed0"
    folder.mkdir(parents=True)
    origin = {**saved.provenance, "step": 2}
    checkpoint.write(folder / "model.safetensors", saved.tensors, saved.config, origin)
    with pytest.raises(InputError, match=r"holds step 2 of 4 without its resume\.safetensors: copy that file too"):
        work([cell("tracking", "md")], order(tmp_path))


def test_a_curve_that_was_not_written_down_is_told_of(
    md: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights were trained without evaluations on the way."""
    one = cell("ablation", "shapes-ablation")
    monkeypatch.setitem(PRESETS, "shapes-ablation", PRESETS["shapes-md"])
    shutil.copytree(md, tmp_path / "runs/shapes-ablation-seed0")
    outcome = work([one], order(tmp_path))
    assert outcome.documents == {}
    (sentence,) = outcome.broken
    assert "evaluations.jsonl is missing or empty: copy it along" in sentence


def test_without_mnist_its_settings_are_left_out_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("SCALOR_MNIST", str(tmp_path / "none"))
    cells = [cell("tracking", "mnist-ld"), cell("tracking", "mnist-md"), cell("tracking", "md")]
    outcome = work(cells, order(tmp_path))
    assert list(outcome.documents) == cells[2:]
    (sentence,) = outcome.left_out
    assert sentence.startswith("mnist-ld, mnist-md: left out; ")
    assert "put the MNIST files there." in sentence
    with pytest.raises(InputError, match="put the MNIST files there"):
        work(cells[:1], order(tmp_path))


def test_without_its_data_a_replay_is_left_out_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))
    monkeypatch.setenv("SCALOR_MNIST", str(tmp_path / "none"))
    replay = choose(["replay"], [], [0])
    digits, shapes = cell("tracking", "mnist-md"), cell("tracking", "md")
    outcome = work([*replay, digits, shapes], order(tmp_path))
    assert list(outcome.documents) == [shapes]
    assert [sentence.split(":")[0] for sentence in outcome.left_out] == [
        "mnist-md",
        "grand-central-replay, vrnn-grand-central-replay, vae-grand-central-replay, "
        "grand-central-replay-small-background, grand-central-replay-still",
    ]
    assert "there is no grand_central/" in outcome.left_out[1]
    with pytest.raises(InputError, match=r"put the MNIST files there.* there is no grand_central/"):
        work([*replay, digits], order(tmp_path))


def test_times_of_a_gpu_are_measured_on_one_alone(tmp_path: Path, trained: list[list[str]]) -> None:
    on_gpu = cell("efficiency", "md-gpu")
    with pytest.raises(InputError, match=r"^shapes-md-gpu: left out; device is 'cpu': .* with --device cuda"):
        work([on_gpu], order(tmp_path))
    assert trained == []
    on_cpu = cell("efficiency", "md-cpu")
    there = order(tmp_path, device=torch.device("cuda:1"))
    assert [str(there.device_of(one)) for one in (on_gpu, on_cpu)] == ["cuda:1", "cpu"]


def test_a_folder_that_cannot_be_is_refused_by_its_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    for option in ("results", "runs"):
        with pytest.raises(InputError, match=f"file cannot be written .* choose another with --{option}"):
            work([cell("tracking", "md")], order(tmp_path, **{option: tmp_path / "file"}))
