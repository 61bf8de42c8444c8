"""Composed clips: varied objects that move in front of a stationary background, with ground truth.

The universal weights (`any`) are trained on these clips. Each clip draws its own background, objects, motion and
camera effects (`bodies`, `paths`, `disturbances`). The background picture that comes with a clip is as imperfect as one
estimated from a real video: objects that rested remain in it as ghosts, and its light differs slightly from that of the
frames. A clip depends only on (seed, split, index). Nothing here copies a tensor to the host, so a call can be captured
in a CUDA graph.

A part of the clips is compressed by a real H.264 encoder. Encoding runs on the CPU, so a bank of such clips is made
once, before training, and kept on the training device. Clips are enlarged before they are encoded and reduced
afterwards, because real videos are compressed at their own resolution before a model scales them down.

M clips in the bank, N objects, B clips, T frames, H by W pixels, windows of S by S pixels.
"""

import io
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from scalor.config import SceneConfig
from scalor.data import bodies, disturbances
from scalor.data.bodies import Build
from scalor.data.clip import Clip, Truth
from scalor.data.footage import with_background
from scalor.data.hashing import between, fold, key, uniform, whole
from scalor.data.layers import STEPS, Cast, draw
from scalor.data.observation import Observation
from scalor.data.paths import Paths, paths
from scalor.errors import without_extra

RADIUS = 19
"""Radius of the windows that objects are drawn in, pixels: a window's side is 2 * RADIUS + 1."""
SEEN = 0.04
"""Difference from the background, in any colour channel, above which a pixel of an object shows the object."""
ENOUGH = 0.4
"""Share of an object's own pixels that must show it for full visibility. Below, visibility shrinks in proportion."""
DIVIDING = 0.35
"""Share of the clips in which some objects divide."""
LAST_INDEX = 2**31 - 1
"""Largest index of a clip. Clips for the bank of recorded clips are numbered backwards from it."""
RECORDED = 0.3
"""Share of the clips that come from the bank of recorded clips, if there is a bank."""
# Keys of parts and numbers of draws, see `hashing`.
CAST, STILL, BANK = 0xCA57, 0x571F, 0xBA4C
COUNT, GHOSTS, GHOST, FAINT, GREY, INVERTED, DIVIDE, WHEN, WAY, BARS, BAR, WIDTH, UPRIGHT = range(13)
SHADE, DEEP, AWAY_X, AWAY_Y = range(20, 24)


