"""Objects laid over each other: from windows of alpha and colour to frames and their truth.

Objects are sorted from front to back and come first: N objects, B clips, T frames, windows of R rows and S columns.
Nothing here reads a tensor back or lets a shape depend on one: a call can be captured in a CUDA graph.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.data.clip import Clip, Truth

GONE = 0.005  # an object with at most this share of its area in view has left: it is not drawn

# Weights of objects in a pixel are rounded to whole steps, and colours to bytes. Whole numbers below 2^24 add
# up to the same in any order, so frames do not depend on how a device schedules its sums.
STEPS = 4096
BYTE = 255


@dataclass(frozen=True)
class Cast:
    """The objects of a batch of clips, ready to be drawn."""

    number: Int[Tensor, "N B"]
    """Which of the clip's objects stands here in the row from front to back."""
    exists: Bool[Tensor, "N B T"]
    centre: Float[Tensor, "N B T 2"]
    """x and y, pixels."""
    half: Float[Tensor, "N B #T 2"]
    """Half the width and half the height, pixels."""
    alpha: Float[Tensor, "N B T R S"]
    """In whole `STEPS`. It is used up by drawing."""
    row: Int[Tensor, "N B T R"]
    """The rows of the view that a window lies on;"""
    column: Int[Tensor, "N B T S"]
    """and its columns."""
    colour: Float[Tensor, "3 N B #T #R #S"]
    shadow: Float[Tensor, "N B T R S"] | None = None
    """The share of the light that an object takes from what is behind all objects."""
    full: Float[Tensor, "N B T"] | None = None
    """Every object's whole area, pixels, where `alpha` leaves out what the scene covers."""


@dataclass(frozen=True)
class Layers:
    """Objects laid over each other in all L pixels of a batch: who is seen where, and how much of them."""

    colours: Float[Tensor, "3 L"]
    open_share: Float[Tensor, "L"]
    heaviest: Int[Tensor, "L"]
    """Number of the object with the largest weight in a pixel, -1 where the background has a larger one."""
    area: Float[Tensor, "N B T"]
    """Every object's area in view that nothing covers, pixels."""


def draw(cast: Cast, frame: tuple[int, int], background: Float[Tensor, "B T 3 H W"] | None) -> Clip:
    """Frames of the given height and width, and their truth; no background is black."""
    alpha, row, column = cast.alpha, cast.row, cast.column
    full = alpha.sum((-2, -1)) if cast.full is None else cast.full.clone()
    shape = (*cast.exists.shape[1:], *frame)
    row_inside, column_inside = (row >= 0) & (row < shape[2]), (column >= 0) & (column < shape[3])
    alpha *= row_inside[..., :, None]
    alpha *= column_inside[..., None, :]
    present = cast.exists & (alpha.sum((-2, -1)) > GONE * full)
    alpha *= present[..., None, None]

    # Whatever is out of view has no weight by now and lands on a second set of pixels after the first: on many of them,
    # since a GPU adds up what meets in one pixel one by one.
    pixels = math.prod(shape)
    picture = torch.arange(shape[0] * shape[1], device=alpha.device).view(*shape[:2], 1)
    line = (picture * shape[2] + row % shape[2]) * shape[3]
    place = line[..., :, None] + (column % shape[3])[..., None, :]
    place += pixels * ~(row_inside[..., :, None] & column_inside[..., None, :])
    layers = compose(alpha, place, cast.number, cast.colour, pixels)
    frames = layers.colours.view(3, *shape).movedim(0, 2).contiguous()
    if background is not None:
        open_share = layers.open_share.view(shape)[:, :, None]
        if cast.shadow is not None:
            background = background * (1 - shade(cast.shadow * present[..., None, None], place, shape))
        frames += open_share * background

    order = cast.number.argsort(dim=0)
    here = torch.arange(shape[0], device=alpha.device)

    def by_number(values: Tensor) -> Tensor:
        """[N, B, T, ...] from front to back -> [B, T, N, ...] in the objects' numbering."""
        return values[order, here].movedim(0, 2)

    truth = Truth(
        id=by_number(_identities(present, cast.number)),
        centre=by_number(cast.centre),
        box=by_number(torch.cat((cast.centre - cast.half, cast.centre + cast.half), -1)),
        visible=by_number(layers.area / full.clamp(min=1 / STEPS)),
        order=order.T,
        owner=layers.heaviest.view(shape),
    )
    return Clip(frames.clamp_(0, 1), truth)


def compose(
    alpha: Float[Tensor, "N B T R S"],
    place: Int[Tensor, "N B T R S"],
    number: Int[Tensor, "N B"],
    colour: Float[Tensor, "3 N B #T #R #S"],
    pixels: int,
) -> Layers:
    """Lay windows over each other from front to back; `place` is the pixel, of all frames' L `pixels`, that
    each element of a window lies on (from `pixels` on: out of view). `alpha` is used up."""
    count = len(alpha)
    weight, at = alpha.view(count, -1), place.view(count, -1)
    open_share = torch.ones(2 * pixels, device=alpha.device)
    for layer in range(count):
        passed = open_share.index_select(0, at[layer])
        weight[layer] *= passed
        open_share.index_copy_(0, at[layer], passed - weight[layer])

    steps = alpha.mul_(STEPS).round_()
    # The heaviest object of a pixel is the largest of numbers that hold a weight above and an object below.
    bits = count.bit_length()
    claims = steps.int().bitwise_left_shift_(bits).add_(number.int()[..., None, None, None])
    heaviest = torch.zeros(2 * pixels, dtype=torch.int, device=alpha.device)
    heaviest.scatter_reduce_(0, at.flatten(), claims.flatten(), "amax")
    owned = (heaviest >> bits) > open_share * STEPS
    heaviest = torch.where(owned, heaviest & (2**bits - 1), -1)
    paint = torch.zeros(3, 2 * pixels, device=alpha.device)
    for channel, tone in enumerate(colour):
        paint[channel].scatter_add_(0, at.flatten(), (steps * (tone * BYTE).round()).flatten())
    paint /= STEPS * BYTE
    return Layers(
        colours=paint[:, :pixels],
        open_share=open_share[:pixels],
        heaviest=heaviest[:pixels].long(),
        area=steps.sum((-2, -1)) / STEPS,
    )


def shade(
    shadow: Float[Tensor, "N B T R S"], place: Int[Tensor, "N B T R S"], shape: tuple[int, ...]
) -> Float[Tensor, "B T 1 H W"]:
    """The deepest shadow on every pixel."""
    pixels = math.prod(shape)
    deepest = torch.zeros(2 * pixels, device=shadow.device)
    deepest.scatter_reduce_(0, place.flatten(), shadow.flatten(), "amax")
    return deepest[:pixels].view(shape)[:, :, None]


def _identities(present: Bool[Tensor, "N B T"], number: Int[Tensor, "N B"]) -> Int[Tensor, "N B T"]:
    """-1 out of view; otherwise the object's number plus N for every earlier visit."""
    before = torch.cat((torch.zeros_like(present[..., :1]), present[..., :-1]), -1)
    visits = (present & ~before).cumsum(-1)
    return torch.where(present, number[..., None] + len(present) * (visits - 1), -1)
