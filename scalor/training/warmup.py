"""Compilation for several trainings at the same time, each in its own process, while other trainings already run.

A single process compiles one function after the other, and each takes about a minute. The compiler's cache is shared,
so the trainings find there what these processes have compiled.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from scalor import systems
from scalor.config import Config, SceneConfig, TrainConfig
from scalor.systems import config_from_dict

COMPILE_TIMEOUT_S = 360
"""Seconds to wait for a compilation, which normally takes less. Then the training begins and compiles by itself."""


@contextmanager
def warming(
    configs: Sequence[Config[Any]], device: torch.device, quiet: bool = False
) -> Iterator[Callable[[int], bool]]:
    """Fill the compiler's cache for all configs, each in its own process.

    Yield a function that returns whether the config at a given place may begin to train. If fewer than two different
    configs are compiled, nothing is done: a single training can just as well compile by itself.
    """
    texts = [json.dumps(short(config).to_dict()) if is_compiled(config) else None for config in configs]
    different = list(dict.fromkeys(text for text in texts if text))
    if device.type != "cuda" or len(different) < 2:
        yield lambda place: True
        return
    if not quiet:
        tqdm.write(f"compiling for {len(different)} trainings, side by side", file=sys.stderr)
    running: dict[str, Compiling] = {}

    def start() -> None:
        """Start processes in the order of the configs, a few at a time, so that the first ones are done first."""
        for text in different:
            if sum(not one.over() for one in running.values()) >= compilers():
                return
            if text not in running:
                running[text] = Compiling(compile_apart(text, device), time.monotonic() + COMPILE_TIMEOUT_S)

    def warm(place: int) -> bool:
        start()
        text = texts[place]
        return text is None or (text in running and running[text].over())

    try:
        start()
        yield warm
    finally:
        for one in running.values():
            one.process.kill()
            one.process.wait()


def compilers() -> int:
    """Return the number of processes that compile at the same time; each uses several threads."""
    return max(4, (os.cpu_count() or 1) // 2)


class Compiling(NamedTuple):
    """A process that compiles, and the time at which it is waited for no longer."""

    process: "subprocess.Popen[str]"
    latest: float

    def over(self) -> bool:
        """Return whether it has ended or has had its time."""
        return self.process.poll() is not None or time.monotonic() > self.latest


def wait_until_compiled(configs: Sequence[Config[Any]], device: torch.device) -> None:
    """Fill the compiler's cache for all configs and wait until it is done, with no training meanwhile."""
    with warming(configs, device) as warm:
        while not all(map(warm, range(len(configs)))):
            time.sleep(0.1)


def is_compiled(config: Config[Any]) -> bool:
    """Return whether a training with this config compiles its model."""
    return config.train.compile and systems.compiles(config.model)


def compile_apart(text: str, device: torch.device) -> "subprocess.Popen[str]":
    """Start a process that compiles for one config, given as JSON, and ends when it is done."""
    command = [sys.executable, "-m", "scalor.training.warmup", str(device)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended already: the training will compile by itself
        process.stdin.write(text)
        process.stdin.close()
    return process


def short(config: Config[Any]) -> Config[Any]:
    """Return a config of one step on two frames for which the same code is compiled.

    Compiled code depends only on the model, the batch, the precision, whether the camera stands still, and whether
    gradients flow between frames in the first steps.
    """
    asked = config.train
    train = TrainConfig(
        steps=1,
        batch=asked.batch,
        precision=asked.precision,
        lengths=((0, 2),),
        gradients_through_time=asked.gradients_through_time,
    )
    plain = SceneConfig(frame=config.scene.frame, length=2)
    scene = replace(config.scene, length=2) if config.scene.gives_still else plain
    return replace(config, scene=scene, test=scene, train=train)


def main(device_name: str) -> None:
    """Read a config as JSON from the standard input and run one step of it, which fills the compiler's cache."""
    from scalor.data.scenes import Scenes
    from scalor.training.step import TrainingStep, anneals

    config, device = config_from_dict(json.load(sys.stdin)), torch.device(device_name)
    model = systems.build(config.model).to(device)
    step = TrainingStep(config, model, Scenes(config.scene, 0, "train", device), device)
    step(0, anneals(config.train, 0))


if __name__ == "__main__":
    main(sys.argv[1])
