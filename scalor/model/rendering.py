"""Objects and background become a frame (paper: Algorithm 3).

Colours are premultiplied by their weights, pasted and divided by the pasted weights: the paper's normalised
gamma, without a canvas per object.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.model.decoders import Sprite
from scalor.model.geometry import paste
from scalor.model.state import ObjectState


class Foreground(NamedTuple):
    """All objects drawn together."""

    colour: Float[Tensor, "B 3 H W"]
    """Colour of the objects at a pixel, weighted by mask, presence and nearness."""
    mask: Float[Tensor, "B 1 H W"]
    """M, how far objects cover a pixel, 0 to 1."""


def alpha(objects: ObjectState, sprite: Sprite) -> Float[Tensor, "B N 1 P P"]:
    """Mask times presence, zero for the dead."""
    return sprite.mask * (objects.presence * objects.alive)[..., None, None]


def coverage(objects: ObjectState, sprite: Sprite, frame: tuple[int, int]) -> Float[Tensor, "B 1 H W"]:
    """The objects' mask M alone."""
    return paste(alpha(objects, sprite), objects.where, frame).float().clamp(max=1)


def draw(objects: ObjectState, sprite: Sprite, frame: tuple[int, int]) -> Foreground:
    opacity = alpha(objects, sprite)
    weight = opacity * torch.sigmoid(-objects.z_depth)[..., None, None]
    layers = torch.cat([sprite.colour * weight, weight, opacity], 2)  # [B, N, 5, P, P]
    canvas = paste(layers, objects.where, frame).float()
    colour = canvas[:, :3] / (canvas[:, 3:4] + 1e-5)
    cover = canvas[:, 4:]
    # Straight through the clamp: a pixel covered twice still tells its objects to yield.
    return Foreground(colour, cover + (cover.clamp(max=1) - cover).detach())


def compose(foreground: Foreground, background: Float[Tensor, "B 3 H W"] | None) -> Float[Tensor, "B 3 H W"]:
    """The frame; without a background it is black."""
    objects = foreground.mask * foreground.colour
    return objects if background is None else objects + (1 - foreground.mask) * background
