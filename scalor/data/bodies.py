"""Shapes and colour patterns of the objects in composed clips, drawn in windows around the objects' centres.

Outlines are signed distance functions in pixels; a pixel's alpha falls from 1 to 0 across the edge. There are five
kinds: blobs that deform, rounded boxes, thin bodies that bend, walkers whose legs swing, and dots. In most clips the
objects look alike.

N objects, B clips, T frames, windows of S by S pixels.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.data.hashing import between, choose, fold, normal, uniform
from scalor.data.walkers import walk

BLOB, BOX, THIN, WALKER, DOT = range(5)
SHARES = (0.27, 0.14, 0.27, 0.23, 0.09)
"""Probability of each kind, in the order above."""
MIXED = 0.2
"""Share of the clips in which each object's kind is drawn independently. In all others one kind is drawn per clip."""
ALIKE = 0.6
"""Share of the clips in which all objects have nearly the same size, shape and colours."""
LARGEST, SMALLEST = 28.0, 5.0
"""Largest and smallest allowed side of an object's box before rotation, pixels."""
UPRIGHT = 0.4
"""Share of the clips in which objects stay nearly upright instead of turning with their heading. Walkers always do."""
# Colour patterns.
PLAIN, SPLIT, STRIPES, RIM = range(4)
# Keys of parts and numbers of draws, see `hashing`.
BODY, LOOK = 0xB0D1, 0x100C
KIND, MIX, LIKE, SIZE, OWN_SIZE, ASPECT, OWN_ASPECT, TURN, TILT, SOFT, WOBBLE, BEND, GIRTH, TAPER, BEAT, WIDE = range(
    16
)
PATTERN, STRENGTH, SIGN, TINTED, CONTRAST, ANGLE, OFFSET, WAVES, HIDDEN, ODD = range(20, 30)
COLOUR, OTHER, SHIFT = 40, 44, 48


class Build(NamedTuple):
    """The kind, size and shape of N objects in B clips."""

    kind: Int[Tensor, "N B"]
    side: Float[Tensor, "N B"]
    """Square root of the area of the object's box, before its sides are limited, pixels."""
    half: Float[Tensor, "N B 2"]
    """Half the width and half the height before rotation, pixels."""
    upright: Bool[Tensor, "N B"]


class Outline(NamedTuple):
    """Objects drawn in their windows."""

    alpha: Float[Tensor, "N B T S S"]
    u: Float[Tensor, "N B T S S"]
    """Coordinate along the body, -1 to 1 from end to end. For walkers: coordinate to the side."""
    w: Float[Tensor, "N B T S S"]
    """Coordinate across the body, -1 to 1 from side to side. For walkers: -1 to 1 from head to feet."""


def build(clip: Int[Tensor, "B"], keys: Int[Tensor, "N B"], typical: float) -> Build:
    """Draw the kind, size and shape of every object. Sizes vary around `typical` pixels."""
    scene, own = fold(clip, BODY), fold(keys, BODY)
    mixed, alike = uniform(scene, MIX) < MIXED, (uniform(scene, LIKE) < ALIKE).float()
    kind = choose(torch.where(mixed, uniform(own, KIND), uniform(scene, KIND).expand_as(own)), SHARES)
    spread = 0.08 + 0.2 * (1 - alike)
    side = typical * (0.32 * normal(scene, SIZE).clamp(-2.2, 1.4) + spread * normal(own, OWN_SIZE)).exp()
    side = torch.where(kind == DOT, 0.55 * side, side)
    wide = math.log(2.6)
    aspect = alike * between(scene, ASPECT, -wide, wide) + (1 - alike) * between(own, OWN_ASPECT, -wide, wide)
    aspect = (0.5 * (aspect + 0.1 * normal(own, OWN_ASPECT))).exp()
    aspect = torch.where(kind == DOT, 1.0, aspect)
    half = torch.stack([side / aspect, side * aspect], -1).clamp(SMALLEST, LARGEST) / 2
    upright = (uniform(scene, TURN) < UPRIGHT).expand_as(kind)
    return Build(kind, side, half, upright)


