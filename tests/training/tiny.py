"""The smallest training that still has everything: two lengths, discovery, propagation, checkpoints."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalor import checkpoint
from scalor.baselines.sqair import SQAIRConfig
from scalor.baselines.vae import VAEConfig
from scalor.baselines.vrnn import VRNNConfig
from scalor.config import Config, SystemConfig
from scalor.presets import get_preset
from scalor.training.loop import TrainingResult, train

CPU = torch.device("cpu")
NEVER = 10**6
MODELS: dict[str, SystemConfig] = {
    "scalor": replace(
        get_preset("shapes-tiny").model,
        slots=4,
        proposals=2,
        glimpse=8,
        what_dim=4,
        feature_dim=8,
        tracker_dim=8,
        prior_dim=8,
    ),
    "sqair": SQAIRConfig(
        frame=(32, 32),
        slots=2,
        discoveries=1,
        particles=2,
        object_size=(7.0, 7.0),
        glimpse=8,
        what_dim=4,
        hidden_dim=8,
    ),
    "vrnn": VRNNConfig(frame=(32, 32), channels=(4, 4, 4), feature_dim=8, state_dim=8, latent_dim=4),
    "vae": VAEConfig(frame=(32, 32), channels=(4, 4), growth=(4, 4), state_dim=8, latent_dim=4),
}
"""The smallest models of every system."""


def tiny(
    steps: int = 6,
    *,
    system: str = "scalor",
    seed: int = 0,
    save_every: int = NEVER,
    log_every: int = 1,
    **more: Any,
) -> Config[Any]:
    """A shapes-tiny that takes some 30 ms a step."""
    config = get_preset("shapes-tiny")
    scene = replace(config.scene, objects=(2, 3), length=6)
    small: dict[str, Any] = {
        "batch": 2,
        "lengths": ((0, 1), (2, 2)),
        "cooldown": 0,
        "clip_usual": 1.5,
        "clip_object": 1.5,
        "picture_every": NEVER,
    }
    given = {"steps": steps, "seed": seed, "save_every": save_every, "log_every": log_every, **more}
    settings = replace(config.train, **{**small, **given})
    return Config(model=MODELS[system], scene=scene, test=scene, train=settings)


def run(config: Config[Any], folder: Path, resume: bool = False) -> TrainingResult:
    return train(config, folder, CPU, resume, quiet=True)


def tensors(folder: Path, file: str = checkpoint.MODEL_FILE) -> dict[str, Tensor]:
    return checkpoint.read(folder / file).tensors


def differing(a: dict[str, Tensor], b: dict[str, Tensor]) -> list[str]:
    """Names of the tensors that are not the same to the last bit (nan counts as itself)."""
    assert a.keys() == b.keys()

    def bits(tensor: Tensor) -> bytes:
        return (
            tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()
            if tensor.ndim
            else tensor.numpy().tobytes()
        )

    return [name for name in a if a[name].dtype != b[name].dtype or bits(a[name]) != bits(b[name])]


def log_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, to see that nothing changed."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
