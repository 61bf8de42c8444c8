"""Several trainings side by side: each is, to the last bit, the one it would be alone."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from scalor import Config, InputError, checkpoint
from scalor.training import guards, loop
from scalor.training.loop import Job, NotStarted, Outcome, TrainingResult, train_together
from scalor.training.step import TrainingStep

from .tiny import CPU, contents, differing, log_of, run, tensors, tiny


@pytest.fixture(autouse=True)
def no_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import alone takes seconds."""
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Six steps of three seeds, one after the other. Look, do not touch."""
    folders = [tmp_path_factory.mktemp(f"alone-{seed}") for seed in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch.utils.tensorboard", None)
        for config, folder in zip(seeds(3), folders, strict=True):
            run(config, folder)
    return folders


def seeds(count: int, steps: int = 6) -> list[Config]:
    return [tiny(steps, seed=seed, save_every=2) for seed in range(count)]


def together(configs: Sequence[Config], folder: Path, resume: bool = False, quiet: bool = True) -> list[Outcome]:
    """Run number k goes into the folder's folder k."""
    jobs = [Job(config, folder / str(place)) for place, config in enumerate(configs)]
    return train_together(jobs, CPU, resume, quiet)


def ends(outcomes: list[Outcome]) -> list[tuple[int, int | None]]:
    """Of every run, the last step and the signal that stopped it."""
    results = [outcome for outcome in outcomes if isinstance(outcome, TrainingResult)]
    assert len(results) == len(outcomes)
    return [(result.step, result.stopped) for result in results]


def assert_same(folder: Path, other: Path) -> None:
    for file in (checkpoint.MODEL_FILE, checkpoint.RESUME_FILE):
        assert differing(tensors(folder, file), tensors(other, file)) == []
        assert checkpoint.read(folder / file).provenance["step"] == checkpoint.read(other / file).provenance["step"]
    assert (folder / "log.jsonl").read_bytes() == (other / "log.jsonl").read_bytes()


def before_step(monkeypatch: pytest.MonkeyPatch, action: Callable[[TrainingStep, int], None]) -> None:
    """Have something happen at the start of every step of every run."""
    step = TrainingStep.__call__

    def wrapped(self: TrainingStep, number: int, now: Any) -> Tensor:
        action(self, number)
        return step(self, number, now)

    monkeypatch.setattr(TrainingStep, "__call__", wrapped)


# Alone and together -----------------------------------------------------------------------------------


def test_runs_side_by_side_are_the_runs_alone(alone: list[Path], tmp_path: Path) -> None:
    assert ends(together(seeds(3), tmp_path)) == [(6, None)] * 3
    for place, folder in enumerate(alone):
        assert_same(tmp_path / str(place), folder)
        assert (tmp_path / str(place) / "config.json").read_bytes() == (folder / "config.json").read_bytes()
    assert differing(tensors(alone[0]), tensors(alone[1])) != []


def test_runs_of_other_sizes_do_not_disturb_each_other(alone: list[Path], tmp_path: Path) -> None:
    """Another model and another batch between two runs: whoever comes later starts with its own weights."""
    first, last, _ = seeds(3)
    between = replace(tiny(6, batch=3), model=replace(tiny().model, slots=3, tracker_dim=16))
    together([first, between, last], tmp_path / "together")
    run(between, tmp_path / "between")
    for place, folder in enumerate((alone[0], tmp_path / "between", alone[1])):
        assert_same(tmp_path / "together" / str(place), folder)


def test_runs_take_turns_and_each_ends_in_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = []
    before_step(monkeypatch, lambda step, number: turns.append((step.config.train.seed, number)))
    outcomes = together([tiny(2), tiny(4, seed=1), tiny(1, seed=2)], tmp_path)
    assert turns == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (1, 2), (1, 3)]
    assert ends(outcomes) == [(2, None), (4, None), (1, None)]
    for place, steps in enumerate((2, 4, 1)):
        assert checkpoint.read(tmp_path / str(place) / "model.safetensors").provenance["step"] == steps
        assert [line["step"] for line in log_of(tmp_path / str(place))] == list(range(1, steps + 1))


def test_the_next_run_begins_when_one_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = []
    before_step(monkeypatch, lambda step, number: turns.append((step.config.train.seed, number)))
    jobs = [Job(tiny(steps, seed=seed), tmp_path / str(seed)) for seed, steps in enumerate((3, 1, 2))]
    outcomes = train_together(jobs, CPU, quiet=True, together=2)
    assert turns == [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (2, 1)]
    assert ends(outcomes) == [(3, None), (1, None), (2, None)]


def test_a_stop_signal_leaves_alone_what_has_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before_step(monkeypatch, lambda step, number: os.kill(os.getpid(), signal.SIGTERM) if number == 1 else None)
    jobs = [Job(tiny(4, seed=seed), tmp_path / str(seed)) for seed in range(2)]
    stopped, waiting = train_together(jobs, CPU, quiet=True, together=1)
    assert isinstance(stopped, TrainingResult)
    assert (stopped.step, stopped.stopped, waiting) == (2, signal.SIGTERM, NotStarted(signal.SIGTERM))
    assert not list((tmp_path / "1").iterdir())