def outline(
    clip: Int[Tensor, "B"],
    keys: Int[Tensor, "N B"],
    body: Build,
    heading: Float[Tensor, "N B T"],
    pace: Float[Tensor, "N B T"],
    x: Float[Tensor, "N B T S"],
    y: Float[Tensor, "N B T S"],
) -> Outline:
    """Draw the objects at pixels whose centres lie x and y from the objects' centres.

    `heading` is in radians. `pace` is the speed as a share of the object's usual speed; walkers' legs swing with it.
    """
    scene, own = fold(clip, BODY), fold(keys, BODY)
    times = torch.arange(heading.shape[-1], device=keys.device)

    def wide(values: Tensor) -> Tensor:
        """Append dimensions to [N, B] or [N, B, T], so that it broadcasts against windows."""
        return values[..., None, None] if values.ndim == 3 else values[..., None, None, None]

    kind = body.kind
    tilt = torch.where(body.upright, 0.12 * normal(own, TILT), 0.0)[..., None]
    angle = torch.where(body.upright[..., None], tilt, heading)
    dx, dy = x[..., None, :], y[..., :, None]
    along = dx * wide(angle.cos()) + dy * wide(angle.sin())
    across = dy * wide(angle.cos()) - dx * wide(angle.sin())
    half_u, half_w = wide(body.half[..., 0]), wide(body.half[..., 1])
    u, w = along / half_u, across / half_w

    narrow = torch.minimum(half_u, half_w)
    blob = (_radius(u, w) - _wobbly(own, scene, u, w, times)) * narrow
    box = torch.maximum(along.abs() - half_u, across.abs() - half_w) + 0.12 * narrow * (u.abs() * w.abs() > 0.8)
    thin, thin_u, thin_w = _thin(own, body, along, across, times)
    soft = wide(between(scene, SOFT, 0.7, 2.4).expand_as(kind))
    is_thin, is_box, is_walker = wide(kind == THIN), wide(kind == BOX), wide(kind == WALKER)
    distance = torch.where(is_thin, thin, torch.where(is_box, box, blob))
    alpha = (0.5 - distance / soft).clamp(0, 1)

    tall = (2 * body.half.amax(-1))[..., None].expand_as(heading).clamp(min=10)
    stretch = wide(between(scene, WIDE, 0.9, 2.0).expand_as(kind))
    seconds = (between(scene, BEAT, 0.04, 0.2)[:, None] * times).expand(len(clip), -1)
    walker = walk(keys, tall, seconds, pace.clamp(max=1), (x / stretch[..., 0]), y).alpha
    alpha = torch.where(is_walker, walker, alpha)
    w = torch.where(is_walker, 2 * dy / wide(tall), torch.where(is_thin, thin_w, w))
    u = torch.where(is_walker, dx / wide(0.2 * tall), torch.where(is_thin, thin_u, u))
    return Outline(alpha, u, w)


def _radius(u: Tensor, w: Tensor) -> Tensor:
    return (u * u + w * w + 1e-6).sqrt()


def _wobbly(own: Tensor, scene: Tensor, u: Tensor, w: Tensor, times: Tensor) -> Tensor:
    """Return the radius of a blob in the direction of each pixel. It is around 1 and changes over time."""
    theta = torch.atan2(w, u)
    amount = (uniform(scene, WOBBLE) < 0.6) * 0.25
    radius = torch.ones_like(theta)
    for lobes in (2, 3, 4):
        draws = fold(own, lobes)
        size = (amount * normal(draws, WOBBLE) / lobes)[..., None]
        phase = 2 * math.pi * uniform(draws, BEND)[..., None] + 0.5 * normal(draws, BEAT)[..., None] * times
        radius = radius + size[..., None, None] * (lobes * theta + phase[..., None, None]).cos()
    return radius.clamp(0.5, 1.4)


