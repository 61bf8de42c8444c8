"""Backgrounds are smooth, muted and always moving."""

import torch

from scalor.data.hashing import key
from scalor.data.layers import textures

PICTURES = textures(key(0, "train", torch.arange(8)), torch.arange(5), (24, 40))


def test_values_stay_well_inside_the_range() -> None:
    assert PICTURES.shape == (8, 5, 3, 24, 40)
    assert PICTURES.min() >= 0.1
    assert PICTURES.max() <= 0.6
    assert PICTURES.std((-2, -1)).mean() > 0.02


def test_neighbouring_pixels_are_alike() -> None:
    assert PICTURES.diff(dim=-1).abs().max() < 0.08
    assert PICTURES.diff(dim=-2).abs().max() < 0.08


def test_every_background_moves_and_differs() -> None:
    assert PICTURES.diff(dim=1).abs().amax((2, 3, 4)).min() > 0.002
    assert (PICTURES[0] - PICTURES[1]).abs().max() > 0.02


def test_a_frame_does_not_depend_on_the_frames_asked_for() -> None:
    late = textures(key(0, "train", torch.arange(8)), torch.tensor([4]), (24, 40))
    assert torch.equal(late[:, 0], PICTURES[:, 4])
