"""Sprites: how they start."""

import torch

from scalor.model.glimpses import GlimpseDecoder, Sprite


def untrained(initial_mask: float) -> Sprite:
    torch.manual_seed(0)
    decoder = GlimpseDecoder(what=16, glimpse=16)
    decoder.start_masks(initial_mask)
    sprite: Sprite = decoder(torch.randn(4, 8, 16))
    return sprite


def test_masks_start_faint_and_colours_do_not() -> None:
    faint, plain = untrained(-1.5), untrained(0.0)
    assert torch.equal(faint.colour, plain.colour)
    torch.testing.assert_close(faint.mask, torch.sigmoid(plain.mask.logit() - 1.5))
    assert plain.shows.all()
    assert not faint.shows.any()
