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
from scalor.model.decoders import Sprite
from scalor.model.state import ObjectState


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

        def cat(one: Tensor, two: Tensor) -> Tensor:
            return torch.cat([one, two], 1)

        sprite = Sprite(*(cat(*pair) for pair in zip(self.sprite, other.sprite, strict=True)))
        return RenderInput(
            cat(self.where, other.where),
            cat(self.presence, other.presence),
            cat(self.z_depth, other.z_depth),
            sprite,
        )

    def padded(self, count: int) -> "RenderInput":
        """Append objects of presence 0, `count` objects in all."""
        missing = count - self.where.shape[1]
        if not missing:
            return self
        blank = ObjectState.empty(len(self.where), missing, 1, 0, self.where)
        shape = (len(self.where), missing, -1, -1, -1)
        empty = Sprite(*(torch.zeros_like(part[:, :1]).expand(shape) for part in self.sprite))
        return self.beside(render_input(blank, empty))


def render_input(objects: ObjectState, sprite: Sprite, alive: Float[Tensor, "B N 1"] | None = None) -> RenderInput:
    """Return the objects to render: those of `alive` where it is given, otherwise those of `objects.alive`."""
    shown = objects.alive if alive is None else alive
    return RenderInput(objects.where, objects.presence * shown, objects.z_depth, sprite)


class Foreground(NamedTuple):
    """All objects rendered together, without a background."""

    colour: Float[Tensor, "B 3 H W"]
    """Mean colour of the objects at each pixel, weighted by mask, presence and nearness."""
    mask: Float[Tensor, "B 1 H W"]
    """Foreground mask M: how much of each pixel the objects cover, 0 to 1."""


def coverage(shown: RenderInput, frame: tuple[int, int]) -> Float[Tensor, "B 1 H W"]:
    """Return the foreground mask M of the objects; `frame` is (height, width)."""
    return paste(shown.sprite.mask * shown.presence[..., None, None], shown.where, frame).float().clamp(max=1)


def draw(shown: RenderInput, frame: tuple[int, int]) -> Foreground:
    """Render all objects; `frame` is (height, width)."""
    opacity = shown.sprite.mask * shown.presence[..., None, None]  # [B, N, 1, P, P]
    weight = opacity * torch.sigmoid(-shown.z_depth)[..., None, None]
    layers = torch.cat([shown.sprite.colour * weight, weight, opacity], 2)  # [B, N, 5, P, P]
    canvas = paste(layers, shown.where, frame).float()
    colour = canvas[:, :3] / (canvas[:, 3:4] + 1e-5)
    return Foreground(colour, canvas[:, 4:].clamp(max=1))


def compose(foreground: Foreground, background: Float[Tensor, "B 3 H W"] | None) -> Float[Tensor, "B 3 H W"]:
    """Return the frame M * colour + (1 - M) * background; the background is black where None.

    The paper's Algorithm 3 does not multiply the foreground colour by M, so it renders faint objects at full strength.
    """
    objects = foreground.mask * foreground.colour
    return objects if background is None else objects + (1 - foreground.mask) * background
