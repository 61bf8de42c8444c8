"""Two processes that train together learn what one learns with the same batch.

If one of them cannot go on, the others end, too.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import scalor
from scalor.cli.main import main
from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.fitting import refine
from scalor.nn import ranks
from scalor.presets import get_preset
from scalor.systems import build
from scalor.training.step import Anneals, TrainingStep, anneals

from ..cli.test_fit import SMALL, draw_film

STEPS = 3
PATIENCE = 60.0
"""Seconds after which processes that wait for each other are a failure."""
CPU = torch.device("cpu")
WORDS = [
    *("train", "shapes-tiny", "--device", "cpu", "--clips", "1", "--train.batch", "4", "--train.steps", "8"),
    *("--train.save_every", "2", "--train.log_every", "1"),
]


def config_of() -> Config:
    """Return shapes-tiny with clips of three frames, with every part of the step switched on."""
    config = get_preset("shapes-tiny")
    train = replace(config.train, batch=4, lengths=((0, 3),), gradients_through_time=0, clip_object=1.5, log_every=1)
    return replace(config, train=train)


def learn(out: Path) -> None:
    """Take some steps, each from the same weights; write metrics, gradients and the optimiser's averages of each."""
    config = config_of()
    torch.manual_seed(0)
    model = build(config.model)
    step = TrainingStep(config, model, Scenes(config.scene, 0, "train", CPU), CPU)
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    seen = []
    for number in range(STEPS):
        metrics = step(number, anneals(config.train, number)).clone()
        gradients = {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
        averages = {name: step.optimizer.state[p]["exp_avg"].clone() for name, p in model.named_parameters()}
        seen.append((metrics, gradients, averages))
        # Adam turns gradients that are nearly zero into whole steps, so later weights differ by more than rounding.
        model.load_state_dict(start)
    torch.save(seen, out / f"rank{ranks.rank()}.pt")


def train_and_stop() -> int:
    """Train by the command line; rank 1 alone gets a stop signal, in its fifth step."""
    step = TrainingStep.__call__

    def stopped(self: TrainingStep, number: int, now: Anneals) -> torch.Tensor:
        if number == 4 and ranks.rank() == 1:
            signal.raise_signal(signal.SIGTERM)
        return step(self, number, now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingStep, "__call__", stopped)
        return main([*WORDS, "--out", "two"])


def fail_in_one() -> None:
    """Fail in rank 1 alone, then in the first rank alone, which finds that the folder "taken" holds a run."""
    message = ("another process could not go on", "the disk is full")[ranks.rank()]
    with pytest.raises(InputError, match=message), ranks.all_or_none(CPU):
        raise_in(1)
    Path("taken").mkdir(exist_ok=True)
    Path("taken/resume.safetensors").touch()
    assert main([*WORDS, "--out", "taken"]) == 2


def raise_in(rank: int) -> None:
    """Raise an error in one rank alone."""
    if ranks.rank() == rank:
        raise InputError("the disk is full")


def fit_from_scratch() -> None:
    """Fit from random weights; a batch that cannot be shared is refused before the video is tracked."""
    assert main(["fit", "film.npy", "--out", "scratch", *SMALL]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(refine, "keep_and_label")
        assert main(["fit", "film.npy", "--out", "odd", "--train.batch", "5", "--device", "cpu"]) == 2


def plan() -> int:
    """Return the steps of a fit; every rank has found another number of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refine, "steps_in", lambda *_: 30 + ranks.rank())
        return refine.planned(config_of(), 60.0, CPU, lambda config: config).train.steps


def work() -> int:
    """Do all that a rank does in these tests."""
    sys.modules["torch.utils.tensorboard"] = None  # type: ignore[assignment]  # it takes seconds to import
    with ranks.joined(CPU):
        fail_in_one()
        fit_from_scratch()
        assert plan() == 30
        learn(Path())
        code = train_and_stop()
        # Rank 1 alone sees the run, as on a machine of its own without a shared disk.
        assert main([*WORDS, "--resume", "--out", ("two", "absent")[1 - ranks.rank()]]) == 2
        return code


def two_ranks(folder: Path, *words: str) -> list[tuple[int, str, str]]:
    """Run Python with these words in two ranks, as torchrun starts them; return how each ended and what it said."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(one.getsockname()[1]), "WORLD_SIZE": "2"}
    group |= {"PYTHONPATH": str(Path(scalor.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env={**os.environ, **group, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, *one) for process, one in zip(processes, said, strict=True)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which two ranks worked, started as torchrun starts them."""
    folder = tmp_path_factory.mktemp("pair")
    draw_film(folder / "film.npy")
    first, second = two_ranks(folder, "-c", f"import sys; from {__name__} import work; sys.exit(work())")
    assert (first[0], second[0]) == (143, 143), (first, second)
    assert [line for line in first[2].splitlines() if "stopped at step 5" in line], first
    assert "scalor: folder taken already holds a run" in first[2]
    assert "scalor: train.batch is 5: it must be a multiple of the number of processes, 2." in first[2]
    # The second rank says only that the first one could not go on.
    assert second[1] == ""
    assert [line for line in second[2].splitlines() if "another process could not go on" not in line] == [], second
    return folder


def logged(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def test_two_ranks_have_the_gradients_of_one_process(pair: Path, tmp_path: Path) -> None:
    learn(tmp_path)
    alone = torch.load(tmp_path / "rank0.pt", weights_only=False)
    both = [torch.load(pair / f"rank{rank}.pt", weights_only=False) for rank in range(2)]
    for (metrics, gradients, averages), first, second in zip(alone, *both, strict=True):
        torch.testing.assert_close(first[0], metrics, rtol=1e-4, atol=1e-5)
        assert torch.equal(first[0], second[0])
        assert sum(gradient is not None for gradient in gradients.values()) > 50
        largest = max(float(gradient.abs().max()) for gradient in gradients.values() if gradient is not None)
        assert largest > 1e-3
        for name, gradient in gradients.items():
            assert (gradient is None) == (first[1][name] is None), name
            if gradient is not None:
                torch.testing.assert_close(first[1][name], gradient, rtol=0, atol=1e-5 * largest, msg=name)
                assert torch.equal(first[1][name], second[1][name])
                # What the optimiser read from them.
                torch.testing.assert_close(first[2][name], averages[name], rtol=0, atol=1e-5 * largest, msg=name)


def test_a_training_goes_on_with_another_number_of_ranks(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*WORDS, "--out", "one"]) == 0
    shutil.copytree(pair / "two", "two")
    assert [line["step"] for line in logged(Path("two"))] == [1, 2, 3, 4, 5]
    assert main([*WORDS, "--out", "two", "--resume"]) == 0
    one, two = (
        [json.loads(line) for line in Path(run, "log.jsonl").read_text().splitlines()] for run in ("one", "two")
    )
    assert [line["step"] for line in two] == list(range(1, 9))
    for line, other in zip(one, two, strict=True):
        assert other["elbo"] == pytest.approx(line["elbo"], rel=0.02)
    assert two[0]["elbo"] == pytest.approx(one[0]["elbo"], rel=1e-5)


def test_a_batch_that_cannot_be_shared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "count", lambda: 3)
    config = config_of()
    with pytest.raises(InputError, match=r"train\.batch is 4: it must be a multiple of the number of processes, 3"):
        TrainingStep(config, build(config.model), Scenes(config.scene, 0, "train", CPU), CPU)


@pytest.mark.slow
def test_two_ranks_fit_as_many_steps_as_the_time_allows(tmp_path: Path) -> None:
    draw_film(tmp_path / "film.npy")
    time = ("--minutes", "0.01", "--train.batch", "2", "--device", "cpu")
    first, second = two_ranks(
        tmp_path, "-m", "scalor", "fit", "film.npy", "--out", "mine", "--end", "2", *time, "--json"
    )
    assert (first[0], second[0]) == (0, 0), (first, second)
    assert second[1] == ""
    assert json.loads(first[1])["step"] == refine.FEWEST_STEPS
    assert [line["step"] for line in logged(tmp_path / "mine")] == [10, 20]
