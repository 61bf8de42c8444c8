"""Clips cut out of the frames of videos whose camera stands still.

`Frames` are what `scalor fit` keeps of videos: frames of the model's scale, the scenes without objects, and the spots
where something was seen that does not belong to them. Most clips are cut around such a spot, some anywhere, none out of
a stretch that is too short for one. They are mirrored and, with `zoom`, enlarged or shrunken, as if things went the
other way and the camera stood nearer or farther. All of it is put on the device once; nothing in `clips` reads a tensor
back.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from jaxtyping import Float, Int, Int16, UInt8
from torch import Tensor

from scalor.boxes import FULL, sizes_at
from scalor.config import SceneConfig
from scalor.data.clip import Clip, Truth
from scalor.data.hashing import between, key, uniform, whole
from scalor.errors import InputError

ANYWHERE_SHARE = 0.25
"""Of the clips, so that empty parts of the scene are seen too."""
SPOT, MOMENT, TOP, LEFT, MIRROR, ANYWHERE, ZOOM = range(7)
NOBODY, SEEN, HIDDEN = range(3)
UNSEEN = 0.1
"""Visible share of a hidden object: it need not be found, and is no error where it is."""


@dataclass(frozen=True)
class Labels:
    """What a tracker found in the frames, as truth to learn from. Every object has a column of its own; one that ended
    long ago leaves its column to another."""

    seen: UInt8[np.ndarray, "N K"]
    """NOBODY, SEEN, or HIDDEN: known to be there, but not seen."""
    box: Float[np.ndarray, "N K 4"]
    """Corners, pixels of the frames."""
    owner: Int16[np.ndarray, "N H W"]
    """The column of the object that a pixel shows, -1 for the scene."""

    def beside(self, other: "Labels") -> "Labels":
        """Those of other videos too."""
        more = other.seen.shape[1] - self.seen.shape[1]
        one, two = self.widened(max(0, more)), other.widened(max(0, -more))
        return Labels(*(np.concatenate([getattr(part, field.name) for part in (one, two)]) for field in fields(Labels)))

    def widened(self, columns: int) -> "Labels":
        """With so many more columns, all empty."""
        return Labels(
            np.pad(self.seen, ((0, 0), (0, columns))), np.pad(self.box, ((0, 0), (0, columns), (0, 0))), self.owner
        )


@dataclass(frozen=True)
class Frames:
    """Frames as a model sees them, in stretches without gaps."""

    frames: UInt8[np.ndarray, "N 3 H W"]
    stills: UInt8[np.ndarray, "V 3 H W"]
    """The scene of each video without objects."""
    starts: Int[np.ndarray, " S"]
    """The first frame of each stretch."""
    videos: Int[np.ndarray, " S"]
    """The video that each stretch is of."""
    spots: Int[np.ndarray, "M 3"]
    """Frame, row and column of things that do not belong to the scene."""
    labels: Labels | None = None
    """Of all frames, where a tracker has looked at them."""

    def save(self, path: Path) -> None:
        arrays = {name: value for name, value in vars(self).items() if name != "labels"}
        np.savez_compressed(path, **arrays, **(vars(self.labels) if self.labels else {}))

    @property
    def lengths(self) -> Int[np.ndarray, " S"]:
        """How many frames each stretch has."""
        return np.diff(self.starts, append=len(self.frames))

    def stretch_of(self, frame: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
        """The stretch that each of these frames lies in."""
        stretch: np.ndarray = np.searchsorted(self.starts, frame, side="right") - 1
        return stretch

    def check(self, config: SceneConfig) -> None:
        """Refuses clips that are larger or longer than what there is to cut them out of."""
        height, width = self.frames.shape[2:]
        if height < config.frame[0] or width < config.frame[1]:
            raise InputError(
                f"scene.frame is {config.frame}: {config.footage} has frames of {height}x{width}; choose a smaller one."
            )
        longest = self.lengths[self.stretch_of(self.spots[:, 0])].max()
        if longest < config.length:
            raise InputError(
                f"scene.length is {config.length}: {config.footage} has {longest} frames in a row in which something "
                "moves; choose fewer."
            )

    def beside(self, other: "Frames") -> "Frames":
        """The frames of other videos too. All must be of one size."""
        count, videos = len(self.frames), len(self.stills)
        return Frames(
            np.concatenate([self.frames, other.frames]),
            np.concatenate([self.stills, other.stills]),
            np.concatenate([self.starts, other.starts + count]),
            np.concatenate([self.videos, other.videos + videos]),
            np.concatenate([self.spots, other.spots + np.array([count, 0, 0])]),
            self.labels.beside(other.labels) if self.labels and other.labels else None,
        )

    @staticmethod
    def load(path: Path) -> "Frames":
        try:
            with np.load(path, allow_pickle=False) as file:
                labels = (
                    Labels(**{field.name: file[field.name] for field in fields(Labels)}) if "seen" in file else None
                )
                names = [field.name for field in fields(Frames) if field.name != "labels"]
                return Frames(**{name: file[name] for name in names}, labels=labels)
        except (OSError, KeyError, ValueError, TypeError, BadZipFile) as error:
            raise InputError(
                f"scene.footage is {str(path)!r}: no frames can be read from it; make them anew with `scalor fit`."
            ) from error


class Footage:
    """Clips of these videos, numbered without end; the same number is the same clip, always."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        self.config, self.seed, self.split = config, seed, split
        kept = Frames.load(Path(config.footage))
        kept.check(config)
        count, _, height, _ = kept.frames.shape
        stretch, long = kept.stretch_of(np.arange(count)), kept.lengths >= config.length
        # For every frame, the earliest and the latest one that a clip around it may begin with.
        earliest = kept.starts[stretch]
        latest = earliest + kept.lengths[stretch] - config.length
        # Only frames of stretches that are long enough have a clip around them.
        moments, spots = np.flatnonzero(long[stretch]), kept.spots[long[stretch[kept.spots[:, 0]]]]

        def put(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        self.frames, self.stills = put(kept.frames), put(kept.stills)
        self.video = put(kept.videos[stretch].astype(np.int64))
        self.moments, self.spots = put(moments), put(spots.astype(np.int64))
        self.sizes = put(sizes_at(np.arange(height) + 0.5, height, config.perspective).astype(np.float32))
        self.earliest, self.latest = put(earliest.astype(np.int64)), put(latest.astype(np.int64))
        self.labels = None if kept.labels is None else [put(part) for part in vars(kept.labels).values()]

    def clips(self, index: Int[Tensor, " B"], length: int) -> Clip:
        cut = self.cut(key(self.seed, self.split, index), length)
        x, y = cut.x[:, None, None, None], cut.y[:, None, None, :, None]  # [B, 1, 1, 1, w] and [B, 1, 1, h, 1]
        t = (cut.first[:, None] + torch.arange(length, device=index.device))[:, :, None, None, None]
        seen = between_pixels(self.frames, t, y, x)  # [B, T, 3, h, w]
        still = between_pixels(self.stills, self.video[cut.first][:, None, None, None, None], y, x)
        sizes = cut.zoom[:, None] * self.sizes[cut.y.long().clamp(0, len(self.sizes) - 1)]
        frames = with_still(seen / 255, still / 255, sizes)
        return Clip(frames, nobody(seen) if self.labels is None else self.truth(cut, length))

    def truth(self, cut: "Cut", length: int) -> Truth:
        """What the labels say of clips."""
        assert self.labels is not None
        seen, box, owner = self.labels
        t = cut.first[:, None] + torch.arange(length, device=cut.first.device)
        rows, columns = (at.round().long() for at in (cut.y, cut.x))
        rows, columns = rows.clamp(0, owner.shape[1] - 1), columns.clamp(0, owner.shape[2] - 1)
        size = torch.tensor([cut.x.shape[1], cut.y.shape[1]], device=t.device)
        start = torch.stack([at.amin(1) + 0.5 - 0.5 / cut.zoom for at in (cut.x, cut.y)], -1)[:, None, None]
        low, high = ((box[t][..., part] - start) * cut.zoom[:, None, None, None] for part in (slice(2), slice(2, 4)))
        mirrored = (cut.x[:, 0] > cut.x[:, -1])[:, None, None]
        left, right = low[..., 0], high[..., 0]
        low = torch.stack([torch.where(mirrored, size[0] - right, left), low[..., 1]], -1)
        high = torch.stack([torch.where(mirrored, size[0] - left, right), high[..., 1]], -1)
        inside = (torch.minimum(high, size) - low.clamp(min=0)).clamp(min=0).prod(-1) / (high - low).prod(-1).clamp(
            min=1
        )
        state = seen[t]
        there = (state != NOBODY) & (inside > 0)
        number = torch.arange(seen.shape[1], device=t.device)
        return Truth(
            id=torch.where(there, number, -1),
            centre=(low + high) / 2,
            box=torch.cat([low, high], -1),
            visible=torch.where(state == SEEN, inside, UNSEEN) * there,
            order=torch.zeros(len(t), len(number), dtype=torch.long, device=t.device),
            owner=owner[t[:, :, None, None], rows[:, None, :, None], columns[:, None, None, :]].long(),
        )

    def cut(self, keys: Int[Tensor, " B"], length: int) -> "Cut":
        """Where and when clips are cut out: most around a spot, some anywhere."""
        (height, width), (rows, columns) = self.config.frame, self.frames.shape[2:]
        spot = self.spots[whole(keys, SPOT, len(self.spots))]
        anywhere = uniform(keys, ANYWHERE) < ANYWHERE_SHARE
        moment = torch.where(anywhere, self.moments[whole(keys, MOMENT, len(self.moments))], spot[:, 0])
        back = (uniform(keys, MOMENT) * length).long()
        first = torch.minimum(torch.maximum(moment - back, self.earliest[moment]), self.latest[moment])
        zoom = (self.config.zoom ** between(keys, ZOOM, -1, 1)).clamp(min=max(height / rows, width / columns))

        def along(draw: int, place: Tensor, side: int, room: int) -> Tensor:
            """The places of `side` pixels in a row."""
            drawn, taken = uniform(keys, draw), side / zoom
            around = (place - (drawn * taken).long()).clamp(min=0)
            start = torch.where(anywhere, (drawn * (room - taken + 1)).long(), around)
            pixels = torch.arange(side, device=keys.device) + 0.5
            return torch.minimum(start, room - taken)[:, None] + pixels / zoom[:, None] - 0.5

        y, x = along(TOP, spot[:, 1], height, rows), along(LEFT, spot[:, 2], width, columns)
        mirrored = uniform(keys, MIRROR)[:, None] < 0.5
        return Cut(first, y, torch.where(mirrored, x.flip(1), x), zoom)


def with_still(
    frames: Float[Tensor, "B T 3 h w"],
    still: Float[Tensor, "B 1 3 h w"],
    sizes: Float[Tensor, "B h"] | None = None,
) -> Float[Tensor, "B T 7 h w"]:
    """Frames as a model for a camera that stands still wants them: beside the scene without objects and a ruler, which
    tells their `sizes` at each row in sizes of a typical one (none given: all alike)."""
    ruler = torch.full_like(frames[:, :, :1], 1 / FULL)
    if sizes is not None:
        ruler = (sizes / FULL).clamp(max=1)[:, None, None, :, None].expand_as(ruler)
    return torch.cat([frames, still.expand_as(frames), ruler], 2)


class Cut(NamedTuple):
    """Where clips come from: the first frame, and the row and the column of each of their pixels there."""

    first: Int[Tensor, " B"]
    y: Float[Tensor, "B h"]
    x: Float[Tensor, "B w"]
    zoom: Float[Tensor, " B"]
    """How many times as large as in the frames things are in the clips."""


def between_pixels(
    pictures: UInt8[Tensor, "N 3 H W"], number: Int[Tensor, "B T 1 1 1"], y: Tensor, x: Tensor
) -> Float[Tensor, "B T 3 h w"]:
    """Colours at places between pixels, of the pictures with these numbers."""
    rows, columns = pictures.shape[2:]
    colour = torch.arange(3, device=number.device)[:, None, None]
    y, x = y.clamp(0, rows - 1), x.clamp(0, columns - 1)
    top, left = y.long(), x.long()
    bottom, right = (top + 1).clamp(max=rows - 1), (left + 1).clamp(max=columns - 1)

    def row(at: Tensor) -> Tensor:
        here, there = (pictures[number, colour, at, place].float() for place in (left, right))
        return torch.lerp(here, there, (x - left).expand_as(here))

    above = row(top)
    return torch.lerp(above, row(bottom), (y - top).expand_as(above))


def nobody(frames: Tensor) -> Truth:
    """Nothing is known of the objects in these frames."""
    clips, length, _, height, width = frames.shape
    none = frames.new_zeros(clips, length, 0)
    return Truth(
        id=none.long(),
        centre=none[..., None].expand(-1, -1, -1, 2).float(),
        box=none[..., None].expand(-1, -1, -1, 4).float(),
        visible=none.float(),
        order=none[:, 0].long(),
        owner=torch.full((clips, length, height, width), -1, device=frames.device),
    )
