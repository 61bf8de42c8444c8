"""Every test of the model draws the same numbers, whatever ran before it."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
