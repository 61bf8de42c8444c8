"""The training loop: what it writes, what it refuses, and that no moment to die is a bad one."""

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
from torch import Tensor

from scalor import SCALOR, InputError, checkpoint, load
from scalor.files import folder_lock
from scalor.training import folder, guards, loop
from scalor.training.pictures import Pictures
from scalor.training.step import TrainingStep

from .tiny import CPU, NEVER, contents, differing, log_of, run, tensors, tiny

NAMES = ("elbo", *SCALOR.reported, "gradient_norm", "skipped")
FILES = {"config.json", "log.jsonl", "model.safetensors", "resume.safetensors"}


class Killed(BaseException):
    """Stands for a kill -9: nothing catches it."""


@pytest.fixture(autouse=True)
def no_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import alone takes seconds."""
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


def before_step(monkeypatch: pytest.MonkeyPatch, action: Callable[[int], None]) -> None:
    """Have something happen at the start of every step."""
    step = TrainingStep.__call__

    def wrapped(self: TrainingStep, number: int, now: Any) -> Tensor:
        action(number)
        return step(self, number, now)

    monkeypatch.setattr(TrainingStep, "__call__", wrapped)


# What a run leaves behind -----------------------------------------------------------------------------


def test_a_run_leaves_its_files_and_nothing_else(whole: Path) -> None:
    assert {path.name for path in whole.iterdir()} == FILES
    assert json.loads((whole / "config.json").read_text()) == json.loads(json.dumps(tiny(6, save_every=2).to_dict()))
    assert checkpoint.read(whole / "model.safetensors").provenance["step"] == 6
    assert checkpoint.read(whole / "resume.safetensors").provenance["step"] == 6
    assert load(whole).config == tiny().model


def test_the_log_has_a_line_a_step_with_every_number(whole: Path) -> None:
    log = log_of(whole)
    assert [line["step"] for line in log] == [1, 2, 3, 4, 5, 6]
    assert all(set(line) == {"step", *NAMES, "length", "temperature"} for line in log)
    assert [line["length"] for line in log] == [1, 1, 2, 2, 2, 2]


def test_a_log_line_is_the_mean_of_its_steps(whole: Path, tmp_path: Path) -> None:
    run(tiny(6, log_every=4), tmp_path)
    each = [line["elbo"] for line in log_of(whole)]
    coarse = log_of(tmp_path)
    assert [line["step"] for line in coarse] == [4, 6]
    assert [line["elbo"] for line in coarse] == pytest.approx([sum(each[:4]) / 4, sum(each[4:]) / 2], rel=1e-4)


def test_the_same_seed_gives_the_same_log_and_another_does_not(whole: Path, tmp_path: Path) -> None:
    run(tiny(6, save_every=2), tmp_path / "again")
    assert (tmp_path / "again" / "log.jsonl").read_bytes() == (whole / "log.jsonl").read_bytes()
    assert differing(tensors(whole), tensors(tmp_path / "again")) == []
    run(tiny(6, seed=1), tmp_path / "other")
    assert (tmp_path / "other" / "log.jsonl").read_bytes() != (whole / "log.jsonl").read_bytes()


# Folders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"betas": (0.8, 0.999)}, {"betas": (0.9, 0.99)}, {"epsilon": 1e-4}], ids=str)
def test_every_setting_of_adam_changes_what_is_learned(change: dict[str, Any], whole: Path, tmp_path: Path) -> None:
    run(tiny(6, **change), tmp_path)
    changed, plain = ([line["elbo"] for line in log_of(folder)] for folder in (tmp_path, whole))
    assert changed[0] == plain[0]
    assert changed[-1] != plain[-1]


def test_scenes_of_another_version_are_not_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SCENE_VERSION", 2)
    with pytest.raises(InputError, match=r"^scene\.version is 1: .* version 2 only"):
        run(tiny(), tmp_path)


def test_models_of_another_version_are_not_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MODEL_VERSION", 2)
    with pytest.raises(InputError, match=r"^model\.version is 1: .* version 2 only"):
        run(tiny(), tmp_path)
    run(tiny(1, system="vae"), tmp_path)  # it has no such constants


@pytest.mark.parametrize("resume", [True, False])
def test_weights_that_cannot_be_gone_on_from_are_not_overwritten(whole: Path, tmp_path: Path, resume: bool) -> None:
    shutil.copy(whole / checkpoint.MODEL_FILE, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="holds weights without their resume"):
        run(tiny(), tmp_path, resume)
    assert contents(tmp_path) == before


def test_two_processes_do_not_train_into_one_folder(tmp_path: Path) -> None:
    with folder_lock(tmp_path), pytest.raises(InputError, match="is being written by another run: wait for it"):
        run(tiny(), tmp_path)
    assert run(tiny(), tmp_path, resume=True).step == 6


def test_a_folder_that_holds_a_run_is_not_overwritten(whole: Path) -> None:
    before = contents(whole)
    with pytest.raises(InputError, match=f"{whole} already holds a run: add --resume"):
        run(tiny(), whole)
    assert contents(whole) == before


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_folder_that_cannot_be_is_refused(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(InputError, match=r"cannot be written \(.+\): choose another with --out"):
        run(tiny(), tmp_path / where)
    assert contents(tmp_path) == {"file": b"here"}


# Going on ---------------------------------------------------------------------------------------------


def test_going_on_with_more_steps_is_as_if_it_had_never_stopped(whole: Path, tmp_path: Path) -> None:
    run(tiny(4), tmp_path)
    assert [line["step"] for line in log_of(tmp_path)] == [1, 2, 3, 4]
    assert run(tiny(6), tmp_path, resume=True).step == 6
    assert differing(tensors(whole), tensors(tmp_path)) == []
    assert differing(tensors(whole, "resume.safetensors"), tensors(tmp_path, "resume.safetensors")) == []
    assert log_of(tmp_path) == log_of(whole)


def test_going_on_after_the_end_does_nothing(tmp_path: Path) -> None:
    run(tiny(3), tmp_path)
    before, weights = contents(tmp_path), checkpoint.read(tmp_path / "model.safetensors")
    result = run(tiny(3), tmp_path, resume=True)
    assert (result.step, result.skipped, result.stopped) == (3, 0, None)
    after, same = contents(tmp_path), checkpoint.read(tmp_path / "model.safetensors")
    assert after.keys() == before.keys()
    assert all(after[name] == before[name] for name in FILES - {"model.safetensors"})
    # The model is written again, and safetensors orders its header as it pleases: the same things, not bytes.
    assert differing(weights.tensors, same.tensors) == differing(dict(result.model.state_dict()), same.tensors) == []
    assert (weights.config, weights.provenance) == (same.config, same.provenance)


def test_going_on_to_an_earlier_end_keeps_what_is_there(tmp_path: Path) -> None:
    run(tiny(3), tmp_path)
    before = contents(tmp_path)
    assert run(tiny(2), tmp_path, resume=True).step == 3
    after = contents(tmp_path)
    assert all(after[name] == before[name] for name in ("log.jsonl", "resume.safetensors"))
    assert checkpoint.read(tmp_path / "model.safetensors").provenance["step"] == 3


def test_going_on_in_an_empty_folder_starts_from_the_beginning(tmp_path: Path) -> None:
    assert run(tiny(2), tmp_path / "new", resume=True).step == 2
    assert [line["step"] for line in log_of(tmp_path / "new")] == [1, 2]


def test_going_on_with_another_model_or_other_scenes_is_refused(whole: Path) -> None:
    before, config = contents(whole), tiny(9)
    for other in (
        replace(config, model=replace(config.model, tracker_dim=16)),
        replace(config, model=replace(config.model, sigma=0.3)),
        replace(config, scene=replace(config.scene, objects=(1, 2))),
    ):
        with pytest.raises(InputError, match="another model, other scenes"):
            run(other, whole, resume=True)
    assert contents(whole) == before


def test_going_on_from_a_broken_file_is_refused(whole: Path, tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).write_bytes((whole / name).read_bytes()[:-1])
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"resume\.safetensors cannot be read"):
        run(tiny(9), tmp_path, resume=True)
    assert contents(tmp_path) == before


def test_going_on_from_weights_alone_is_refused(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "resume.safetensors").write_bytes((whole / "model.safetensors").read_bytes())
    before = contents(tmp_path)
    with pytest.raises(InputError, match="holds no state of the optimiser"):
        run(tiny(9), tmp_path, resume=True)
    assert contents(tmp_path) == before


# Dying ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_around_any_rename_loses_nothing(
    after: bool, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rename of a run in turn is the last thing that happens; the run then goes on to the same end."""
    replace_file, survived = os.replace, False
    for moment in range(1, 30):
        calls = 0

        def dying(source: Any, target: Any, moment: int = moment) -> None:
            nonlocal calls
            calls += 1
            if calls == moment and not after:
                raise Killed
            replace_file(source, target)
            if calls == moment:
                raise Killed

        folder = tmp_path / str(moment)
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", dying)
            try:
                run(tiny(6, save_every=2), folder)
                survived = True
            except Killed:
                pass
        run(tiny(6, save_every=2), folder, resume=True)
        assert differing(tensors(whole), tensors(folder)) == [], f"killed at rename {moment}"
        assert differing(tensors(whole, "resume.safetensors"), tensors(folder, "resume.safetensors")) == []
        assert log_of(folder) == log_of(whole)
        assert {path.name for path in folder.iterdir()} == FILES
        if survived:
            break
    assert survived
    assert moment == 9  # config, log, and two files for each of three saves; then nobody was killed