def test_a_stop_signal_while_all_wait_for_the_compiler_begins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def warming(*_: object) -> Iterator[Callable[[int], bool]]:
        def warm(place: int) -> bool:
            os.kill(os.getpid(), signal.SIGTERM)
            return False

        yield warm

    monkeypatch.setattr(loop, "warming", warming)
    assert train_together([Job(tiny(), tmp_path / "run")], CPU, quiet=True) == [NotStarted(signal.SIGTERM)]


def test_going_on_side_by_side_goes_on_with_each_from_where_it_was(alone: list[Path], tmp_path: Path) -> None:
    """One has not begun, one is half way, one is over."""
    run(seeds(3, steps=3)[1], tmp_path / "1")
    run(seeds(3)[2], tmp_path / "2")
    assert ends(together(seeds(3), tmp_path, resume=True)) == [(6, None)] * 3
    for place, folder in enumerate(alone):
        assert_same(tmp_path / str(place), folder)


# Folders ----------------------------------------------------------------------------------------------


def test_a_folder_that_holds_a_run_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    run(tiny(1, seed=1), tmp_path / "1")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="1 already holds a run: add --resume"):
        together(seeds(2), tmp_path)
    assert contents(tmp_path) == before


def test_a_run_that_cannot_go_on_is_refused_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tiny(1, seed=5), tmp_path / "1")
    turns: list[int] = []
    before_step(monkeypatch, lambda step, number: turns.append(number))
    with pytest.raises(InputError, match="1 holds a run with another model, other scenes, another seed"):
        together(seeds(2), tmp_path, resume=True)
    assert turns == []


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    jobs = [Job(config, tmp_path / "run") for config in seeds(2)]
    with pytest.raises(InputError, match="run would hold two runs"):
        train_together(jobs, CPU, quiet=True)
    assert contents(tmp_path) == {}


# A run that breaks ------------------------------------------------------------------------------------


def test_a_run_that_breaks_leaves_the_others_intact(
    alone: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its third step on, no gradient of the second run is finite."""
    monkeypatch.setattr(loop, "MAX_BAD_STEPS", 2)

    def spoil(step: TrainingStep, number: int) -> None:
        if (step.config.train.seed, number) == (1, 2):
            next(step.model.parameters()).register_hook(lambda gradient: gradient * float("nan"))

    before_step(monkeypatch, spoil)
    first, broken, last = together(seeds(3), tmp_path)
    assert isinstance(broken, InputError)
    assert "the last 2 steps had no finite gradient, so training ended at step 4" in str(broken)
    assert ends([first, last]) == [(6, None)] * 2
    assert_same(tmp_path / "0", alone[0])
    assert_same(tmp_path / "2", alone[2])
    assert checkpoint.read(tmp_path / "1" / "resume.safetensors").provenance["step"] == 2


def test_a_run_that_cannot_write_leaves_the_others_intact(
    alone: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def obstruct(step: TrainingStep, number: int) -> None:
        if (step.config.train.seed, number) == (0, 1):
            (tmp_path / "0" / "log.jsonl").unlink()
            (tmp_path / "0" / "log.jsonl").mkdir()

    before_step(monkeypatch, obstruct)
    broken, other = together(seeds(2), tmp_path)
    assert isinstance(broken, InputError)
    assert "log.jsonl cannot be written" in str(broken)
    assert ends([other]) == [(6, None)]
    assert_same(tmp_path / "1", alone[1])


# Stopping ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_saves_every_run_and_all_go_on_to_the_same_end(
    number: signal.Signals, alone: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes in the third step of the second run, when the first has already taken its own."""
    handler = signal.getsignal(number)

    def stop(step: TrainingStep, at: int) -> None:
        if (step.config.train.seed, at) == (1, 2):
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        before_step(patch, stop)
        outcomes = together(seeds(3), tmp_path)
    assert ends(outcomes) == [(4, number), (3, number), (3, number)]
    assert signal.getsignal(number) is handler
    for place, steps in enumerate((4, 3, 3)):
        assert checkpoint.read(tmp_path / str(place) / "resume.safetensors").provenance["step"] == steps
    assert ends(together(seeds(3), tmp_path, resume=True)) == [(6, None)] * 3
    for place, folder in enumerate(alone):
        assert_same(tmp_path / str(place), folder)


def test_a_stop_signal_is_none_of_the_business_of_a_run_that_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_step(monkeypatch, lambda step, number: os.kill(os.getpid(), signal.SIGTERM) if number == 3 else None)
    assert ends(together([tiny(2), tiny(6, seed=1)], tmp_path)) == [(2, None), (4, signal.SIGTERM)]


def test_a_second_signal_ends_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(step: TrainingStep, number: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    before_step(monkeypatch, twice)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            together(seeds(2), tmp_path)
    finally:
        signal.signal(signal.SIGINT, usual)


# Words ------------------------------------------------------------------------------------------------


def test_each_run_has_its_bar_and_its_warnings_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guards, "warnings", lambda config, step, means: [f"slots run out: {step} births."])
    jobs = [Job(tiny(steps, seed=steps), tmp_path / name) for name, steps in (("short", 1), ("long", 3))]
    train_together(jobs, CPU)
    out, err = capsys.readouterr()
    assert out == ""
    assert "short: 100%" in err
    assert "long: 100%" in err
    for name in ("short", "long"):
        assert err.count(f"warning: {name}: slots run out: 1 births.\n") == 1
    assert err.count("warning: ") == 2


def test_quiet_runs_say_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    together(seeds(2, steps=1), tmp_path)
    assert capsys.readouterr() == ("", "")
