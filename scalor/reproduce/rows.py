"""Rows of pictures that the figures are made of: what a model infers from a clip, the truth, objects one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from scalor.boxes import assign, centre_distances
from scalor.data.clip import Clip
from scalor.data.observation import Observation
from scalor.model.scalor import SCALOR
from scalor.model.sighting import gather_tracks
from scalor.nn.distributions import Mode
from scalor.tracks import Tracks
from scalor.visual.colors import colors_of, label_picture
from scalor.visual.strips import strip, to_bytes

WIDTH = 1152
"""Largest width of all frames of a row together, pixels. Ids and names are still legible at a width of 800."""
GALLERY = 4
"""Rows and columns of the grid that shows objects one by one."""
Picture = UInt8[np.ndarray, "H W 3"]


class ClipInference(NamedTuple):
    """A clip and what a model infers from it."""

    frames: Float[Tensor, "T 3 H W"]
    reconstruction: Float[Tensor, "T 3 H W"]
    background: Float[Tensor, "T 3 H W"]
    objects: Float[Tensor, "T 3 H W"]
    """Rendering of all objects over black."""
    tracks: Tracks
    own: list[dict[int, Float[np.ndarray, "3 P P"]]]
    """Rendering of each object alone over black, by id, for each frame."""


@torch.inference_mode()
def infer_clip(model: SCALOR, frames: Observation) -> ClipInference:
    """Run the model on one clip, [1, T]."""
    video = model.receive(frames, minimum=2)
    rendering = model.elbo(video, Mode()).rendering
    sightings, own = [], []
    for state, sighting in model.watch(video.unbind(1), masks=True):
        sprite = model.appearance.draw(state.objects.z_what)
        ids, pictures = sighting.id[0].tolist(), (sprite.colour * sprite.mask)[0].cpu().numpy()
        own.append({number + 1: picture for number, picture in zip(ids, pictures, strict=True) if number >= 0})
        sightings.append(sighting)
    picture, behind = rendering.image, rendering.background
    return ClipInference(
        video.image[0],
        picture.clamp(0, 1),
        torch.zeros_like(picture) if behind is None else behind,
        rendering.foreground.mask * rendering.foreground.colour,
        gather_tracks(sightings, video.size),
        own,
    )


def truth_tracks(clip: Clip) -> Tracks:
    """Return the ground truth of the first clip as tracks; objects less than 20 % visible are left out."""
    truth = clip.truth
    frame, which = torch.nonzero((truth.id[0] >= 0) & (truth.visible[0] >= 0.2), as_tuple=True)
    return Tracks(
        clip=np.zeros(len(frame), np.int64),
        frame=frame.numpy(),
        id=truth.id[0, frame, which].numpy() + 1,
        box=truth.box[0, frame, which].numpy(),
        confidence=np.ones(len(frame), np.float32),
        discovered=np.zeros(len(frame), bool),
        size=(clip.frames.shape[-2], clip.frames.shape[-1]),
    )


def renamed(truth: Tracks, tracks: Tracks, frame: int) -> Tracks:
    """Return the true tracks with the ids of the tracks they are matched to in a frame.

    They are matched by the distance of centres. True tracks without a match get unused ids.
    """
    true, found = (one.select(one.frame == frame) for one in (truth, tracks))
    distance = centre_distances(true.centre, found.centre)
    reach = (true.box[:, 2:] - true.box[:, :2]).max(axis=1, keepdims=True) / 2
    partner = assign(np.where(distance <= reach, distance, np.inf))
    names = {int(old): int(found.id[j]) for old, j in zip(true.id, partner, strict=True) if j >= 0}
    free = int(tracks.id.max(initial=0)) + 1
    for old in np.unique(truth.id).tolist():
        names.setdefault(old, free + len(names))
    return replace(truth, id=np.array([names[int(old)] for old in truth.id], np.int64))


def gallery(seen: ClipInference, size: tuple[int, int]) -> UInt8[np.ndarray, "T h w 3"]:
    """Draw the longest tracks, each in a grid cell framed in its colour; a cell is empty while its object is absent."""
    ids, lives = np.unique(seen.tracks.id, return_counts=True)
    longest = ids[np.argsort(-lives, kind="stable")][: GALLERY**2]
    cell = min(size) // GALLERY
    canvas = np.zeros((len(seen.own), *size, 3), np.uint8)
    for place, number in enumerate(sorted(longest.tolist())):
        top, left = place // GALLERY * cell, place % GALLERY * cell
        for picture, own in zip(canvas, seen.own, strict=True):
            if number not in own:
                continue
            sample = np.arange(cell) * own[number].shape[-1] // cell
            patch = to_bytes(torch.from_numpy(own[number]))[sample][:, sample]
            patch[[0, 1, -2, -1]] = patch[:, [0, 1, -2, -1]] = colors_of(np.array(number))
            picture[top : top + cell, left : left + cell] = patch
    return canvas


def label_maps(tracks: Tracks, frames: int) -> UInt8[np.ndarray, "T H W 3"]:
    """Draw the visible mask of every object in its colour."""
    assert tracks.masks is not None
    labels = np.full((frames, *tracks.size), -1)
    for mask, frame, number in zip(tracks.masks, tracks.frame, tracks.id, strict=True):
        labels[frame][mask] = number
    return label_picture(labels)


def owned(tracks: Tracks, frames: Float[Tensor, "T 3 H W"]) -> Float[Tensor, "T 1 H W"]:
    """Return 1 for the pixels in the visible mask of one of the tracks, else 0."""
    assert tracks.masks is not None
    mask = torch.zeros_like(frames[:, :1])
    for one, frame in zip(torch.from_numpy(tracks.masks).to(frames.device), tracks.frame, strict=True):
        mask[frame, 0, one] = 1
    return mask


def enlargement(tracks: Tracks, columns: int) -> int:
    """Return the whole factor by which frames are enlarged so that a row is at most WIDTH wide."""
    return max(1, WIDTH // columns // max(tracks.size))


def enlarged(frames: UInt8[np.ndarray, "T H W 3"], scale: int) -> UInt8[np.ndarray, "T h w 3"]:
    """Enlarge frames by a whole factor, without smoothing."""
    return frames.repeat(scale, axis=1).repeat(scale, axis=2)


def frames_of(rows: Mapping[str, np.ndarray], shown: Sequence[int], separator_after: int | None = None) -> Picture:
    """Draw a strip of the frames at the indices `shown`, with headings that count from 1."""
    return strip(
        {name: row[list(shown)] for name, row in rows.items()},
        columns=[f"t = {t + 1}" for t in shown],
        separator_after=separator_after,
    )
