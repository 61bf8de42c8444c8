"""Real processes, really killed: whatever the moment, the run goes on to the very same weights."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from scalor.cli.main import main
from scalor.cli.overrides import apply
from scalor.presets import get_preset

from .tiny import NEVER, differing, log_of, run, tensors

STEPS = 40
OVERRIDES = [
    *("--model.slots", "4", "--model.proposals", "2", "--model.glimpse", "8", "--model.what_dim", "4"),
    *("--model.feature_dim", "8", "--model.tracker_dim", "8", "--model.prior_dim", "8"),
    *("--scene.objects", "[2, 3]", "--scene.length", "6", "--test.objects", "[2, 3]", "--test.length", "6"),
    *("--train.steps", str(STEPS), "--train.batch", "2", "--train.lengths", "[[0, 1], [4, 2], [25, 3]]"),
    *("--train.cooldown", "10", "--train.temperature", "[1.0, 0.3, 30]", "--train.picture_every", str(NEVER)),
    *("--train.log_every", "1", "--train.save_every", "2"),
]
COMMON = OVERRIDES[OVERRIDES.index("--scene.objects") :]
OTHERS = {
    "vrnn-shapes-tiny": ["--model.channels", "[4, 4, 4]", "--model.feature_dim", "8", *COMMON],
    "vae-shapes-tiny": ["--model.channels", "[4, 4]", "--model.growth", "[4, 4]", *COMMON],
}
"""Other systems, as small."""
PATIENCE = 60.0
"""Seconds after which a process that shows no sign of life is a failure."""


def words(folder: Path, preset: str = "shapes-tiny", settings: Sequence[str] = OVERRIDES) -> list[str]:
    return ["train", preset, "--device", "cpu", "--clips", "1", "--json", "--out", str(folder), *settings]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    run(apply(get_preset("shapes-tiny"), OVERRIDES), folder)
    return folder


def start(folder: Path, *what: Any) -> subprocess.Popen[str]:
    """Each process goes on from whatever the one before has left, the first from nothing."""
    # TensorBoard is not needed here, and to import it takes as long as the whole training.
    quick = "import sys; sys.modules['torch.utils.tensorboard'] = None; import scalor.cli.main as m"
    return subprocess.Popen(
        [sys.executable, "-c", f"{quick}; sys.exit(m.main())", *words(folder, *what), "--resume"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "SCALOR_COMMIT": "none"},
    )


def wait_for(process: subprocess.Popen[str], sign: Callable[[], bool]) -> None:
    """Until the sign is seen or the process has ended."""
    since = time.monotonic()
    while process.poll() is None and not sign():
        assert time.monotonic() - since < PATIENCE, "no sign of life"
        time.sleep(0.0005)


def send(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def lines(folder: Path) -> int:
    path = folder / "log.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def assert_same(folder: Path, undisturbed: Path) -> None:
    assert differing(tensors(folder), tensors(undisturbed)) == []
    assert differing(tensors(folder, "resume.safetensors"), tensors(undisturbed, "resume.safetensors")) == []
    assert [line["step"] for line in log_of(folder)] == list(range(1, STEPS + 1))
    assert log_of(folder) == log_of(undisturbed)
    assert not list(folder.glob("*.part"))


def test_killed_again_and_again_a_run_ends_with_the_very_same_weights(
    undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("SCALOR_KILL_SEED", random.SystemRandom().randrange(10**6)))
    print(f"SCALOR_KILL_SEED={seed}")  # shown when the test fails: repeats its choices
    chance = random.Random(seed)
    model, resume = tmp_path / "model.safetensors", tmp_path / "resume.safetensors"
    killed = 0

    def further(path: Path) -> Callable[[], bool]:
        before = modified(path)
        return lambda: modified(path) != before

    def lines_more(count: int) -> Callable[[], bool]:
        first = lines(tmp_path)
        return lambda: lines(tmp_path) >= first + count

    def kill_at(sign: Callable[[], bool], delay: float = 0.0) -> None:
        nonlocal killed
        process = start(tmp_path)
        wait_for(process, sign)
        time.sleep(delay)
        code, out, _ = send(process, signal.SIGKILL)
        killed += code == -signal.SIGKILL
        assert out == ""

    # In the middle of a write, between the two files of a save, and at a moment that nobody chose.
    kill_at((tmp_path / "resume.safetensors.part").exists)
    kill_at(further(resume))
    kill_at(lines_more(chance.randint(1, 8)), delay=chance.uniform(0, 0.05))
    kill_at(further(model), delay=chance.uniform(0, 0.1))
    assert killed == 4, "a run was over before it could be killed: make it longer"
    assert lines(tmp_path) < STEPS

    assert main([*words(tmp_path), "--resume"]) == 0
    document = json.loads(capsys.readouterr().out.split("\n", 1)[1])  # after the seed
    assert document["step"] == STEPS
    assert_same(tmp_path, undisturbed)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stop_signal_saves_says_so_and_the_run_goes_on_to_the_very_same_weights(
    number: signal.Signals, expected: int, undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start(tmp_path)
    wait_for(process, lambda: lines(tmp_path) >= 5)
    code, out, err = send(process, number)
    assert code == expected
    assert out == ""
    last = err.strip().splitlines()[-1]
    step = log_of(tmp_path)[-1]["step"]
    assert last == f"stopped at step {step}; continue it with --resume"
    assert "Traceback" not in err
    assert tensors(tmp_path).keys() == tensors(undisturbed).keys()
    assert main([*words(tmp_path), "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == STEPS
    assert_same(tmp_path, undisturbed)


@pytest.mark.parametrize("preset", OTHERS)
def test_a_killed_run_of_another_system_ends_with_the_very_same_weights(preset: str, tmp_path: Path) -> None:
    run(apply(get_preset(preset), OTHERS[preset]), tmp_path / "undisturbed")
    process = start(tmp_path / "killed", preset, OTHERS[preset])
    wait_for(process, lambda: lines(tmp_path / "killed") >= 5)
    code, _, _ = send(process, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert lines(tmp_path / "killed") < STEPS
    assert main([*words(tmp_path / "killed", preset, OTHERS[preset]), "--resume"]) == 0
    assert_same(tmp_path / "killed", tmp_path / "undisturbed")