class Compositor:
    """An unlimited series of composed clips. The same index always gives the same clip."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        self.config, self.seed, self.split, self.device = config, seed, split, device
        self.noise = disturbances.NoiseBank(device)
        self.cosines = disturbances.cosines(device)
        self.bank = RecordedClips(self._uncompressed(config.recorded), seed) if config.recorded else None

    def clips(self, index: Int[Tensor, " B"], length: int) -> Clip:
        """Return the clips with these indices. If there is a bank of recorded clips, some come from it instead."""
        clip = self.compose(index, length)
        if self.bank is None:
            return clip
        keys = fold(key(self.seed, self.split, index), BANK)
        return self.bank.replace(clip, uniform(keys, 0) < RECORDED, whole(keys, 1, len(self.bank)))

    def _uncompressed(self, count: int) -> Iterator[Clip]:
        """Yield clips for the bank, without codec losses. They have the last indices, which training never reaches."""
        for first in range(0, count, BANK_BATCH):
            number = torch.arange(first, min(first + BANK_BATCH, count), device=self.device)
            yield self.compose(LAST_INDEX - number, self.config.length, compress=False)

    def compose(self, index: Int[Tensor, " B"], length: int, compress: bool = True) -> Clip:
        """Draw the clips with these indices. With `compress`, some of them get the losses of a video codec."""
        config = self.config
        clip = key(self.seed, self.split, index)
        number = torch.arange(config.objects[1], device=self.device)[:, None]
        keys = fold(fold(clip, CAST), number)  # [N, B]
        division = self.division(clip, number)
        looks = torch.where(division.child, keys.roll(1, 0), keys)  # a daughter looks like its mother
        body = self.build(clip, looks)
        ways = self.ways(clip, keys, body, division)
        exists = number < self.count(clip)
        alive = exists[..., None] & (torch.arange(config.length, device=self.device) >= division.when[..., None])
        scene, tone = disturbances.scenes(clip, config.frame)

        ghost = self.ghosts(clip, keys) & exists
        # An extra last frame is the estimated background: the scene with the ghosts of objects that rested.
        ways = Paths(*(torch.cat([part[:, :, :length], part[:, :, :1]], 2) for part in ways))
        drawn = self.draw(clip, looks, body, ways, torch.cat([alive[..., :length], ghost[..., None]], 2), scene, tone)
        left = between(fold(clip, STILL), FAINT, 0.3, 1.3).clamp(max=1)[:, None, None, None]
        still = torch.lerp(scene, drawn.frames[:, -1], left)
        return self.seen(clip, drawn, still, length, compress)

    def count(self, clip: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """Return the number of objects in each clip."""
        fewest, most = self.config.objects
        return fewest + (uniform(clip, COUNT) * (most - fewest + 1)).long().clamp(max=most - fewest)

    def build(self, clip: Int[Tensor, "B"], looks: Int[Tensor, "N B"]) -> Build:
        """Draw the kind, size and shape of every object."""
        return bodies.build(clip, looks, self.config.size)

    def division(self, clip: Int[Tensor, "B"], number: Int[Tensor, "N 1"]) -> "Division":
        """Choose the objects that split off from the object before them, and when. All others exist from frame 0."""
        draws = fold(fold(clip, CAST), number + 1_000)
        dividing = uniform(fold(clip, CAST), DIVIDE) < DIVIDING
        child = dividing & (number % 2 == 1) & (uniform(draws, DIVIDE) < 0.6)
        when = torch.where(child, 1 + (uniform(draws, WHEN) * self.config.length).long(), 0)
        return Division(child, when, 2 * math.pi * uniform(draws, WAY))

    def ways(self, clip: Int[Tensor, "B"], keys: Int[Tensor, "N B"], body: Build, division: "Division") -> Paths:
        """Return the paths of all objects. A daughter starts next to its mother and moves away from it."""
        own = paths(clip, keys, body.side, self.config.length, self.config.frame)
        mother = Paths(*(part.roll(1, 0) for part in own))
        since = torch.arange(self.config.length, device=self.device) - division.when[..., None]
        away = (body.side[..., None] * (0.3 + 0.2 * since).clamp(0, 1.3))[..., None]
        way = torch.stack([division.way.cos(), division.way.sin()], -1)[:, :, None]
        child = division.child[..., None]
        centre = torch.where(child[..., None], mother.centre + away * way, own.centre)
        return Paths(centre, torch.where(child, mother.heading, own.heading), torch.where(child, mother.pace, own.pace))

    def ghosts(self, clip: Int[Tensor, "B"], keys: Int[Tensor, "N B"]) -> Bool[Tensor, "N B"]:
        """Choose the objects that remain as ghosts in the background picture, at their first position."""
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
        """Draw all frames. The last one shows the background with the ghosts in it."""
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
        """Return the share of each window pixel that poles and beams of the scene hide. Most clips have none."""
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
        """Return soft shadows beside or below the objects, in some clips. Values are shares of the light removed."""
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
        """Apply blur, noise, codec losses, greyscale and inversion to the frames; all but the noise only in some clips.

        The background picture gets all of these except noise and codec losses. The visible share of objects that hardly
        differ from the background is reduced.
        """
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
        return Clip(with_background(both[:, :length], both[:, length:]), replace(truth, visible=visible))


class Division(NamedTuple):
    """Which objects split off from the object before them, at which frame, and in which direction (radians)."""

    child: Bool[Tensor, "N B"]
    when: Int[Tensor, "N B"]
    way: Float[Tensor, "N B"]


def extent(alpha: Float[Tensor, "N B T S S"]) -> tuple[Float[Tensor, "N B T 2"], Float[Tensor, "N B T 2"]]:
    """Return the tight box around alpha above 0.5 in each window: low and high x and y, pixels of the window.

    The high edges are exclusive. Both edges are 0 where nothing is above 0.5.
    """
    inside = alpha > 0.5
    steps = torch.arange(alpha.shape[-1], device=alpha.device)
    lows, highs = [], []
    for used in (inside.any(-2), inside.any(-1)):  # columns, then rows
        lows.append(torch.where(used, steps, alpha.shape[-1]).amin(-1))
        highs.append(torch.where(used, steps + 1, 0).amax(-1))
    low, high = torch.stack(lows, -1).float(), torch.stack(highs, -1).float()
    return torch.minimum(low, high), high


def cut(truth: Truth, length: int) -> Truth:
    """Return the truth of the first `length` frames."""
    return Truth(
        id=truth.id[:, :length],
        centre=truth.centre[:, :length],
        box=truth.box[:, :length],
        visible=truth.visible[:, :length],
        order=truth.order,
        owner=truth.owner[:, :length],
    )


def shown_share(truth: Truth, shows: Bool[Tensor, "B T H W"]) -> Float[Tensor, "B T N"]:
    """Return the share of each object's own pixels that differ from the background (`shows`)."""
    count = truth.visible.shape[-1]
    owner = torch.where(truth.owner < 0, count, truth.owner).flatten(2)
    zeros = torch.zeros(*owner.shape[:2], count + 1, device=owner.device)
    own = zeros.scatter_add(2, owner, torch.ones_like(owner, dtype=torch.float32))
    shown = zeros.scatter_add(2, owner, shows.flatten(2).float())
    return (shown / own.clamp(min=1))[..., :count]


