"""Sprites: how they start."""

import pytest
import torch

from scalor.model import glimpses
from scalor.model.glimpses import GlimpseDecoder, Sprite


def untrained(faint: float, monkeypatch: pytest.MonkeyPatch) -> Sprite:
    monkeypatch.setattr(glimpses, "INITIAL_MASK_SHIFT", faint)
    torch.manual_seed(0)
    sprite: Sprite = GlimpseDecoder(what=16, glimpse=16)(torch.randn(4, 8, 16))
    return sprite


def test_masks_start_faint_and_colours_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = glimpses.INITIAL_MASK_SHIFT
    faint, plain = untrained(shift, monkeypatch), untrained(0.0, monkeypatch)
    assert torch.equal(faint.colour, plain.colour)
    torch.testing.assert_close(faint.mask, torch.sigmoid(plain.mask.logit() - shift))
    assert plain.shows.all()
    assert not faint.shows.any()
