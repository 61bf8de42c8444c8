"""Motion of the objects in composed clips: straight, wandering, Brownian, schooling, or stop-and-go.

In most clips all objects have the same kind of motion, as in real footage; some clips mix the kinds. Some pairs of
objects pass one point at about the same time, so that they cross.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scalor.data.hashing import between, choose, fold, normal, uniform

STRAIGHT, WANDERING, BROWNIAN, SCHOOLING, STOPPING = range(5)
SHARES = (0.32, 0.2, 0.13, 0.15, 0.2)
"""Probability of each kind of motion, in the order above."""
MIXED = 0.25
"""Share of the clips in which each object's kind of motion is drawn independently."""
TURNS = (0.03, 0.35, 0.6, 0.1, 0.15)
"""Standard deviation of the change of heading, radians per frame, for each kind of motion."""
FASTEST, SLOWEST = 0.5, 0.01
"""Largest and smallest usual speed of a clip, object sizes per frame."""
RESTING = 0.12
"""Share of the objects that do not move at all."""
MEETING = 0.4
"""Share of the pairs of objects whose paths cross."""
COMPANIONS, BESIDE = 0.3, (0.5, 1.2)
"""Share of the clips in which pairs move side by side, and the range of their distance, in object sizes."""
MARGIN = 8.0
"""Every path passes through a random point in the view enlarged by this margin, pixels."""
# Keys of parts and numbers of draws, see `hashing`.
PATH, STEP = 0x9A7B, 0x57E9
KIND, MIX, SPEED, OWN_SPEED, REST, HEADING, MEET, X, Y, WHEN, PERIOD, PHASE, TURN, PUSH_X, PUSH_Y = range(15)
TOGETHER, APART, ASIDE = range(15, 18)


class Paths(NamedTuple):
    """Paths of N objects in B clips over T frames."""

    centre: Float[Tensor, "N B T 2"]
    """x and y, pixels."""
    heading: Float[Tensor, "N B T"]
    """Direction that the object faces, radians: 0 is right, increasing clockwise on the screen."""
    pace: Float[Tensor, "N B T"]
    """Speed as a share of the object's usual speed; 0 for objects that do not move."""


def paths(
    clip: Int[Tensor, "B"], keys: Int[Tensor, "N B"], side: Float[Tensor, "N B"], length: int, frame: tuple[int, int]
) -> Paths:
    """Draw the paths of objects of the given sizes (`side`, pixels) over `length` frames."""
    count = len(keys)
    scene, own = fold(clip, PATH), fold(keys, PATH)
    number = torch.arange(count, device=keys.device)[:, None]
    aside = companions(clip, own, side, number)
    joined = aside.ne(0).any(-1)
    own, side = torch.where(joined, own.roll(1, 0), own), torch.where(joined, side.roll(1, 0), side)
    pair = fold(fold(clip, PATH), number // 2 + 1)  # [N, B]: objects 2k and 2k + 1 share it
    times = torch.arange(length, device=keys.device)
    each = fold(fold(own[..., None], STEP), times)  # [N, B, T]

    mixed = uniform(scene, MIX) < MIXED
    kind = choose(torch.where(mixed, uniform(own, KIND), uniform(scene, KIND).expand_as(own)), SHARES)
    schooling, brownian, stopping = kind == SCHOOLING, kind == BROWNIAN, kind == STOPPING

    turns = torch.zeros_like(side)
    for one, turn in enumerate(TURNS):
        turns = torch.where(kind == one, turn, turns)
    meets = (uniform(pair, MEET) < MEETING) & ~joined & ~joined.roll(-1, 0)
    away = between(own, TURN, 0.2, 0.8) * (number % 2)  # the second of a pair comes from another side
    first = uniform(torch.where(meets, pair, own), HEADING) + torch.where(meets, away, 0)
    together = uniform(scene, HEADING) + 0.05 * normal(own, HEADING)
    first = 2 * math.pi * torch.where(schooling, together, first)
    heading = first[..., None] + (turns[..., None] * normal(each, TURN)).cumsum(-1)

    # Speeds vary around a usual one of the clip, which ranges from hardly moving to half an object size per frame.
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
    """Return the offset of each object that accompanies the one before it; 0 for objects that move on their own."""
    together = (uniform(fold(clip, PATH), TOGETHER) < COMPANIONS) & (number % 2 == 1)
    together = together & (uniform(own, TOGETHER) < 0.7)
    angle = 2 * math.pi * uniform(own, ASIDE)
    far = side * between(own, APART, *BESIDE) * together
    return torch.stack([far * angle.cos(), far * angle.sin()], -1)
