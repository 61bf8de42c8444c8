"""The layers of a synthetic frame: a moving background, and objects composited over it by alpha.

The background is a few slow waves of muted colour, in closed form in time. All its values lie within [0.1, 0.6], well
below the objects' colours: the mean of a channel is 0.3 to 0.4, and the amplitudes of the waves add up to at most 0.2.

Compositing takes windows of alpha and colour and gives frames and their ground truth. Nothing here copies a tensor to
the host and no shape depends on a tensor's values, so a call can be captured in a CUDA graph.

The object dimension comes first, sorted from front to back: N objects, B clips, T frames, windows of R rows and S
columns.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.data.clip import Clip, Truth
from scalor.data.hashing import between, fold, uniform
from scalor.data.observation import Observation

WAVES = 3
# Numbers of draws and the key of a part, see `hashing`.
HEADING, CYCLES, PHASE, DRIFT, STRENGTH = range(5)
CHANNEL = 8  # draws CHANNEL, CHANNEL + 1, CHANNEL + 2: one per colour channel
TEXTURE = 0xBAC6


def textures(keys: Int[Tensor, "B"], times: Int[Tensor, "T"], frame: tuple[int, int]) -> Float[Tensor, "B T 3 H W"]:
    """Return the background of each clip at the given frames."""
    height, width = frame
    base = fold(keys, TEXTURE)
    rows = torch.arange(height, device=keys.device) + 0.5
    columns = torch.arange(width, device=keys.device) + 0.5
    picture = _channels(base, 0.3, 0.4)[:, None, :, None, None]  # [B, 1, 3, 1, 1]
    for wave in range(WAVES):
        draws = fold(base, wave)
        heading = uniform(draws, HEADING) * (2 * math.pi)
        # Cycles along the longer side in both axes, so that the wavelength in pixels does not depend on the direction.
        pitch = between(draws, CYCLES, 0.5, 2.0) * (2 * math.pi / max(frame))
        # Up to a tenth of a cycle per frame: a drift of a few pixels.
        drift = between(draws, DRIFT, -0.1, 0.1) * (2 * math.pi)
        phase = (uniform(draws, PHASE) * (2 * math.pi))[:, None] + drift[:, None] * times  # [B, T]
        down = (pitch * heading.sin())[:, None] * rows  # [B, H]
        across = (pitch * heading.cos())[:, None] * columns  # [B, W]
        angle = phase[:, :, None, None] + (down[:, :, None] + across[:, None, :])[:, None]  # [B, T, H, W]
        strength = between(draws, STRENGTH, 0.6, 1.0) * (0.2 / WAVES)
        tint = _channels(draws, -0.2, 1.0) * strength[:, None]
        picture = picture + angle.sin_()[:, :, None] * tint[:, None, :, None, None]
    return picture


def _channels(keys: Int[Tensor, "B"], low: float, high: float) -> Float[Tensor, "B 3"]:
    return torch.stack([between(keys, CHANNEL + channel, low, high) for channel in range(3)], -1)


GONE = 0.005  # an object with at most this share of its area in view counts as out of view and is not drawn

# Weights of objects in a pixel are rounded to multiples of 1 / STEPS, and colours to bytes. Sums of integers below 2^24
# are exact in float32 in any order, so frames do not depend on the order in which a device adds.
STEPS = 4096
BYTE = 255


@dataclass(frozen=True)
class Cast:
    """The objects of a batch of clips, ready to be drawn."""

    number: Int[Tensor, "N B"]
    """Index within the clip of each object in the order from front to back."""
    exists: Bool[Tensor, "N B T"]
    centre: Float[Tensor, "N B T 2"]
    """x and y, pixels."""
    half: Float[Tensor, "N B #T 2"]
    """Half the width and half the height, pixels."""
    alpha: Float[Tensor, "N B T R S"]
    """Opacity, a multiple of 1 / STEPS. `draw` overwrites it."""
    row: Int[Tensor, "N B T R"]
    """Rows of the frame that the rows of a window lie on."""
    column: Int[Tensor, "N B T S"]
    """Columns of the frame that the columns of a window lie on."""
    colour: Float[Tensor, "3 N B #T #R #S"]
    shadow: Float[Tensor, "N B T R S"] | None = None
    """Share of the light that an object's shadow removes from the background."""
    full: Float[Tensor, "N B T"] | None = None
    """Full area of each object, pixels. None: the sum of `alpha`, which is right unless the scene hides parts of it."""