def test_a_kill_while_going_on_loses_no_line_of_the_log(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tiny(4), tmp_path)
    before = contents(tmp_path)["log.jsonl"]

    def dying(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dying)
        with pytest.raises(Killed):
            folder.Log(tmp_path / "log.jsonl", 4)
    assert contents(tmp_path)["log.jsonl"] == before


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"null", b'{"step": "x"}', b"[" * 100_000])
def test_a_damaged_line_of_the_log_is_told_and_the_others_stay(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step": 1}\n' + damage + b'\n{"step": 2}\n{"step": 3}\n{"st')
    with pytest.warns(UserWarning, match=r"log.jsonl, line 2 is damaged"):
        folder.Log(path, 2)
    assert path.read_text() == '{"step": 1}\n{"step": 2}\n'


def test_a_line_cut_short_by_a_kill_is_dropped(whole: Path, tmp_path: Path) -> None:
    run(tiny(4), tmp_path)
    with open(tmp_path / "log.jsonl", "a") as file:
        file.write('{"step": 5, "elbo": 1')
    run(tiny(6), tmp_path, resume=True)
    assert log_of(tmp_path) == log_of(whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_saves_and_leaves(
    number: signal.Signals, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = signal.getsignal(number)
    with monkeypatch.context() as patch:
        before_step(patch, lambda n: os.kill(os.getpid(), number) if n == 2 else None)
        result = run(tiny(6), tmp_path)
    assert (result.step, result.stopped) == (3, number)
    assert checkpoint.read(tmp_path / "resume.safetensors").provenance["step"] == 3
    assert signal.getsignal(number) is handler
    run(tiny(6), tmp_path, resume=True)
    assert differing(tensors(whole), tensors(tmp_path)) == []
    assert log_of(tmp_path) == log_of(whole)


def test_a_stop_signal_at_the_end_of_a_step_saves_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes when this step's decision not to save has already been taken."""

    def stop(self: Pictures, done: int, *_: object) -> None:
        if done == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Pictures, "maybe", stop)
    result = run(tiny(6), tmp_path)
    assert result.stopped == signal.SIGTERM
    assert checkpoint.read(tmp_path / "resume.safetensors").provenance["step"] == result.step < 6


def test_a_second_signal_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(number: int) -> None:
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    before_step(monkeypatch, twice)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tiny(6), tmp_path)
    finally:
        signal.signal(signal.SIGINT, usual)


def test_a_full_disk_ends_the_run_and_keeps_the_last_checkpoint(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write of the fourth step's save fails; the run goes on from the second once there is room."""
    fsync = os.fsync

    def full(descriptor: int) -> None:
        if (tmp_path / "model.safetensors").exists():
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="No space left on device"):
            run(tiny(6, save_every=2), tmp_path)
    assert checkpoint.read(tmp_path / "resume.safetensors").provenance["step"] == 2
    assert {path.name for path in tmp_path.iterdir()} == FILES
    run(tiny(6, save_every=2), tmp_path, resume=True)
    assert differing(tensors(whole), tensors(tmp_path)) == []


@pytest.mark.parametrize("name", ["log.jsonl", "config.json.part", "log.jsonl.part"])
def test_a_file_that_cannot_be_written_is_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=r"cannot be written \(.+\)"):
        run(tiny(2), tmp_path)