def _thin(own: Tensor, body: Build, along: Tensor, across: Tensor, times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the signed distance from bending thin bodies, and the coordinates along and across them."""

    def wide(values: Tensor) -> Tensor:
        return values[..., None, None, None]

    long = (body.side * between(own, ASPECT, 0.5, 0.75)).clamp(max=LARGEST / 2)
    beat = 2 * math.pi * uniform(own, BEAT)[..., None] + between(own, WOBBLE, 0.3, 1.5)[..., None] * times
    bend = (0.3 * normal(own, BEND)[..., None] + 0.25 * beat.sin())[..., None, None]
    u = along / wide(long)
    spine = across - bend * wide(long) * (u * u - 0.33)
    taper = 1 - wide(between(own, TAPER, 0.1, 0.8)) * (u + 1) / 2
    girth = (wide(between(own, GIRTH, 0.08, 0.24) * long) * taper).clamp(min=0.8)
    return torch.maximum(spine.abs() - girth, (u.abs() - 1) * wide(long)), u, spine / girth


def colours(
    clip: Int[Tensor, "B"],
    keys: Int[Tensor, "N B"],
    body: Build,
    shape: Outline,
    tone: Float[Tensor, "B"],
) -> Float[Tensor, "3 N B T S S"]:
    """Return the objects' colours: two colours in a pattern.

    Their brightness differs from the scene's `tone` by a randomly drawn contrast.
    """
    scene, own = fold(clip, LOOK), fold(keys, LOOK)
    alike = uniform(fold(clip, BODY), LIKE) < ALIKE
    source = torch.where(alike, scene.expand_as(own), own)

    def wide(values: Tensor) -> Tensor:
        return values[..., None, None, None]

    strength = (0.1 * 7 ** uniform(source, STRENGTH)).clamp(max=0.7)
    darker = (uniform(scene, SIGN) < 0.55) ^ (uniform(own, ODD) < 0.15)
    darker = torch.where(tone > 0.8, True, torch.where(tone < 0.2, False, darker))
    sign = 1 - 2 * darker.float()
    base = tone + sign * strength
    tinted = (uniform(scene, TINTED) < 0.6).float()
    pattern = choose(uniform(source, PATTERN), (0.35, 0.35, 0.15, 0.15))
    pattern = torch.where(body.kind == WALKER, SPLIT, pattern)
    # The second colour may equal the scene's, so that a part of the object is hardly visible.
    other = tone + sign * strength * between(source, CONTRAST, -0.4, 1.6)
    other = torch.where(uniform(source, HIDDEN) < 0.12, tone, other)
    direction = wide(2 * math.pi * uniform(source, ANGLE))
    direction = torch.where(wide(body.kind == WALKER), 0.1 * direction, direction)
    u, w = shape.u, shape.w
    slope = w * direction.cos() + u * direction.sin() + wide(between(source, OFFSET, -0.5, 0.5))
    mixes = {
        SPLIT: torch.sigmoid(6 * slope),
        STRIPES: torch.sigmoid(4 * (slope * wide(between(source, WAVES, 3, 9))).sin()),
        RIM: torch.sigmoid(8 * (_radius(u, w) - wide(between(source, OFFSET, 0.3, 0.85)))),
    }
    mix = torch.zeros_like(u)
    for number, values in mixes.items():
        mix = torch.where(wide(pattern == number), values, mix)
    painted = []
    for channel in range(3):
        tint = tinted * 0.22 * (normal(source, COLOUR + channel) + 0.3 * normal(own, SHIFT + channel))
        tint_of_other = tinted * 0.22 * normal(source, OTHER + channel)
        one, two = wide((base + tint).clamp(0, 1)), wide((other + tint_of_other).clamp(0, 1))
        painted.append(torch.lerp(one.expand_as(mix), two.expand_as(mix), mix))
    return torch.stack(painted)