@dataclass(frozen=True)
class Layers:
    """Composited objects in all L pixels of a batch."""

    colours: Float[Tensor, "3 L"]
    """Sum of the objects' colours times their weights."""
    open_share: Float[Tensor, "L"]
    """Share of a pixel that no object covers."""
    heaviest: Int[Tensor, "L"]
    """Index of the object with the largest weight in a pixel, -1 where the background's weight is at least as large."""
    area: Float[Tensor, "N B T"]
    """Area of each object that is in view and not occluded, pixels."""


def draw(cast: Cast, frame: tuple[int, int], background: Float[Tensor, "B T 3 H W"] | None) -> Clip:
    """Draw frames of the given height and width, and return them with their truth.

    Without a `background`, pixels that no object covers are black. `cast.alpha` is overwritten.
    """
    alpha, row, column = cast.alpha, cast.row, cast.column
    full = alpha.sum((-2, -1)) if cast.full is None else cast.full.clone()
    shape = (*cast.exists.shape[1:], *frame)
    row_inside, column_inside = (row >= 0) & (row < shape[2]), (column >= 0) & (column < shape[3])
    alpha *= row_inside[..., :, None]
    alpha *= column_inside[..., None, :]
    present = cast.exists & (alpha.sum((-2, -1)) > GONE * full)
    alpha *= present[..., None, None]

    # Window pixels out of view now have weight 0. They are mapped to a second set of pixels behind the real ones. A
    # single dummy pixel would do, but a GPU adds values that meet in one pixel one after another, which is slow.
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
        """Reorder [N, B, T, ...] from front to back into [B, T, N, ...] in the order of the objects' indices."""
        return values[order, here].movedim(0, 2)

    truth = Truth(
        id=by_number(_identities(present, cast.number)),
        centre=by_number(cast.centre),
        box=by_number(torch.cat((cast.centre - cast.half, cast.centre + cast.half), -1)),
        visible=by_number(layers.area / full.clamp(min=1 / STEPS)),
        order=order.T,
        owner=layers.heaviest.view(shape),
    )
    return Clip(Observation(frames.clamp_(0, 1)), truth)


def compose(
    alpha: Float[Tensor, "N B T R S"],
    place: Int[Tensor, "N B T R S"],
    number: Int[Tensor, "N B"],
    colour: Float[Tensor, "3 N B #T #R #S"],
    pixels: int,
) -> Layers:
    """Composite windows from front to back.

    `place` is the pixel that each element of a window lies on, numbered through all frames; values from `pixels` on are
    out of view. `alpha` is overwritten.
    """
    count = len(alpha)
    weight, at = alpha.view(count, -1), place.view(count, -1)
    open_share = torch.ones(2 * pixels, device=alpha.device)
    for layer in range(count):
        passed = open_share.index_select(0, at[layer])
        weight[layer] *= passed
        open_share.index_copy_(0, at[layer], passed - weight[layer])

    steps = alpha.mul_(STEPS).round_()
    # To find the object with the largest weight in each pixel, pack weight (high bits) and index (low bits) into one
    # integer and take the maximum.
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
    """Return the strongest shadow on each pixel, as the share of light removed."""
    pixels = math.prod(shape)
    deepest = torch.zeros(2 * pixels, device=shadow.device)
    deepest.scatter_reduce_(0, place.flatten(), shadow.flatten(), "amax")
    return deepest[:pixels].view(shape)[:, :, None]


def _identities(present: Bool[Tensor, "N B T"], number: Int[Tensor, "N B"]) -> Int[Tensor, "N B T"]:
    """Return identities: -1 out of view, otherwise the object's index plus N for each earlier visit to the view."""
    before = torch.cat((torch.zeros_like(present[..., :1]), present[..., :-1]), -1)
    visits = (present & ~before).cumsum(-1)
    return torch.where(present, number[..., None] + len(present) * (visits - 1), -1)
