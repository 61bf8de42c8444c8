"""Models to be measured. What a step costs may depend on how many objects are alive, so they are made to find some."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from scalor import checkpoint
from scalor.config import ModelConfig
from scalor.errors import InputError
from scalor.model.scalor import SCALOR

SHIPPED = "shapes-md"


class Subject(NamedTuple):
    model: SCALOR
    weights: str
    """Where they come from: "shipped", or "crowded" for random ones that fill every slot."""


def make(config: ModelConfig, device: torch.device, seed: int, crowd: bool = False) -> Subject:
    """A model with the shipped weights where they fit, a crowded one elsewhere or where that is asked for."""
    torch.manual_seed(seed)
    model = SCALOR(config)
    trained = None if crowd else shipped_weights()
    if trained is not None and fits(model, trained):
        model.load_state_dict(trained, strict=False)
        return Subject(model.to(device), "shipped")
    crowded(model)
    return Subject(model.to(device), "crowded")


def shipped_weights() -> dict[str, Tensor] | None:
    try:
        weights = checkpoint.read(checkpoint.find(SHIPPED)).weights
    except InputError:
        return None
    return {name: tensor.float() for name, tensor in weights.items()}


def fits(model: SCALOR, weights: dict[str, Tensor]) -> bool:
    """Whether all but the background, which the shipped model has none of, has its weights."""
    own = {name: tensor.shape for name, tensor in model.state_dict().items() if not name.startswith("background.")}
    return own == {name: tensor.shape for name, tensor in weights.items()}


@torch.no_grad()
def crowded(model: SCALOR) -> None:
    """Every cell proposes what can be seen, for certain, and nothing moves: all slots fill at once and stay full."""
    model.discovery.heads.bias[0] = 3.0
    move = model.propagation.move[-1]
    assert isinstance(move, nn.Linear)
    move.weight.zero_()
    move.bias.zero_()
    model.appearance.decoder.start_masks(-model.config.initial_mask)
