"""Rendering of objects and background into a frame (paper: Algorithm 3).

Colours are multiplied by their weights, pasted, and divided by the sum of the pasted weights. This equals the paper's
normalised gamma and needs no canvas per object.

Letters: B clips, N objects, H by W pixels, P glimpse side.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scalor.kernels import crop, paste
from scalor.model.glimpses import Sprite
from scalor.model.state import ObjectState
from scalor.nn.records import concatenate

NEIGHBOURS = 6
"""Number of objects that may hide parts of an object, where objects are composited from front to back."""


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


def draw(shown: RenderInput, frame: tuple[int, int], sharpness: float = 0.0) -> Sprite:
    """Render all objects together; `frame` is (height, width).

    With a `sharpness` of 0, as in the paper, the colour of a pixel is the mean of the objects' colours, weighted by
    mask, presence and nearness, and the mask M is the sum of their masks, at most 1.

    Otherwise objects are composited from front to back: what nearer objects cover of an object does not show
    (`transmittance`), whatever its colour.
    """
    opacity = shown.sprite.mask * shown.presence[..., None, None]  # [B, N, 1, P, P]
    if sharpness:
        weight = opacity * transmittance(opacity, shown, sharpness)
        canvas = paste(torch.cat([shown.sprite.colour * weight, weight], 2), shown.where, frame).float()
        mask = canvas[:, 3:]
        return Sprite(canvas[:, :3] / (mask + 1e-5), mask.clamp(max=1))
    weight = opacity * torch.sigmoid(-shown.z_depth)[..., None, None]
    layers = torch.cat([shown.sprite.colour * weight, weight, opacity], 2)  # [B, N, 5, P, P]
    canvas = paste(layers, shown.where, frame).float()
    colour = canvas[:, :3] / (canvas[:, 3:4] + 1e-5)
    return Sprite(colour, canvas[:, 4:].clamp(max=1))


def transmittance(
    opacity: Float[Tensor, "B N 1 P P"], shown: RenderInput, sharpness: float
) -> Float[Tensor, "B N 1 P P"]:
    """Return which share of each pixel of an object no nearer object hides.

    It is the product of 1 - opacity over all nearer objects. Which of two objects is nearer is relaxed:
    sigmoid(sharpness * difference of depths). Only the `NEIGHBOURS` objects that overlap most with an object are looked
    at. Their opacities are sampled at the pixels of the object's glimpse.
    """
    where, depth = shown.where, shown.z_depth[..., 0]
    count = where.shape[1]
    if count == 1:
        return torch.ones_like(opacity)
    with torch.no_grad():
        apart = (where[:, :, None, :2] - where[:, None, :, :2]).abs()
        shared = (1 - 2 * apart / (where[:, :, None, 2:] + where[:, None, :, 2:])).clamp(min=0).prod(-1)
        itself = torch.eye(count, device=where.device, dtype=torch.bool)
        shared = (shared * shown.presence[:, None, :, 0]).masked_fill(itself, -1)
        others = shared.topk(min(NEIGHBOURS, count - 1), -1).indices  # [B, N, S]
    seen = look_through(opacity[:, :, 0], where, others)
    nearer = torch.sigmoid(sharpness * (depth[..., None] - depth.gather(1, others.flatten(1)).view_as(others)))
    left = torch.ones_like(opacity[:, :, 0])
    for each in range(others.shape[-1]):
        left = left * (1 - seen[:, :, each] * nearer[:, :, each, None, None])
    return left[:, :, None]


def look_through(
    masks: Float[Tensor, "B N P P"], where: Float[Tensor, "B N 4"], others: Int[Tensor, "B N S"]
) -> Float[Tensor, "B N S P P"]:
    """Return the masks of S other objects of each object, sampled at the pixels of the object's own glimpse."""
    clips, count, side, _ = masks.shape
    index = others.flatten(1)[..., None]  # [B, N * S, 1]
    theirs = where.gather(1, index.expand(-1, -1, 4)).view(clips, count, -1, 4)
    scale = side / theirs[..., 2:]
    centre = (where[:, :, None, :2] - theirs[..., :2]) * scale + side / 2
    within = torch.cat([centre, where[:, :, None, 2:] * scale], -1).view(-1, 1, 4)
    drawn = masks.flatten(2).gather(1, index.expand(-1, -1, side**2)).view(-1, 1, side, side)
    return crop(drawn, within, side).view(clips, count, -1, side, side)


def compose(foreground: Sprite, background: Float[Tensor, "B 3 H W"] | None) -> Rendering:
    """Render the frame M * colour + (1 - M) * background; the background is black where None.

    The paper's Algorithm 3 does not multiply the foreground colour by M, so it renders faint objects at full strength.
    """
    objects = foreground.mask * foreground.colour
    image = objects if background is None else objects + (1 - foreground.mask) * background
    return Rendering(image, background, foreground)
