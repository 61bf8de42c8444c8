"""Synthetic scenes with ground truth: many small objects that move, occlude each other, leave and return.

The scenes are modelled on the paper's Task 1 (moving dSprites shapes and MNIST digits). The view is the centre of an
environment that extends 0.6 s beyond it on every side, where s is the size of an object. Centres move with constant
velocity and are reflected at the environment's walls. Positions are in closed form in time and random numbers are
counter-based (`hashing`), so a frame depends only on (seed, split, index, t). Nothing here copies a tensor to the host
and no shape depends on a tensor's values, so a call can be captured in a CUDA graph.

Internally the object dimension comes first, sorted from front to back: N objects, B clips, T frames, windows of S by S
pixels.
"""

import math
from typing import Any, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.config import SceneConfig
from scalor.data.balls import Balls
from scalor.data.clip import Clip
from scalor.data.compositor import Compositor
from scalor.data.footage import Footage
from scalor.data.hashing import between, fold, key, uniform, whole
from scalor.data.layers import STEPS, Cast, draw, textures
from scalor.data.mnist import Digits, DigitSprites, load_digits
from scalor.data.replay import Replay, Station
from scalor.data.shapes import Shapes, colours
from scalor.data.whole_video import WholeVideo
from scalor.errors import InputError
from scalor.registry import SCENES

MARGIN = 0.6  # how far the environment extends beyond the view, in object sizes
JITTER = 0.1  # sizes vary by this share, either way
SPEED_RANGE = (0.1, 0.3)  # object sizes per frame
# Numbers of draws and the key of a part, see `hashing`.
X, Y, HEADING, SPEED, SIZE, DEPTH, TURN, WHEN = range(8)
PAIR = 0x9A12
OTHER: dict[str, type[Balls | Replay | Footage | Station | Compositor | WholeVideo]] = {
    "balls": Balls,
    "replay": Replay,
    "footage": Footage,
    "station": Station,
    "composed": Compositor,
    "video": WholeVideo,
}
"""Classes of the scenes that other modules implement, by kind."""


class Sprites(Protocol):
    """Interface for the appearance of objects: `Shapes` or `DigitSprites`."""

    reach: float

    def half(self, keys: Int[Tensor, "N B"], size: Float[Tensor, "N B"]) -> Float[Tensor, "N B 2"]:
        """Return half the width and half the height of each object's bounding box, pixels."""
        ...

    def alpha(
        self,
        keys: Int[Tensor, "N B"],
        size: Float[Tensor, "N B"],
        x: Float[Tensor, "N B T S"],
        y: Float[Tensor, "N B T S"],
    ) -> Float[Tensor, "N B T S S"]:
        """Return the opacity of pixels whose centres lie x and y from an object's centre, rows first."""
        ...