# Steps without a finite gradient ----------------------------------------------------------------------


def break_steps(monkeypatch: pytest.MonkeyPatch, broken: range) -> None:
    """The bound of these steps is not a number, nor are its gradients."""

    def spoil(self: TrainingStep, number: int, now: Any) -> Tensor:
        parameter = next(self.model.parameters())
        handle = parameter.register_hook(lambda grad: grad * float("nan")) if number in broken else None
        metrics = step(self, number, now)
        if handle:
            handle.remove()
        return metrics

    step = TrainingStep.__call__
    monkeypatch.setattr(TrainingStep, "__call__", spoil)


def test_a_bad_step_is_skipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_steps(monkeypatch, range(2, 4))
    result = run(tiny(6), tmp_path)
    assert (result.step, result.skipped) == (6, 2)
    log = log_of(tmp_path)
    assert [line["skipped"] for line in log] == [0, 0, 1, 1, 0, 0]
    assert all(tensor.isfinite().all() for tensor in tensors(tmp_path).values())


def test_skipped_steps_are_counted_whatever_the_stretch_of_a_log_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_steps(monkeypatch, range(1, 4))
    assert run(tiny(6, log_every=4), tmp_path).skipped == 3


def test_the_log_is_plain_json_also_where_there_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_steps(monkeypatch, range(1, 2))
    run(tiny(2), tmp_path)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert json.loads(lines[1], parse_constant=refuse)["gradient_norm"] is None
    assert json.loads(lines[0], parse_constant=refuse)["gradient_norm"] > 0


