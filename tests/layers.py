"""Single layers of stacked networks, with their types."""

from torch import nn


def linear(layers: nn.Module, at: int = -1) -> nn.Linear:
    """Return one linear layer of a stack, by default the last."""
    found = list(layers.children())[at]
    assert isinstance(found, nn.Linear)
    return found