class Scenes:
    """An unlimited series of clips, numbered from 0. The same index always gives the same clip.

    Parameters
    ----------
    config
        What the clips show.
    seed, split
        Different seeds and splits ("train", "test") give different clips.
    device
        Where clips are drawn.
    digits
        Pictures for an mnist scene; by default those of `load_digits` for the split.
    """

    def __init__(
        self,
        config: SceneConfig,
        seed: int,
        split: str = "train",
        device: torch.device | str = "cpu",
        digits: Digits | None = None,
    ) -> None:
        self.config, self.seed, self.split, self.device = config, seed, split, torch.device(device)
        made = OTHER.get(config.kind) or SCENES.get(config.kind)
        self.other: Any = made(config, seed, split, self.device) if made else None
        self.objects = config.objects[1] * len(config.births)
        self.sprites: Sprites = Shapes()
        if config.kind == "mnist":
            pictures = load_digits(split) if digits is None else digits
            self.sprites = DigitSprites(pictures.only(config.digits), config.size, self.device)
        self.radius = math.ceil(self.sprites.reach * (1 + JITTER) * config.size + 0.25)
        # Made here because a copy from the host cannot be captured in a CUDA graph.
        self.view = torch.tensor([float(side) for side in reversed(config.frame)], device=self.device)
        self.births = torch.tensor(config.births, device=self.device)

    @torch.no_grad()
    def clips(self, index: Int[Tensor, "B"] | int, count: int = 1, length: int | None = None) -> Clip:
        """Return clips with their ground truth.

        Parameters
        ----------
        index
            Indices of the clips (a tensor on the scenes' device), or the index of the first one.
        count
            Number of consecutive clips if `index` is a single number.
        length
            Frames per clip; by default the config's. Frame t is the same for every length.
        """
        length = self.config.length if length is None else length
        if length < 1 or count < 1:
            raise InputError(f"count is {count} and length is {length}: both must be at least 1.")
        if isinstance(index, int):
            index = torch.arange(index, index + count, device=self.device)
        if self.other:
            if length > self.config.length:
                raise InputError(
                    f"length is {length}: these scenes are made for at most scene.length {self.config.length}; ask for "
                    "fewer frames, or raise it."
                )
            made: Clip = self.other.clips(index, length)
            return made
        times = torch.arange(length, device=self.device)
        clip = key(self.seed, self.split, index)  # [B]
        keys = fold(clip, torch.arange(self.objects, device=self.device)[:, None])  # [N, B]
        front = uniform(keys, DEPTH).argsort(stable=True, dim=0)  # indices of the objects, nearest first
        keys = keys.gather(0, front)

        size = self.config.size * between(keys, SIZE, 1 - JITTER, 1 + JITTER)
        centre = self._paths(clip, keys, front, times)
        half = self.sprites.half(keys, size)[:, :, None]
        alpha, row, column = self._windows(keys, size, centre)
        cast = Cast(
            number=front,
            exists=self._exists(clip, front, times),
            centre=centre,
            half=half,
            alpha=alpha,
            row=row,
            column=column,
            colour=colours(keys).movedim(-1, 0)[..., None, None, None],
        )
        background = textures(clip, times, self.config.frame) if self.config.background else None
        return draw(cast, self.config.frame, background)

    def _exists(
        self, clip: Int[Tensor, "B"], front: Int[Tensor, "N B"], times: Int[Tensor, "T"]
    ) -> Bool[Tensor, "N B T"]:
        """Return whether an object is among those that this clip draws for its group, and is already born."""
        fewest, most = self.config.objects
        groups = [fewest + whole(clip, draw, most - fewest + 1) for draw in range(len(self.births))]
        group = front // most
        among = front % most < torch.stack(groups).gather(0, group)
        return among[..., None] & (times >= self.births[group][..., None])

    def _paths(
        self,
        clip: Int[Tensor, "B"],
        keys: Int[Tensor, "N B"],
        front: Int[Tensor, "N B"],
        times: Int[Tensor, "T"],
    ) -> Float[Tensor, "N B T 2"]:
        """Return the centre of every object: a straight line through one point at one time, reflected at the walls.

        The object passes that point at its birth. The point lies anywhere in the environment for objects that exist
        from the first frame, and in the view for objects born later. If objects steer, members 2k and 2k + 1 of a group
        pass a common point well inside the view instead, around the middle of the clip, from directions 90 to 270
        degrees apart. Their speeds stay in the usual range.
        """
        most = self.config.objects[1]
        group, member = front // most, front % most
        margin = MARGIN * self.config.size
        born = self.births[group]
        slack = margin * (born == 0)[..., None]
        place = _point(keys) * (self.view + 2 * slack) - slack
        since = born.float()
        heading = uniform(keys, HEADING)
        if self.config.steer:
            pair = fold(fold(clip, PAIR), group * most + member // 2)
            place = self.view * (0.2 + 0.6 * _point(pair))
            since = born + between(pair, WHEN, 0.3, 0.7) * (self.config.length - 1 - born).clamp(min=0)
            heading = uniform(pair, HEADING) + (member % 2) * between(pair, TURN, 0.25, 0.75)
        heading = heading * (2 * math.pi)
        speed = between(keys, SPEED, *SPEED_RANGE) * self.config.size
        velocity = torch.stack((speed * heading.cos(), speed * heading.sin()), -1)
        passed = (times - since[..., None])[..., None]  # [N, B, T, 1]
        straight = place[:, :, None] + velocity[:, :, None] * passed
        side = self.view + 2 * margin
        return side - ((straight + margin) % (2 * side) - side).abs() - margin

    def _windows(
        self, keys: Int[Tensor, "N B"], size: Float[Tensor, "N B"], centre: Float[Tensor, "N B T 2"]
    ) -> tuple[Float[Tensor, "N B T S S"], Int[Tensor, "N B T S"], Int[Tensor, "N B T S"]]:
        """Return the alpha of every object in a window around it, and the window's rows and columns in the view."""
        steps = torch.arange(-self.radius, self.radius + 1, device=self.device)
        cell = centre.floor()
        x, y = (steps + 0.5 - (centre - cell)[..., None]).unbind(-2)
        alpha = self.sprites.alpha(keys, size, x, y)
        column, row = (steps + cell.long()[..., None]).unbind(-2)
        return alpha.mul_(STEPS).round_().div_(STEPS), row, column


def _point(keys: Int[Tensor, "N B"]) -> Float[Tensor, "N B 2"]:
    return torch.stack((uniform(keys, X), uniform(keys, Y)), -1)
