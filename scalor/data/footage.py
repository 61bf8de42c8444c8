"""Clips cut out of videos with a stationary camera.

`Frames` holds what `scalor fit` keeps of videos: frames at the model's scale, background pictures, and the positions of
foreground objects ("spots"). Most clips are cut around a spot and some anywhere. Stretches shorter than a clip are not
used. Half of the clips are mirrored. With `zoom`, clips are also enlarged or reduced, as if the camera were nearer or
farther. All data are put on the device once; `clips` copies no tensor to the host.

B clips, T frames, h by w pixels of a clip, N frames of H by W pixels that are kept.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from jaxtyping import Float, Int, Int16, UInt8
from torch import Tensor

from scalor.boxes import MAX_RULER, sizes_at
from scalor.config import SceneConfig
from scalor.data.clip import Clip, Truth
from scalor.data.hashing import between, key, uniform, whole
from scalor.data.observation import Observation
from scalor.errors import InputError

FOOTAGE_FILE = "footage.npz"
"""Name of the file of training frames in the run folder of a fit."""
ANYWHERE_SHARE = 0.25
"""Share of the clips that are cut out anywhere, so that training also covers empty parts of the scene."""
# Numbers of draws, see `hashing`.
SPOT, MOMENT, TOP, LEFT, MIRROR, ANYWHERE, ZOOM = range(7)
# States of an object in `Labels.seen`.
NOBODY, SEEN, HIDDEN = range(3)
UNSEEN = 0.1
"""Visible share assigned to a hidden object. It is so low that the object counts neither as missed nor as an error."""


@dataclass(frozen=True)
class Labels:
    """Output of a tracker on the frames, used as ground truth for training.

    N frames, K columns. Every object has one column. A column is reused for another object once the first one ended so
    long ago that no clip contains both.
    """

    seen: UInt8[np.ndarray, "N K"]
    """NOBODY (no object), SEEN, or HIDDEN (an object that exists but is not visible)."""
    box: Float[np.ndarray, "N K 4"]
    """x0, y0, x1, y1, pixels of the frames."""
    owner: Int16[np.ndarray, "N H W"]
    """Column of the object that each pixel shows, -1 for the background."""

    def beside(self, other: "Labels") -> "Labels":
        """Return these labels followed by those of other videos."""
        more = other.seen.shape[1] - self.seen.shape[1]
        one, two = self.widened(max(0, more)), other.widened(max(0, -more))
        return Labels(*(np.concatenate([getattr(part, field.name) for part in (one, two)]) for field in fields(Labels)))

    def widened(self, columns: int) -> "Labels":
        """Return the labels with this many empty columns appended."""
        return Labels(
            np.pad(self.seen, ((0, 0), (0, columns))), np.pad(self.box, ((0, 0), (0, columns), (0, 0))), self.owner
        )


@dataclass(frozen=True)
class Frames:
    """Frames at the model's scale, in stretches without gaps.

    N frames, V background pictures, S stretches, M spots.
    """

    frames: UInt8[np.ndarray, "N 3 H W"]
    stills: UInt8[np.ndarray, "V 3 H W"]
    """Background pictures: one for each video, or for each period of different lighting in it."""
    starts: Int[np.ndarray, " S"]
    """First frame of each stretch."""
    videos: Int[np.ndarray, " S"]
    """Index of the background picture of each stretch."""
    spots: Int[np.ndarray, "M 3"]
    """Frame, row and column of foreground objects."""
    labels: Labels | None = None
    """Labels of all frames; None if no tracker was run on them."""

    def save(self, path: Path) -> None:
        """Write the frames to an .npz file."""
        arrays = {name: value for name, value in vars(self).items() if name != "labels"}
        np.savez_compressed(path, **arrays, **(vars(self.labels) if self.labels else {}))

    @property
    def lengths(self) -> Int[np.ndarray, " S"]:
        """Number of frames in each stretch."""
        return np.diff(self.starts, append=len(self.frames))

    def stretch_of(self, frame: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
        """Return the stretch that each of these frames belongs to."""
        stretch: np.ndarray = np.searchsorted(self.starts, frame, side="right") - 1
        return stretch

    def check(self, config: SceneConfig) -> None:
        """Raise InputError if the clips asked for are larger than the frames or longer than every stretch."""
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
        """Return these frames followed by those of other videos. All must have the same size."""
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
        """Read frames that were written by `save`."""
        try:
            with np.load(path, allow_pickle=False) as file:
                labels = (
                    Labels(**{field.name: file[field.name] for field in fields(Labels)}) if "seen" in file else None
                )
                names = [field.name for field in fields(Frames) if field.name != "labels"]
                return Frames(**{name: file[name] for name in names}, labels=labels)
        except (OSError, KeyError, ValueError, TypeError, BadZipFile) as error:
            raise InputError(
                f"scene.footage is {str(path)!r}: no frames can be read from it; make them again with `scalor fit`."
            ) from error


class Footage:
    """An unlimited series of clips cut out of kept frames. The same index always gives the same clip."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        self.config, self.seed, self.split = config, seed, split
        kept = Frames.load(Path(config.footage))
        kept.check(config)
        count, _, height, _ = kept.frames.shape
        stretch, long = kept.stretch_of(np.arange(count)), kept.lengths >= config.length
        # The earliest and the latest first frame of a clip that contains a given frame.
        earliest = kept.starts[stretch]
        latest = earliest + kept.lengths[stretch] - config.length
        # Only stretches that are at least as long as a clip are used.
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
        """Return the clips with these indices."""
        cut = self.cut(key(self.seed, self.split, index), length)
        x, y = cut.x[:, None, None, None], cut.y[:, None, None, :, None]  # [B, 1, 1, 1, w] and [B, 1, 1, h, 1]
        t = (cut.first[:, None] + torch.arange(length, device=index.device))[:, :, None, None, None]
        seen = between_pixels(self.frames, t, y, x)  # [B, T, 3, h, w]
        still = between_pixels(self.stills, self.video[cut.first][:, None, None, None, None], y, x)
        sizes = cut.zoom[:, None] * self.sizes[cut.y.long().clamp(0, len(self.sizes) - 1)]
        observed = with_background(seen / 255, still / 255, sizes)
        return Clip(observed, empty_truth(seen) if self.labels is None else self.truth(cut, length))

    def truth(self, cut: "Cut", length: int) -> Truth:
        """Return the labels of clips, in the clips' own coordinates."""
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
        """Choose the time and the region of each clip: most around a spot, some anywhere."""
        (height, width), (rows, columns) = self.config.frame, self.frames.shape[2:]
        spot = self.spots[whole(keys, SPOT, len(self.spots))]
        anywhere = uniform(keys, ANYWHERE) < ANYWHERE_SHARE
        moment = torch.where(anywhere, self.moments[whole(keys, MOMENT, len(self.moments))], spot[:, 0])
        back = (uniform(keys, MOMENT) * length).long()
        first = torch.minimum(torch.maximum(moment - back, self.earliest[moment]), self.latest[moment])
        zoom = (self.config.zoom ** between(keys, ZOOM, -1, 1)).clamp(min=max(height / rows, width / columns))

        def along(draw: int, place: Tensor, side: int, room: int) -> Tensor:
            """Return the positions in the frames of the clip's `side` pixels along one axis."""
            drawn, taken = uniform(keys, draw), side / zoom
            around = (place - (drawn * taken).long()).clamp(min=0)
            start = torch.where(anywhere, (drawn * (room - taken + 1)).long(), around)
            pixels = torch.arange(side, device=keys.device) + 0.5
            return torch.minimum(start, room - taken)[:, None] + pixels / zoom[:, None] - 0.5

        y, x = along(TOP, spot[:, 1], height, rows), along(LEFT, spot[:, 2], width, columns)
        mirrored = uniform(keys, MIRROR)[:, None] < 0.5
        return Cut(first, y, torch.where(mirrored, x.flip(1), x), zoom)


