"""Conversion of object slots to `Tracks`, and of frames to a `Rollout`: box, id and visible mask of every live object.

Letters: B clips, K slots, H by W pixels, P glimpse side.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.kernels import paste
from scalor.model.geometry import tight_box
from scalor.model.glimpses import Sprite
from scalor.model.rendering import RenderInput, render_input
from scalor.model.state import SceneState
from scalor.nn.interface import Rollout
from scalor.tracks import Tracks


class Sighting(NamedTuple):
    """The slots of one frame of B clips, as reported to users. An id of -1 marks an empty slot."""

    id: Int[Tensor, "B K"]
    box: Float[Tensor, "B K 4"]
    """x0, y0, x1, y1 around the mask, pixels."""
    presence: Float[Tensor, "B K"]
    discovered: Bool[Tensor, "B K"]
    """True in the first frame of a track."""
    turned_away: Float[Tensor, " B"]
    """Number of detections that were dropped because no slot was free."""
    masks: Bool[Tensor, "B K H W"] | None
    """Visible mask of each object, where asked for."""


def sight(state: SceneState, sprite: Sprite, frame: tuple[int, int], masks: bool) -> Sighting:
    """Return the sighting of a state; `frame` is (height, width), and `masks` asks for visible masks."""
    objects = state.objects
    return Sighting(
        state.id,
        tight_box(sprite.mask, objects.where),
        objects.presence[..., 0],
        state.discovered,
        state.turned_away,
        visible_masks(render_input(objects, sprite), frame) if masks else None,
    )


def visible_masks(shown: RenderInput, frame: tuple[int, int]) -> Bool[Tensor, "B K H W"]:
    """Return the pixels that show each object.

    A pixel shows an object where its opacity (mask times presence) is above 0.5 and no other object has a higher weight
    (opacity times nearness).
    """
    b, k = shown.where.shape[:2]
    opacity = shown.sprite.mask * shown.presence[..., None, None]
    near = torch.sigmoid(-shown.z_depth)[..., None, None]
    layers = torch.cat([opacity, opacity * near], 2).flatten(0, 1)[:, None]  # [B*K, 1, 2, P, P]
    canvas = paste(layers, shown.where.flatten(0, 1)[:, None], frame).reshape(b, k, 2, *frame)
    nearest = canvas[:, :, 1].argmax(1, keepdim=True)  # [B, 1, H, W]
    mine = nearest == torch.arange(k, device=nearest.device)[:, None, None]
    return mine & (canvas[:, :, 0] > 0.5)


def warn_of_full_slots(sightings: list[Sighting]) -> bool:
    """Warn if detections were dropped because all slots were taken. Return whether there were any."""
    turned_away = float(torch.stack([s.turned_away for s in sightings]).sum())
    if turned_away:
        warnings.warn(
            f"out of slots: {turned_away:.0f} detections were dropped in {len(sightings)} frames, as all "
            f"{sightings[0].id.shape[-1]} slots were taken. "
            "Remedy: more slots, with scalor.load(weights, slots=...) or --slots.",
            stacklevel=3,
        )
    return turned_away > 0


def gather_tracks(sightings: list[Sighting], size: tuple[int, int], first_frame: int = 0) -> Tracks:
    """Return the `Tracks` of all live objects, sorted by clip, frame and id.

    `sightings` are consecutive frames, the first of which has the number `first_frame`. `size` is (height, width).
    """
    ids = torch.stack([s.id for s in sightings], 1).cpu().numpy()  # [B, T, K]
    clip, frame, slot = np.nonzero(ids >= 0)
    order = np.lexsort((ids[clip, frame, slot], frame, clip))
    at = clip[order], frame[order], slot[order]

    def column(values: list[Tensor]) -> np.ndarray:
        rows: np.ndarray = torch.stack(values, 1).cpu().numpy()[at]
        return rows

    masks = [s.masks for s in sightings if s.masks is not None]
    return Tracks(
        clip=at[0],
        frame=at[1] + first_frame,
        id=ids[at] + 1,
        box=column([s.box for s in sightings]),
        confidence=column([s.presence for s in sightings]),
        discovered=column([s.discovered for s in sightings]),
        size=size,
        masks=column(masks) if masks else None,
        dropped=int(torch.stack([s.turned_away for s in sightings]).sum()),
    )


def gather_rollout(frames: Sequence[tuple[Float[Tensor, "B 3 H W"], Tensor | None, Sighting]]) -> Rollout:
    """Stack frames, each with its background (None: black) and its objects, and warn if slots ran out."""
    images, backgrounds, sightings = (list(column) for column in zip(*frames, strict=True))
    warn_of_full_slots(sightings)
    return Rollout(
        torch.stack(images, 1).clamp(0, 1),
        torch.stack([torch.zeros_like(images[0]) if one is None else one for one in backgrounds], 1),
        gather_tracks(sightings, (images[0].shape[-2], images[0].shape[-1])),
    )
