"""`python -m benchmarks.several_ranks`: two processes beside one with the same batch: gradients and loss curve.

Gradients have kinks, so differences of rounding may grow, and curves part in the long run. One process with two threads
rounds otherwise, too. Two more runs lose one of their ranks half way, by a stop signal and by a kill, and go on, in one
process and in two.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks import plan, report
from scalor import checkpoint

RESULT = Path(__file__).parent / "results" / "cpu-several-ranks.json"


@dataclass(frozen=True)
class Row:
    run: str
    ended: int | None
    """Step at which a signal ended the run, before it went on."""
    seconds: float
    elbo: float
    """At the last step."""
    first: float | None
    """Relative difference of the first step's bound from that of one process."""
    mean: float | None
    """Mean relative difference over all steps."""
    largest: float | None
    gradient: float | None
    """Largest difference of the first step's gradients from those of one process, as a share of the largest one."""


def words_of(preset: str, steps: int, folder: Path) -> list[str]:
    every = ["--train.steps", str(steps), "--train.log_every", "1", "--train.save_every", "50", "--clips", "1"]
    return ["train", preset, "--device", "cpu", "--out", str(folder), *every]


def command_of(words: list[str], ranks: int = 1) -> list[str]:
    begin = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    return [sys.executable, *begin, "-m", "scalor", *words]


def run(command: list[str], threads: int = 1) -> float:
    """Run a command to its end; return its seconds."""
    start = time.monotonic()
    code = begun(command, threads).wait()
    if code != 0:
        raise RuntimeError(f"{shlex.join(command)} ended with code {code}.")
    return time.monotonic() - start


def run_and_stop(command: list[str], log: Path, after: int, steps: int, how: int) -> tuple[float, int]:
    """Run a command and send one of its children a signal after so many steps; return its seconds and its last step.

    Raise RuntimeError unless the signal ended the command, with a failure, before its last step.
    """
    start = time.monotonic()
    running = begun(command)
    while lines_of(log) < after:
        if running.poll() is not None:
            raise RuntimeError(f"{shlex.join(command)} ended with code {running.returncode} before step {after}.")
        time.sleep(0.05)
    children = subprocess.run(["pgrep", "-P", str(running.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
    if children:
        os.kill(int(children[-1]), how)
    code, last = running.wait(), lines_of(log)
    if code == 0 or last >= steps:
        raise RuntimeError(f"signal {how} had no effect: the run ended with code {code} at step {last} of {steps}.")
    return time.monotonic() - start, last


def begun(command: list[str], threads: int = 1) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lines_of(log: Path) -> int:
    return log.read_text().count("\n") if log.exists() else 0


def curve(folder: Path) -> list[float]:
    return [json.loads(line)["elbo"] for line in (folder / "log.jsonl").read_text().splitlines()]


def gradients(preset: str, folder: Path, ranks: int, threads: int) -> Tensor:
    """Gradients of the first step, in one vector: the first average of Adam is a tenth of them."""
    run(command_of(words_of(preset, 1, folder), ranks), threads)
    saved = checkpoint.read(folder / checkpoint.RESUME_FILE).tensors
    averages = {name: value for name, value in saved.items() if name.startswith(f"{checkpoint.STATE}exp_avg/")}
    assert averages
    return torch.cat([averages[name].flatten().double() for name in sorted(averages)])


def measure(folder: Path, preset: str, steps: int) -> list[Row]:
    rows: list[Row] = []
    wanted: list[float] = []
    every: list[Tensor] = []
    for name, ranks, threads in (("1 process", 1, 1), ("1 process, 2 threads", 1, 2), ("2 processes", 2, 1)):
        gradient = gradients(preset, folder / f"{name}, one step", ranks, threads)
        every.append(gradient)
        away = float((gradient - every[0]).abs().max() / every[0].abs().max()) if len(every) > 1 else None
        seconds = run(command_of(words_of(preset, steps, folder / name), ranks), threads)
        rows.append(compared(name, seconds, curve(folder / name), wanted, away))
        wanted = wanted or curve(folder / name)
    for name, how, after in (("stopped, then 1", signal.SIGTERM, 1), ("killed, then 2", signal.SIGKILL, 2)):
        name = f"2 processes, one {name}"
        words = words_of(preset, steps, folder / name)
        seconds, ended = run_and_stop(command_of(words, 2), folder / name / "log.jsonl", steps // 2 + 5, steps, how)
        seconds += run(command_of([*words, "--resume"], after))
        rows.append(compared(name, seconds, curve(folder / name), wanted, None, ended))
    return rows


def compared(
    name: str,
    seconds: float,
    found: list[float],
    wanted: list[float],
    gradient: float | None,
    ended: int | None = None,
) -> Row:
    if not wanted:
        return Row(name, None, seconds, found[-1], None, None, None, None)
    assert len(found) == len(wanted)
    away = [abs(one - other) / abs(other) for one, other in zip(found, wanted, strict=True)]
    return Row(name, ended, seconds, found[-1], away[0], sum(away) / len(away), max(away), gradient)


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="python -m benchmarks.several_ranks", description=__doc__)
    parser.add_argument("--preset", default="shapes-tiny")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULT, help="JSON file")
    asked = parser.parse_args(words)
    origin = report.provenance(plan.CPU, words)
    del origin["settings"]
    origin["command"] = origin["command"].replace("benchmarks", "benchmarks.several_ranks", 1)
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), asked.preset, asked.steps)
    report.write(asked.out, {"rows": [asdict(row) for row in rows], **origin})
    print(f"{origin['command']}\ncommit {origin['commit']}, {origin['date']}\n\n{report.table(rows)}\n\n-> {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
