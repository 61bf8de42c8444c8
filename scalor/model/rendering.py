"""Objects and background become a frame (paper: Algorithm 3).

Colours are premultiplied by their weights, pasted and divided by the pasted weights: the paper's normalised
gamma, without a canvas per object.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.kernels import paste
from scalor.model.decoders import Sprite
from scalor.model.state import ObjectState


class Figures(NamedTuple):
    """Objects as the renderer needs them."""

    where: Float[Tensor, "B N 4"]
    presence: Float[Tensor, "B N 1"]
    """0 for what is not to be drawn."""
    z_depth: Float[Tensor, "B N 1"]
    sprite: Sprite

    def beside(self, other: "Figures") -> "Figures":
        """Both together in one scene."""

        def cat(one: Tensor, two: Tensor) -> Tensor:
            return torch.cat([one, two], 1)

        sprite = Sprite(*(cat(*pair) for pair in zip(self.sprite, other.sprite, strict=True)))
        return Figures(
            cat(self.where, other.where),
            cat(self.presence, other.presence),
            cat(self.z_depth, other.z_depth),
            sprite,
        )

    def padded(self, count: int) -> "Figures":
        """With room for `count` objects; nothing is drawn in the new places."""
        missing = count - self.where.shape[1]
        if not missing:
            return self
        blank = ObjectState.empty(len(self.where), missing, 1, 0, self.where)
        shape = (len(self.where), missing, -1, -1, -1)
        empty = Sprite(*(torch.zeros_like(part[:, :1]).expand(shape) for part in self.sprite))
        return self.beside(figures(blank, empty))


def figures(objects: ObjectState, sprite: Sprite, alive: Float[Tensor, "B N 1"] | None = None) -> Figures:
    """The objects that are alive; hand in `alive` to draw others."""
    shown = objects.alive if alive is None else alive
    return Figures(objects.where, objects.presence * shown, objects.z_depth, sprite)


class Foreground(NamedTuple):
    """All objects drawn together."""

    colour: Float[Tensor, "B 3 H W"]
    """Colour of the objects at a pixel, weighted by mask, presence and nearness."""
    mask: Float[Tensor, "B 1 H W"]
    """M, how far objects cover a pixel, 0 to 1."""


def coverage(shown: Figures, frame: tuple[int, int]) -> Float[Tensor, "B 1 H W"]:
    """The objects' mask M alone."""
    return paste(shown.sprite.mask * shown.presence[..., None, None], shown.where, frame).float().clamp(max=1)


def draw(shown: Figures, frame: tuple[int, int]) -> Foreground:
    opacity = shown.sprite.mask * shown.presence[..., None, None]  # [B, N, 1, P, P]
    weight = opacity * torch.sigmoid(-shown.z_depth)[..., None, None]
    layers = torch.cat([shown.sprite.colour * weight, weight, opacity], 2)  # [B, N, 5, P, P]
    canvas = paste(layers, shown.where, frame).float()
    colour = canvas[:, :3] / (canvas[:, 3:4] + 1e-5)
    return Foreground(colour, canvas[:, 4:].clamp(max=1))


def compose(foreground: Foreground, background: Float[Tensor, "B 3 H W"] | None) -> Float[Tensor, "B 3 H W"]:
    """The frame; without a background it is black."""
    objects = foreground.mask * foreground.colour
    return objects if background is None else objects + (1 - foreground.mask) * background
