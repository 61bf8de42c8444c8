"""Compiling for several trainings at once, each in a process of its own, before they start side by side.

One process compiles one thing after the other, about a minute each; the compiler's cache is shared, so what these
processes leave in it is found by the trainings.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from tqdm import tqdm

from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig

SIX_MINUTES = 360
"""Nothing takes this long to compile. What does is left to the training itself."""


def warm(configs: Sequence[Config[Any]], device: torch.device, quiet: bool = False) -> None:
    """Fill the cache for all of them; one alone may as well compile for itself."""
    compiled = [config for config in configs if config.train.compile and config.system == ModelConfig.system]
    texts = {json.dumps(short(config).to_dict()) for config in compiled}
    if device.type != "cuda" or len(texts) < 2:
        return
    if not quiet:
        tqdm.write(f"compiling for {len(texts)} trainings, side by side", file=sys.stderr)
    running = []
    for text in texts:
        command = [sys.executable, "-m", "scalor.training.warming", str(device)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.close()
        running.append(process)
    for process in running:
        try:
            process.wait(SIX_MINUTES)
        except subprocess.TimeoutExpired:
            process.kill()


def short(config: Config[Any]) -> Config[Any]:
    """The same model, batch and precision on two frames of anything with as many channels: what is compiled depends on
    no more."""
    train = TrainConfig(steps=1, batch=config.train.batch, precision=config.train.precision, lengths=((0, 2),))
    footage = config.scene.footage
    kind = "footage" if footage else "shapes"
    scene = SceneConfig(kind=kind, frame=config.scene.frame, length=2, footage=footage)
    return replace(config, scene=scene, test=scene, train=train)


def main(device_name: str) -> None:
    from scalor.data.scenes import Scenes
    from scalor.model.scalor import SCALOR
    from scalor.schedule import anneals
    from scalor.training.step import TrainingStep

    config, device = Config.from_dict(json.load(sys.stdin)), torch.device(device_name)
    step = TrainingStep(config, SCALOR(config.model).to(device), Scenes(config.scene, 0, "train", device), device)
    step(0, anneals(config.train, 0))


if __name__ == "__main__":
    main(sys.argv[1])
