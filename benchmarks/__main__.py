"""`python -m benchmarks cpu` and `python -m benchmarks gpu`: tables to read, JSON under `benchmarks/results/`."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import (
    against_dense,
    kernels,
    numerics,
    own_video,
    plan,
    quality,
    report,
    startup,
    tracking,
    training,
    where_time_goes,
)
from benchmarks.plan import Plan
from benchmarks.timing import clean_up
from scalor.config import Config
from scalor.training.warmup import wait_until_compiled

Section = Callable[[Plan], Sequence[Any]]
RESULTS = Path(__file__).parent / "results"

SECTIONS: dict[str, Section] = {
    "start": startup.start,
    "training": training.steps,
    "batches": training.batches,
    "together": training.together,
    "dense": against_dense.rows,
    "tracking": tracking.by_objects,
    "shapes": tracking.scenes,
    "video": own_video.rows,
    "agreement": numerics.agreement,
    "curve": numerics.curve,
    "quality": quality.rows,
    "kernels": kernels.rows,
    "time": where_time_goes.kinds,
}
NOTHING_COMPILED = ("start", "tracking", "shapes", "video", "kernels")
ON_THE_CPU = [name for name in SECTIONS if name not in ("batches", "together", "quality")]


def to_compile(names: Sequence[str], chosen: Plan) -> list[Config]:
    """What the sections will need compiled on a GPU."""
    configs = [plan.training_config(chosen, "shapes-md")]
    if "training" in names or "dense" in names:
        configs += training.step_configs(chosen).values()
    if "batches" in names:
        configs += training.batch_configs(chosen).values()
    if "agreement" in names:
        configs.append(numerics.config_for(chosen, "float32", compile=True))
    return configs


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    asked = arguments(words)
    chosen = plan.GPU if asked.device == "gpu" else plan.CPU
    if asked.tiny:
        chosen = plan.shrunk(chosen)
    chosen = replace(chosen, seed=asked.seed)
    torch.set_flush_denormal(True)  # as training does; before there are threads, so that they take it over
    if asked.device == "cpu" and not asked.tiny:
        torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    names = asked.only or (list(SECTIONS) if asked.device == "gpu" else ON_THE_CPU)
    return run(names, chosen, asked.device, asked.out, words)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("device", choices=("cpu", "gpu"))
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the JSON")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiny", action="store_true", help="smallest sizes, to see that it runs; figures mean nothing")
    asked = parser.parse_args(words)
    if asked.device == "gpu" and not torch.cuda.is_available():
        parser.error("this machine has no CUDA GPU: use cpu")
    return asked


def run(names: Sequence[str], chosen: Plan, prefix: str, out: Path, words: Sequence[str]) -> int:
    """Each section by itself: one that fails is reported, and the others go on. 1 if any failed."""
    origin = report.provenance(chosen, words)
    print(f"{origin['command']}\ncommit {origin['commit']}, {origin['date']}, {described(origin)}\n", flush=True)
    failed = []
    compiled = chosen.device != "cuda"
    for name in names:
        if not compiled and name not in NOTHING_COMPILED:
            wait_until_compiled(to_compile(names, chosen), chosen.where)
            compiled = True
        done = carry_out(SECTIONS[name], chosen)
        path = report.write(out / f"{prefix}-{name}.json", {"section": name, **done.to_dict(), **origin})
        print(f"{name}: {done.title}\n\n{done.error or report.table(done.rows)}\n\n{done.took_s:.0f} s -> {path}\n")
        sys.stdout.flush()
        failed += [name] if done.error else []
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


@dataclass(frozen=True)
class Done:
    """A section that was run."""

    title: str
    took_s: float
    error: str | None
    rows: Sequence[Any]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "took_s": round(self.took_s, 1), "rows": [asdict(row) for row in self.rows]}


def carry_out(section: Section, chosen: Plan) -> Done:
    title = (section.__doc__ or "").strip().splitlines()[0]
    start = time.perf_counter()
    rows: Sequence[Any] = []
    error = None
    try:
        clean_up(chosen.where)
        rows = section(chosen)
    except Exception:
        error = traceback.format_exc()
    return Done(title, time.perf_counter() - start, error, rows)


def described(origin: dict[str, Any]) -> str:
    hardware = origin["hardware"]
    return f"{hardware.get('gpu') or hardware['cpu']}, {hardware['threads']} threads, torch {origin['torch']}"


if __name__ == "__main__":
    sys.exit(main())
