"""Walkers: simple people seen obliquely from above, with a head, a torso and two legs that swing.

Lengths are in units of the walker's height. Internally, u runs to the right and v downwards from the centre of the top
of the head. A pixel's alpha is clamp(0.5 - d, 0, 1), where d is the signed distance in pixels.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scalor.data.hashing import between, fold, uniform

HEAD = 0.08
"""Distance of the head's centre from its top."""
REACH = (0.3, 0.57)
"""Extent of a walker and its shadow from the centre of its box, sideways and downwards."""
SHADOW = 0.35
"""Share of the light that the shadow removes right below the feet."""
SHOULDERS = 1.17
"""Width of the shoulders relative to the torso's."""
SWAY = 0.015
"""Amplitude of the body's sideways movement."""
# Keys of parts and numbers of draws, see `hashing`.
LOOK = 0x3A1C
TORSO, LEGS, SKIN, HUE, PHASE, PACE, BUILD = range(7)


@dataclass(frozen=True)
class Drawn:
    """Walkers drawn in windows of R rows and S columns. `shadow` is the share of the light removed."""

    alpha: Float[Tensor, "N B T R S"]
    colour: Float[Tensor, "3 N B T R S"]
    shadow: Float[Tensor, "N B T R S"]


def half_width(keys: Int[Tensor, "N B"]) -> Float[Tensor, "N B"]:
    """Return half the width of a walker's box, in heights.

    It is how far the shoulders get when the body sways, which is about how far the feet swing.
    """
    return SHOULDERS * _broad(fold(keys, LOOK)) + SWAY


def walk(
    keys: Int[Tensor, "N B"],
    height: Float[Tensor, "N B T"],
    seconds: Float[Tensor, "B T"],
    hurry: Float[Tensor, "N B T"],
    x: Float[Tensor, "N B T S"],
    y: Float[Tensor, "N B T R"],
) -> Drawn:
    """Draw walkers at pixels whose centres lie x and y from the centres of the walkers' boxes.

    `hurry` is 1 for walkers in motion and 0 for those who stand.
    """
    look = fold(keys, LOOK)
    tall = height[..., None, None]
    phase = (2 * math.pi) * (uniform(look, PHASE)[..., None] + between(look, PACE, 0.8, 1.1)[..., None] * seconds)
    swing = (0.07 * hurry * phase.sin())[..., None, None]
    u = x[..., None, :] / tall - SWAY * (hurry * phase.cos())[..., None, None]
    v = y[..., :, None] / tall + 0.5

    def cover(distance: Tensor) -> Tensor:
        return (0.5 - distance * tall).clamp_(0, 1)

    head = cover(_ellipse(u, v - HEAD, 0.065, HEAD))
    broad = _broad(look)[..., None, None, None]
    torso = cover(_box(u, v - 0.36, broad * (SHOULDERS - 0.35 * (v - 0.16)), 0.2))
    down = ((v - 0.5) / 0.5).clamp(0, 1)
    legs = cover(torch.minimum(_leg(u - 0.045 - swing * down, v), _leg(u + 0.045 + swing * down, v)))
    alpha = 1 - (1 - head) * (1 - torso) * (1 - legs)

    round_off = 1.1 - 2.5 * u.abs() - 0.25 * (v - 0.3)  # lit from above, darker to the sides
    tones = _tones(look)[..., None, None, None]  # [3 parts, 3, N, B, 1, 1, 1]
    lower = torch.lerp(tones[1], tones[0], torso)
    colour = torch.lerp(lower, tones[2], head) * round_off.clamp(0.5, 1.15)
    fade = (1 - (u / 0.27).square() - ((v - 0.98) / 0.075).square()).clamp_(0, 1)
    return Drawn(alpha, colour.clamp_(0, 1), SHADOW * fade)


def _broad(look: Int[Tensor, "N B"]) -> Float[Tensor, "N B"]:
    return between(look, BUILD, 0.1, 0.14)


def _tones(look: Int[Tensor, "N B"]) -> Float[Tensor, "3 3 N B"]:
    """Return muted colours of torso, legs and head: mostly dark clothes, some light."""
    hue = uniform(look, HUE) * (2 * math.pi)
    tint = torch.stack([1 + 0.1 * (hue + shift).cos() for shift in (0.0, 2.1, 4.2)])
    warm = torch.stack([torch.full_like(hue, part) for part in (1.15, 1.0, 0.88)])
    torso = (0.06 + 0.65 * uniform(look, TORSO).pow(2.5)) * tint
    legs = (0.05 + 0.25 * uniform(look, LEGS).square()) * tint.flip(0)
    return torch.stack((torso, legs, between(look, SKIN, 0.12, 0.5) * warm))


def _ellipse(u: Tensor, v: Tensor, across: float, down: float) -> Tensor:
    """Return the approximate signed distance. It is exact along the shorter axis."""
    return ((u / across).square() + (v / down).square()).sqrt().sub_(1).mul_(min(across, down))


def _box(u: Tensor, v: Tensor, across: Tensor, down: float, corner: float = 0.06) -> Tensor:
    right, below = (u.abs() - across + corner), (v.abs() - down + corner)
    outside = (right.clamp(min=0).square() + below.clamp(min=0).square()).sqrt()
    return outside + torch.maximum(right, below).clamp(max=0) - corner


def _leg(u: Tensor, v: Tensor) -> Tensor:
    return torch.maximum(u.abs() - 0.048, (v - 0.75).abs() - 0.25)
