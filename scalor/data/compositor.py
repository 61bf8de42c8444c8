"""Composed clips: unlike things that move before a still scene, with their truth. They teach the universal weights.

Every clip is another world: its scene, its things, how they move, and what the camera does to them (`bodies`, `paths`,
`disturbances`). The picture of the empty scene that comes with a clip is as imperfect as the one of a real video:
things that rested are left in it as ghosts, and its light is not quite that of the frames.
A clip depends only on (seed, split, index). Nothing here reads a tensor back: a call can be captured in a CUDA graph.

N things, B clips, T frames, H by W pixels, windows of S by S pixels.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.config import SceneConfig
from scalor.data import bodies, disturbances
from scalor.data.bodies import Build
from scalor.data.clip import Clip, Truth
from scalor.data.footage import with_still
from scalor.data.hashing import between, fold, key, uniform, whole
from scalor.data.layers import STEPS, Cast, draw
from scalor.data.paths import Paths, paths
from scalor.data.recorded import AT_ONCE, RecordedClips

RADIUS = 19
"""Of the windows that things are drawn in, pixels."""
SEEN = 0.04
"""A pixel of a thing shows it when it differs from the empty scene by this much."""
ENOUGH = 0.4
"""A thing of whose pixels so many show is seen as well as one of which all do."""
DIVIDING = 0.35
"""Share of the clips in which some things divide."""
LAST_NUMBER = 2**31 - 1
"""Of clips; recorded ones are counted back from it."""
RECORDED = 0.3
"""Share of the clips that come from the bank of recorded ones, where there is one."""
CAST, STILL, BANK = 0xCA57, 0x571F, 0xBA4C
COUNT, GHOSTS, GHOST, FAINT, GREY, INVERTED, DIVIDE, WHEN, WAY, BARS, BAR, WIDTH, UPRIGHT = range(13)
SHADE, DEEP, AWAY_X, AWAY_Y = range(20, 24)


class Compositor:
    """Clips numbered without end; the same number is the same clip, always."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        self.config, self.seed, self.split, self.device = config, seed, split, device
        self.noise = disturbances.NoiseBank(device)
        self.cosines = disturbances.cosines(device)
        self.bank = RecordedClips(self._uncompressed(config.recorded), seed) if config.recorded else None

    def clips(self, index: Int[Tensor, " B"], length: int) -> Clip:
        """Clips of these numbers; some of them are from the bank of recorded clips."""
        clip = self.compose(index, length)
        if self.bank is None:
            return clip
        keys = fold(key(self.seed, self.split, index), BANK)
        return self.bank.replace(clip, uniform(keys, 0) < RECORDED, whole(keys, 1, len(self.bank)))

    def _uncompressed(self, count: int) -> Iterator[Clip]:
        """Clips for the bank: those of the last numbers, which no training comes to."""
        for first in range(0, count, AT_ONCE):
            number = torch.arange(first, min(first + AT_ONCE, count), device=self.device)
            yield self.compose(LAST_NUMBER - number, self.config.length, compress=False)

    def compose(self, index: Int[Tensor, " B"], length: int, compress: bool = True) -> Clip:
        """Draw clips; `compress`: some of them with the losses of a video codec."""
        config = self.config
        clip = key(self.seed, self.split, index)
        number = torch.arange(config.objects[1], device=self.device)[:, None]
        keys = fold(fold(clip, CAST), number)  # [N, B]
        division = self.division(clip, number)
        looks = torch.where(division.child, keys.roll(1, 0), keys)  # a daughter looks like her mother
        body = self.build(clip, looks)
        ways = self.ways(clip, keys, body, division)
        exists = number < self.count(clip)
        alive = exists[..., None] & (torch.arange(config.length, device=self.device) >= division.when[..., None])
        scene, tone = disturbances.scenes(clip, config.frame)

        ghost = self.ghosts(clip, keys) & exists
        # The last frame of all is the empty scene as it is believed to be: with what rested left in it.
        ways = Paths(*(torch.cat([part[:, :, :length], part[:, :, :1]], 2) for part in ways))
        drawn = self.draw(clip, looks, body, ways, torch.cat([alive[..., :length], ghost[..., None]], 2), scene, tone)
        left = between(fold(clip, STILL), FAINT, 0.3, 1.3).clamp(max=1)[:, None, None, None]
        still = torch.lerp(scene, drawn.frames[:, -1], left)
        return self.seen(clip, drawn, still, length, compress)

    def count(self, clip: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """How many things a clip has."""
        fewest, most = self.config.objects
        return fewest + (uniform(clip, COUNT) * (most - fewest + 1)).long().clamp(max=most - fewest)

    def build(self, clip: Int[Tensor, "B"], looks: Int[Tensor, "N B"]) -> Build:
        return bodies.build(clip, looks, self.config.size)

    def division(self, clip: Int[Tensor, "B"], number: Int[Tensor, "N 1"]) -> "Division":
        """Which things come from the one before them, and when. Others are there from the first frame on."""
        draws = fold(fold(clip, CAST), number + 1_000)
        dividing = uniform(fold(clip, CAST), DIVIDE) < DIVIDING
        child = dividing & (number % 2 == 1) & (uniform(draws, DIVIDE) < 0.6)
        when = torch.where(child, 1 + (uniform(draws, WHEN) * self.config.length).long(), 0)
        return Division(child, when, 2 * math.pi * uniform(draws, WAY))

    def ways(self, clip: Int[Tensor, "B"], keys: Int[Tensor, "N B"], body: Build, division: "Division") -> Paths:
        """Daughters start where their mothers are and move away from them."""
        own = paths(clip, keys, body.side, self.config.length, self.config.frame)
        mother = Paths(*(part.roll(1, 0) for part in own))
        since = torch.arange(self.config.length, device=self.device) - division.when[..., None]
        away = (body.side[..., None] * (0.3 + 0.2 * since).clamp(0, 1.3))[..., None]
        way = torch.stack([division.way.cos(), division.way.sin()], -1)[:, :, None]
        child = division.child[..., None]
        centre = torch.where(child[..., None], mother.centre + away * way, own.centre)
        return Paths(centre, torch.where(child, mother.heading, own.heading), torch.where(child, mother.pace, own.pace))

    def ghosts(self, clip: Int[Tensor, "B"], keys: Int[Tensor, "N B"]) -> Bool[Tensor, "N B"]:
        """What was taken for a part of the scene where it was at first."""
        return (uniform(fold(clip, STILL), GHOSTS) < 0.3) & (uniform(fold(keys, STILL), GHOST) < 0.35)

    def draw(
        self,
        clip: Int[Tensor, "B"],
        looks: Int[Tensor, "N B"],
        body: Build,
        ways: Paths,
        exists: Bool[Tensor, "N B T"],
        scene: Float[Tensor, "B 3 H W"],
        tone: Float[Tensor, "B"],
    ) -> Clip:
        """All frames, the last one of which shows what is left in the empty scene."""
        steps = torch.arange(-RADIUS, RADIUS + 1, device=self.device)
        cell = ways.centre.floor()
        x, y = (steps + 0.5 - (ways.centre - cell)[..., None]).unbind(-2)
        shape = bodies.outline(clip, looks, body, ways.heading, ways.pace, x, y)
        column, row = (steps + cell.long()[..., None]).unbind(-2)
        low, high = extent(shape.alpha)
        corner = cell - RADIUS
        whole = shape.alpha.mul(STEPS).round().div(STEPS)
        covered = self.bars(clip, row, column)
        length = exists.shape[-1] - 1
        moving = disturbances.flutter(clip, disturbances.shaken(clip, scene, length))
        moving = moving * disturbances.light(clip, length)[:, :, None, None, None]
        moving = moving + disturbances.shimmer(clip, length, self.config.frame)
        cast = Cast(
            number=torch.arange(len(looks), device=self.device)[:, None].expand_as(looks),
            exists=exists,
            centre=corner + (low + high) / 2,
            half=(high - low) / 2,
            alpha=whole * (1 - covered),
            row=row,
            column=column,
            colour=bodies.colours(clip, looks, body, shape, tone),
            shadow=self.shadows(clip, body, x, y),
            full=whole.sum((-2, -1)),
        )
        return draw(cast, self.config.frame, torch.cat([moving, scene[:, None]], 1))

    def bars(
        self, clip: Int[Tensor, "B"], row: Int[Tensor, "N B T S"], column: Int[Tensor, "N B T S"]
    ) -> Float[Tensor, "N B T S S"]:
        """What of a window lies behind poles and beams of the scene; in most clips there are none."""
        keys = fold(clip, CAST)
        covered = torch.zeros(*row.shape, column.shape[-1], device=row.device)
        for bar in range(2):
            draws = fold(keys, 0x40 + bar)
            width = between(draws, WIDTH, 2, 9) * (uniform(draws, BARS) < 0.15)
            upright = uniform(draws, UPRIGHT) < 0.7
            side = torch.where(upright, float(self.config.frame[1]), float(self.config.frame[0]))
            place = (uniform(draws, BAR) * side)[:, None, None]
            inside = [(at - place).abs() < width[:, None, None] / 2 for at in (column, row)]
            across, down = (part.float() for part in inside)
            hidden = torch.where(upright[:, None, None, None], across[..., None, :], down[..., :, None])
            covered = torch.maximum(covered, hidden)
        return covered

    def shadows(
        self, clip: Int[Tensor, "B"], body: Build, x: Float[Tensor, "N B T S"], y: Float[Tensor, "N B T S"]
    ) -> Float[Tensor, "N B T S S"]:
        """Soft spots beside or below things, in some clips."""
        keys = fold(clip, CAST)
        depth = between(keys, DEEP, 0.1, 0.5) * (uniform(keys, SHADE) < 0.3)
        half = body.half
        away_x, away_y = (between(keys, draw, low, 0.9) for draw, low in ((AWAY_X, -0.9), (AWAY_Y, 0.2)))
        across = (x - (away_x * half[..., 0])[..., None, None]) / (1.2 * half[..., 0])[..., None, None]
        down = (y - (away_y * half[..., 1])[..., None, None]) / (0.45 * half[..., 1])[..., None, None]
        spot = (1.4 - across[..., None, :].square() - down[..., :, None].square()).clamp(0, 1)
        return depth[:, None, None, None] * spot

    def seen(
        self, clip: Int[Tensor, "B"], drawn: Clip, still: Float[Tensor, "B 3 H W"], length: int, compress: bool
    ) -> Clip:
        """The frames through a camera, beside the empty scene through the same one."""
        keys = fold(clip, STILL)
        truth = cut(drawn.truth, length)
        shows = (drawn.frames[:, :length] - still[:, None]).abs().amax(2) > SEEN
        visible = truth.visible * (shown_share(truth, shows) / ENOUGH).clamp(max=1)
        pictures = disturbances.blurred(clip, torch.cat([drawn.frames[:, :length], still[:, None]], 1))
        frames, still = pictures[:, :length], pictures[:, length:]
        frames = frames + self.noise(clip, length, self.config.frame)
        if compress:
            frames = disturbances.compressed(clip, frames, self.cosines)
        both = torch.cat([frames, still], 1).clamp(0, 1)
        grey, inverted = (uniform(keys, draw)[:, None, None, None, None] < 0.35 for draw in (GREY, INVERTED))
        both = torch.where(grey, both.mean(2, keepdim=True), both)
        both = torch.where(inverted, 1 - both, both)
        return Clip(with_still(both[:, :length], both[:, length:]), replace(truth, visible=visible))


class Division(NamedTuple):
    """Which things divide off from the one before them, when, and in which direction."""

    child: Bool[Tensor, "N B"]
    when: Int[Tensor, "N B"]
    way: Float[Tensor, "N B"]


def extent(alpha: Float[Tensor, "N B T S S"]) -> tuple[Float[Tensor, "N B T 2"], Float[Tensor, "N B T 2"]]:
    """The first and the last column and row (x and y) of what is opaque by half in each window."""
    inside = alpha > 0.5
    steps = torch.arange(alpha.shape[-1], device=alpha.device)
    lows, highs = [], []
    for used in (inside.any(-2), inside.any(-1)):  # columns, then rows
        lows.append(torch.where(used, steps, alpha.shape[-1]).amin(-1))
        highs.append(torch.where(used, steps + 1, 0).amax(-1))
    low, high = torch.stack(lows, -1).float(), torch.stack(highs, -1).float()
    return torch.minimum(low, high), high


def cut(truth: Truth, length: int) -> Truth:
    """The truth of the first frames."""
    return Truth(
        id=truth.id[:, :length],
        centre=truth.centre[:, :length],
        box=truth.box[:, :length],
        visible=truth.visible[:, :length],
        order=truth.order,
        owner=truth.owner[:, :length],
    )


def shown_share(truth: Truth, shows: Bool[Tensor, "B T H W"]) -> Float[Tensor, "B T N"]:
    """Of the pixels that are a thing's own, those that differ from the empty scene."""
    count = truth.visible.shape[-1]
    owner = torch.where(truth.owner < 0, count, truth.owner).flatten(2)
    zeros = torch.zeros(*owner.shape[:2], count + 1, device=owner.device)
    own = zeros.scatter_add(2, owner, torch.ones_like(owner, dtype=torch.float32))
    shown = zeros.scatter_add(2, owner, shows.flatten(2).float())
    return (shown / own.clamp(min=1))[..., :count]
