"""Rendering of objects and background into a frame (paper: Algorithm 3).

Colours are multiplied by their weights, pasted, and divided by the sum of the pasted weights. This equals the paper's
normalised gamma and needs no canvas per object.

Letters: B clips, N objects, H by W pixels, P glimpse side.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.kernels import paste
from scalor.model.glimpses import Sprite
from scalor.model.state import ObjectState
from scalor.nn.records import concatenate


class RenderInput(NamedTuple):
    """Objects to be rendered."""

    where: Float[Tensor, "B N 4"]
    """x, y, w, h: centre and size, pixels."""
    presence: Float[Tensor, "B N 1"]
    """z_pres; 0 for objects that are not to be rendered."""
    z_depth: Float[Tensor, "B N 1"]
    """Smaller is nearer to the camera."""
    sprite: Sprite

    def beside(self, other: "RenderInput") -> "RenderInput":
        """Concatenate the objects of both records, to render them in one scene."""
        return concatenate([self, other], 1)

    def padded(self, count: int) -> "RenderInput":
        """Append objects of presence 0, `count` objects in all."""
        missing = count - self.where.shape[1]
        if not missing:
            return self
        nothing = self.where.new_zeros(len(self.where), missing, 1)
        shape = (len(self.where), missing, -1, -1, -1)
        empty = Sprite(*(torch.zeros_like(part[:, :1]).expand(shape) for part in self.sprite))
        return self.beside(RenderInput(nothing.expand(-1, -1, 4) + 1, nothing, nothing, empty))


def render_input(objects: ObjectState, sprite: Sprite, alive: Float[Tensor, "B N 1"] | None = None) -> RenderInput:
    """Return the objects to render: those of `alive` where it is given, otherwise those of `objects.alive`."""
    shown = objects.alive if alive is None else alive
    return RenderInput(objects.where, objects.presence * shown, objects.z_depth, sprite)


class Rendering(NamedTuple):
    """Rendered frames."""

    image: Float[Tensor, "B 3 H W"]
    """The frames y, objects over the background."""
    background: Float[Tensor, "B 3 H W"] | None
    """None where the background is black."""
    foreground: Sprite
    """All objects rendered together: their mean colour at each pixel, and the mask M."""


def coverage(shown: RenderInput, frame: tuple[int, int]) -> Float[Tensor, "B 1 H W"]:
    """Return the foreground mask M of the objects; `frame` is (height, width)."""
    return paste(shown.sprite.mask * shown.presence[..., None, None], shown.where, frame).float().clamp(max=1)


def draw(shown: RenderInput, frame: tuple[int, int]) -> Sprite:
    """Render all objects together; `frame` is (height, width).

    The colour of a pixel is the mean of the objects' colours, weighted by mask, presence and nearness. The mask M says
    how much of the pixel the objects cover, 0 to 1.
    """
    opacity = shown.sprite.mask * shown.presence[..., None, None]  # [B, N, 1, P, P]
    weight = opacity * torch.sigmoid(-shown.z_depth)[..., None, None]
    layers = torch.cat([shown.sprite.colour * weight, weight, opacity], 2)  # [B, N, 5, P, P]
    canvas = paste(layers, shown.where, frame).float()
    colour = canvas[:, :3] / (canvas[:, 3:4] + 1e-5)
    return Sprite(colour, canvas[:, 4:].clamp(max=1))


def compose(foreground: Sprite, background: Float[Tensor, "B 3 H W"] | None) -> Rendering:
    """Render the frame M * colour + (1 - M) * background; the background is black where None.

    The paper's Algorithm 3 does not multiply the foreground colour by M, so it renders faint objects at full strength.
    """
    objects = foreground.mask * foreground.colour
    image = objects if background is None else objects + (1 - foreground.mask) * background
    return Rendering(image, background, foreground)