ENLARGED = (1, 2, 3)
"""Factors by which clips are enlarged before encoding; each is used equally often."""
QUALITY = (20, 38)
"""Range of x264's constant rate factor: from hardly visible losses to obvious blocks."""
BANK_BATCH = 32
"""Number of clips that are drawn in one batch for the bank."""

Pictures = UInt8[np.ndarray, "T H W 3"]


class RecordedClips:
    """A bank of clips that were encoded and decoded.

    >>> bank = RecordedClips(clips_from_a_compositor, seed=0)
    >>> clip = bank.replace(clip, chosen, number)
    """

    def __init__(self, drawn: Iterator[Clip], seed: int) -> None:
        """Encode and decode the colours of all clips that `drawn` yields, several in parallel."""
        colours, stills, rulers, truths = [], [], [], []
        random = np.random.default_rng(seed)
        with ThreadPoolExecutor() as pool:
            for clip in drawn:
                count = len(clip.frames)
                pictures = clip.frames.permute(0, 1, 3, 4, 2).mul(255).round().byte().cpu().numpy()
                quality, enlarged = random.integers(*QUALITY, count, endpoint=True), random.choice(ENLARGED, count)
                decoded = list(pool.map(round_trip, pictures, quality.tolist(), enlarged.tolist()))
                colours.append(torch.from_numpy(np.stack(decoded)).permute(0, 1, 4, 2, 3).contiguous())
                still, ruler = clip.observation.still, clip.observation.ruler
                assert still is not None
                assert ruler is not None
                stills.append(still[:, :1])
                rulers.append(ruler[:, :1])
                truths.append(clip.truth)
        device = truths[0].id.device
        self.colours: UInt8[Tensor, "M T 3 H W"] = torch.cat(colours).to(device)
        # Background and ruler are constant throughout a clip.
        self.still: Float[Tensor, "M 1 3 H W"] = torch.cat(stills)
        self.ruler: Float[Tensor, "M 1 H"] = torch.cat(rulers)
        self.truth = {field.name: torch.cat([getattr(one, field.name) for one in truths]) for field in fields(Truth)}
        self.truth["owner"] = self.truth["owner"].short()  # one value per pixel: a quarter of the memory

    def __len__(self) -> int:
        return len(self.colours)

    def replace(self, clip: Clip, chosen: Bool[Tensor, " B"], number: Int[Tensor, " B"]) -> Clip:
        """Return `clip` with the chosen clips replaced by the bank's clips of these numbers."""
        length = clip.frames.shape[1]
        still, ruler = clip.observation.still, clip.observation.ruler
        assert still is not None
        assert ruler is not None
        colours = self.colours[number, :length].to(clip.frames.dtype) / 255
        these = chosen[:, None, None, None, None]
        observed = Observation(
            torch.where(these, colours, clip.frames),
            torch.where(these, self.still[number], still),
            torch.where(chosen[:, None, None], self.ruler[number], ruler),
        )
        truth = {}
        for name, bank in self.truth.items():
            ours, theirs = bank[number], getattr(clip.truth, name)
            ours = (ours if name == "order" else ours[:, :length]).to(theirs.dtype)
            truth[name] = torch.where(chosen.view(-1, *[1] * (theirs.ndim - 1)), ours, theirs)
        return Clip(observed, Truth(**truth))


def round_trip(pictures: Pictures, quality: int, enlarged: int = 1) -> Pictures:
    """Encode pictures as H.264 and decode them.

    `quality` is the constant rate factor. Pictures are encoded at `enlarged` times their size and then scaled back.
    """
    try:
        import av
    except ImportError as error:
        raise without_extra("recording clips (scene.recorded)", "av") from error
    height, width = pictures.shape[1:3]
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        options = {"crf": str(quality), "preset": "veryfast", "threads": "1"}
        large = {"height": enlarged * height, "width": enlarged * width}
        stream = container.add_stream("libx264", 25, options, pix_fmt="yuv420p", **large)
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame.reformat(format="yuv420p", **large)))
        container.mux(stream.encode(None))
    file.seek(0)
    with av.open(file, "r") as container:
        frames = container.decode(video=0)
        decoded = [frame.reformat(width, height, "rgb24", interpolation="AREA").to_ndarray() for frame in frames]
    return np.stack(decoded)
