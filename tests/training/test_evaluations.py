"""Evaluations during training: a line each, none lost or doubled by a stop, and no time of the training."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from scalor import InputError, checkpoint
from scalor.config import TrainConfig
from scalor.evaluation import report
from scalor.training import folder, loop
from scalor.training.loop import LOGGED_METRICS, Job, train_together
from scalor.training.step import Anneals, TrainingStep

from .tiny import CPU, differing, log_of, run, tensors, tiny


@pytest.fixture(autouse=True)
def no_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import alone takes seconds."""
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


def watched(steps: int = 6, **more: Any) -> Any:
    return tiny(steps, **{"evaluate_every": 2, "evaluate_clips": 2, "save_every": 4, **more})


def evaluations_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps with three evaluations. Look, do not touch."""
    folder = tmp_path_factory.mktemp("evaluated")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch.utils.tensorboard", None)
        run(watched(), folder)
    return folder


def test_every_so_many_steps_unseen_clips_are_tracked(evaluated: Path) -> None:
    lines = evaluations_of(evaluated)
    assert [line["step"] for line in lines] == [2, 4, 6]
    assert all(set(line) == {"step", "seconds", *LOGGED_METRICS} for line in lines)
    assert 0 < lines[0]["seconds"] < lines[1]["seconds"] < lines[2]["seconds"]
    model = checkpoint.load(evaluated)
    measured = report.evaluate(model, watched(), 2, quiet=True).to_dict()
    assert lines[-1]["mse"] == pytest.approx(measured["mse"])
    assert lines[-1]["discoveries_per_clip"] == measured["discoveries_per_clip"]


def test_an_evaluation_changes_nothing_of_the_training(evaluated: Path, whole: Path) -> None:
    assert differing(tensors(evaluated), tensors(whole)) == []
    assert log_of(evaluated) == log_of(whole)


def test_the_end_is_evaluated_too(tmp_path: Path) -> None:
    run(watched(5, evaluate_every=3), tmp_path)
    assert [line["step"] for line in evaluations_of(tmp_path)] == [3, 5]


def test_lines_past_a_resumed_step_are_made_again(
    evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the evaluation of step 6, when the last save was that of step 4."""

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    save = folder.save
    with monkeypatch.context() as patch:
        patch.setattr(loop, "save", lambda *what: die() if what[-1].step == 6 else save(*what))
        with pytest.raises(Killed):
            run(watched(), tmp_path)
    assert [line["step"] for line in evaluations_of(tmp_path)] == [2, 4, 6]
    run(watched(), tmp_path, resume=True)
    assert timeless(evaluations_of(tmp_path)) == timeless(evaluations_of(evaluated))


def test_lines_past_a_resumed_step_are_cut_also_when_there_are_no_more(tmp_path: Path) -> None:
    run(watched(4), tmp_path)
    with open(tmp_path / "evaluations.jsonl", "a") as file:
        file.write('{"step": 5}\n')
    run(watched(6, evaluate_every=0), tmp_path, resume=True)
    assert [line["step"] for line in evaluations_of(tmp_path)] == [2, 4]


def test_a_stopped_run_goes_on_with_its_seconds_and_its_lines(
    evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = TrainingStep.__call__

    def stopping(self: TrainingStep, number: int, now: Anneals) -> Tensor:
        if number == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, number, now)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingStep, "__call__", stopping)
        assert run(watched(), tmp_path).step == 3
    first = checkpoint.read(tmp_path / "model.safetensors").provenance["seconds"]
    second = run(watched(), tmp_path, resume=True).seconds
    total = checkpoint.read(tmp_path / "model.safetensors").provenance["seconds"]
    assert first < total <= first + second
    assert evaluations_of(tmp_path)[-1]["seconds"] > first
    assert timeless(evaluations_of(tmp_path)) == timeless(evaluations_of(evaluated))


def test_time_spent_evaluating_is_no_time_of_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the run itself, nor of the one beside it."""
    evaluate = report.evaluate

    def slowly(*given: Any, **named: Any) -> report.Report:
        time.sleep(0.5)
        return evaluate(*given, **named)

    monkeypatch.setattr(report, "evaluate", slowly)
    jobs = [Job(watched(3, evaluate_every=3), tmp_path / "a"), Job(tiny(3, seed=1), tmp_path / "b")]
    since = time.monotonic()
    train_together(jobs, CPU, quiet=True)
    passed = time.monotonic() - since
    for name in ("a", "b"):
        origin = checkpoint.read(tmp_path / name / "model.safetensors").provenance
        assert 0 < origin["seconds"] < passed - 0.5
        assert origin["side_by_side"] == 2


def test_the_most_runs_side_by_side_are_remembered(tmp_path: Path) -> None:
    train_together([Job(tiny(1, seed=seed), tmp_path / str(seed)) for seed in (0, 1)], CPU, quiet=True)
    run(tiny(2), tmp_path / "0", resume=True)
    assert checkpoint.read(tmp_path / "0" / "model.safetensors").provenance["side_by_side"] == 2


def test_a_checkpoint_of_an_older_version_goes_on_without_knowing_its_seconds(tmp_path: Path) -> None:
    run(tiny(2), tmp_path)
    for file in (checkpoint.MODEL_FILE, checkpoint.RESUME_FILE):
        saved = checkpoint.read(tmp_path / file)
        origin = {key: value for key, value in saved.provenance.items() if key not in ("seconds", "side_by_side")}
        checkpoint.write(tmp_path / file, saved.tensors, saved.config, origin)
    run(watched(4), tmp_path, resume=True)
    assert checkpoint.read(tmp_path / "model.safetensors").provenance["seconds"] is None
    assert [line["seconds"] for line in evaluations_of(tmp_path)] == [None]


@pytest.mark.parametrize(("field", "value"), [("evaluate_every", -1), ("evaluate_clips", 0), ("evaluate_clips", -3)])
def test_a_number_of_evaluations_that_cannot_be_is_refused(field: str, value: int) -> None:
    with pytest.raises(InputError, match=rf"^train\.{field} is {value}: it must be "):
        TrainConfig(**{field: value})  # type: ignore[arg-type]
