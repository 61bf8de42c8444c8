"""How long a training takes to start: a new process, from nothing to its second step.

On a GPU most of it is compiling, once for a machine: it is measured with an empty cache and with a filled one.
This file is also the program of the new process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from scalor.systems import config_from_dict

if TYPE_CHECKING:  # the new process counts its imports
    from benchmarks.plan import Plan
    from scalor.config import Config

CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class StartRow:
    cache: str
    import_s: float
    build_s: float
    """Model, scenes, optimiser."""
    first_step_s: float
    """Compiling and capturing included."""
    second_step_s: float
    whole_s: float
    """From the start of the process to its end."""


def start(plan: "Plan") -> list[StartRow]:
    """A training started in a new process, shapes-md."""
    from benchmarks.plan import training_config

    config = training_config(plan, "shapes-md")
    if plan.device != "cuda":
        return [in_new_process(plan, config, "none needed", dict(os.environ))]
    with tempfile.TemporaryDirectory() as folder:
        surroundings = {**os.environ, **dict.fromkeys(CACHES, folder)}
        return [in_new_process(plan, config, cache, surroundings) for cache in ("empty", "filled")]


def in_new_process(plan: "Plan", config: "Config", cache: str, surroundings: dict[str, str]) -> StartRow:
    begun = time.perf_counter()
    done = subprocess.run(
        command(plan), cwd=ROOT, env=surroundings, input=json.dumps(config.to_dict()), capture_output=True, text=True
    )
    whole = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(f"the new process failed:\n{done.stderr[-2_000:]}")
    imported, built, first, second = json.loads(done.stdout.splitlines()[-1])
    return StartRow(cache, imported, built, first, second, whole)


def command(plan: "Plan") -> list[str]:
    return [sys.executable, "-m", "benchmarks.startup", plan.device]


def main(device_name: str) -> None:
    clock = [time.perf_counter()]
    import torch

    from scalor.data.scenes import Scenes
    from scalor.model.scalor import SCALOR
    from scalor.training.step import TrainingStep, anneals

    def tick() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()
        clock.append(time.perf_counter())

    device = torch.device(device_name)
    tick()
    config = config_from_dict(json.load(sys.stdin))
    torch.manual_seed(config.train.seed)
    step = TrainingStep(
        config, SCALOR(config.model).to(device), Scenes(config.scene, config.train.seed, "train", device), device
    )
    tick()
    for number in range(2):
        step(number, anneals(config.train, number))
        tick()
    print(json.dumps([late - early for early, late in pairwise(clock)]))


if __name__ == "__main__":
    main(sys.argv[1])
