"""How the things of a composed clip move: straight on, wandering, jittering, in a school, or stopping and going on.

Half of the kinds of motion belong to a whole clip, as in real footage, and some clips mix them. Pairs of things may be
sent through one place at about one time, so that they cross.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scalor.data.hashing import between, choose, fold, normal, uniform

STRAIGHT, WANDERING, BROWNIAN, SCHOOLING, STOPPING = range(5)
SHARES = (0.32, 0.2, 0.13, 0.15, 0.2)
"""How often each kind of motion occurs, in the order above."""
MIXED = 0.25
"""Share of the clips in which every thing moves in its own way."""
TURNS = (0.03, 0.35, 0.6, 0.1, 0.15)
"""Standard deviation of a change of heading, radians a frame, by kind."""
FASTEST, SLOWEST = 0.5, 0.01
"""Sizes a frame."""
RESTING = 0.12
"""Share of the things that do not move at all."""
MEETING = 0.4
"""Share of the pairs that meet."""
COMPANIONS, BESIDE = 0.3, (0.5, 1.2)
"""Share of the clips in which pairs move side by side, and how far apart they are, in sizes."""
MARGIN = 8.0
"""Pixels around the view in which things may be when they pass their place."""
PATH, STEP = 0x9A7B, 0x57E9
KIND, MIX, SPEED, OWN_SPEED, REST, HEADING, MEET, X, Y, WHEN, PERIOD, PHASE, TURN, PUSH_X, PUSH_Y = range(15)
TOGETHER, APART, ASIDE = range(15, 18)


class Paths(NamedTuple):
    """Of N things in B clips over T frames."""

    centre: Float[Tensor, "N B T 2"]
    """x and y, pixels."""
    heading: Float[Tensor, "N B T"]
    """Radians, 0 to the right, growing clockwise as seen."""
    pace: Float[Tensor, "N B T"]
    """How fast a thing is, in shares of its usual speed."""


def paths(
    clip: Int[Tensor, "B"], keys: Int[Tensor, "N B"], side: Float[Tensor, "N B"], length: int, frame: tuple[int, int]
) -> Paths:
    """The ways of things of the given sizes in `length` frames."""
    count = len(keys)
    scene, own = fold(clip, PATH), fold(keys, PATH)
    number = torch.arange(count, device=keys.device)[:, None]
    aside = companions(clip, own, side, number)
    joined = aside.ne(0).any(-1)
    own, side = torch.where(joined, own.roll(1, 0), own), torch.where(joined, side.roll(1, 0), side)
    pair = fold(fold(clip, PATH), number // 2 + 1)  # [N, B]: the two things 2k and 2k + 1 share it
    times = torch.arange(length, device=keys.device)
    each = fold(fold(own[..., None], STEP), times)  # [N, B, T]

    mixed = uniform(scene, MIX) < MIXED
    kind = choose(torch.where(mixed, uniform(own, KIND), uniform(scene, KIND).expand_as(own)), SHARES)
    schooling, brownian, stopping = kind == SCHOOLING, kind == BROWNIAN, kind == STOPPING

    turns = torch.zeros_like(side)
    for one, turn in enumerate(TURNS):
        turns = torch.where(kind == one, turn, turns)
    meets = (uniform(pair, MEET) < MEETING) & ~joined & ~joined.roll(-1, 0)
    away = between(own, TURN, 0.2, 0.8) * (number % 2)  # one of a pair comes from another side
    first = uniform(torch.where(meets, pair, own), HEADING) + torch.where(meets, away, 0)
    together = uniform(scene, HEADING) + 0.05 * normal(own, HEADING)
    first = 2 * math.pi * torch.where(schooling, together, first)
    heading = first[..., None] + (turns[..., None] * normal(each, TURN)).cumsum(-1)

    # Speeds of a clip lie around one that belongs to it, from hardly moving to half a size a frame.
    usual = SLOWEST * (FASTEST / SLOWEST) ** uniform(scene, SPEED)
    speed = (usual * (0.35 * normal(own, OWN_SPEED)).exp()).clamp(max=0.6) * side
    speed = torch.where(uniform(own, REST) < RESTING, 0.0, speed)
    cycle = 2 * math.pi * (times / between(own, PERIOD, 6, 24)[..., None] + uniform(own, PHASE)[..., None])
    pace = torch.where(stopping[..., None], torch.sigmoid(8 * cycle.sin()), 1.0)
    straight = torch.stack([heading.cos(), heading.sin()], -1)
    jitter = torch.stack([normal(each, PUSH_X), normal(each, PUSH_Y)], -1)
    step = torch.where(brownian[..., None, None], 0.7 * jitter, straight) * (speed[..., None] * pace)[..., None]

    passed = step.cumsum(2)
    lead = torch.where(meets, pair, own)
    when = (uniform(lead, WHEN) * length).long().clamp(max=length - 1)  # [N, B]
    at_that_time = passed.gather(2, when[..., None, None].expand(-1, -1, 1, 2))
    place = torch.stack(
        [between(lead, draw, -MARGIN, room + MARGIN) for draw, room in ((X, frame[1]), (Y, frame[0]))], -1
    )
    beside = torch.stack([normal(own, X), normal(own, Y)], -1) * (0.35 * side)[..., None]
    place = place + torch.where(joined[..., None], aside, torch.where(meets[..., None], beside, 0))
    return Paths(place[:, :, None] + passed - at_that_time, heading, pace * (speed > 0)[..., None])


def companions(
    clip: Int[Tensor, "B"], own: Int[Tensor, "N B"], side: Float[Tensor, "N B"], number: Int[Tensor, "N 1"]
) -> Float[Tensor, "N B 2"]:
    """Where the second of each pair is beside the first, with which it moves; 0 for all that move by themselves."""
    together = (uniform(fold(clip, PATH), TOGETHER) < COMPANIONS) & (number % 2 == 1)
    together = together & (uniform(own, TOGETHER) < 0.7)
    angle = 2 * math.pi * uniform(own, ASIDE)
    far = side * between(own, APART, *BESIDE) * together
    return torch.stack([far * angle.cos(), far * angle.sin()], -1)