def test_many_bad_steps_in_a_row_end_the_run_and_keep_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MAX_BAD_STEPS", 3)
    break_steps(monkeypatch, range(2, NEVER))
    with pytest.raises(InputError, match=r"train\.learning_rate is 0\.001: the last 3 steps .* at step 5"):
        run(tiny(20, save_every=2), tmp_path)
    assert checkpoint.read(tmp_path / "resume.safetensors").provenance["step"] == 4
    assert all(tensor.isfinite().all() for tensor in tensors(tmp_path).values())
    assert {path.name for path in tmp_path.iterdir()} == FILES


# Words -----------------------------------------------------------------------------------------------


def test_a_warning_is_said_once_and_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guards, "warnings", lambda config, step, means: [f"slots run out: {step} births."])
    loop.train(tiny(5), tmp_path, CPU)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("warning: slots run out: 1 births.\n") == err.count("warning: ") == 1


def test_a_quiet_run_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tiny(1), tmp_path)
    assert capsys.readouterr() == ("", "")


def test_without_tensorboard_the_training_is_the_same(whole: Path, tmp_path: Path) -> None:
    assert not sys.modules["torch.utils.tensorboard"]
    run(tiny(6, picture_every=1), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    assert differing(tensors(whole), tensors(tmp_path)) == []