def with_background(
    frames: Float[Tensor, "B T 3 h w"],
    still: Float[Tensor, "B 1 3 h w"],
    sizes: Float[Tensor, "B h"] | None = None,
) -> Observation:
    """Return frames with their background and a ruler, as models for a stationary camera expect them.

    `sizes` are those of an object at each row, in multiples of a typical object's size; None means 1 in every row. The
    ruler is at most `MAX_RULER`.
    """
    ruler = torch.ones_like(frames[:, :, 0, :, 0])
    if sizes is not None:
        ruler = sizes.clamp(max=MAX_RULER)[:, None].expand_as(ruler)
    return Observation(frames, still.expand_as(frames), ruler)


class Cut(NamedTuple):
    """The source of clips: their first frame, and the row and column in the frames of each of their pixels."""

    first: Int[Tensor, " B"]
    y: Float[Tensor, "B h"]
    x: Float[Tensor, "B w"]
    zoom: Float[Tensor, " B"]
    """Magnification of the clip relative to the frames."""


def between_pixels(
    pictures: UInt8[Tensor, "N 3 H W"], number: Int[Tensor, "B T 1 1 1"], y: Tensor, x: Tensor
) -> Float[Tensor, "B T 3 h w"]:
    """Return the colours (0 to 255) of the pictures with these numbers at fractional positions, bilinearly."""
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


def empty_truth(frames: Tensor) -> Truth:
    """Return a truth without any object, for frames whose objects are unknown."""
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
