"""Bounding boxes, in the coordinate convention of the whole project.

Coordinates are pixels. Pixel i covers [i, i + 1), so its centre is at i + 0.5 (torch: `align_corners=False`). A box is
(x, y, w, h): centre and size. `scalor.kernels` crops and pastes boxes.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def corners(where: Float[Tensor, "*shape 4"]) -> Float[Tensor, "*shape 4"]:
    """Convert (x, y, w, h) to (x0, y0, x1, y1)."""
    half = where[..., 2:] / 2
    return torch.cat([where[..., :2] - half, where[..., :2] + half], -1)


def touches_frame(where: Float[Tensor, "*shape 4"], frame: tuple[int, int]) -> Tensor:
    """Return whether any part of a box lies in the frame (height, width)."""
    x0, y0, x1, y1 = corners(where).unbind(-1)
    return (x1 > 0) & (y1 > 0) & (x0 < frame[1]) & (y0 < frame[0])


def tight_box(
    mask: Float[Tensor, "B N 1 P P"], where: Float[Tensor, "B N 4"], threshold: float = 0.5
) -> Float[Tensor, "B N 4"]:
    """Return the bounding box (x0, y0, x1, y1) of the mask inside its box; the whole box where the mask is empty.

    The box of a glimpse may be larger than the object. Users want the bounding box of the object itself.
    """
    samples = mask.shape[-1]
    inside = mask[:, :, 0] > threshold  # [B, N, P, P]
    edges = []
    for used in (inside.any(-2), inside.any(-1)):  # columns give x, rows give y
        steps = torch.arange(samples, device=mask.device)
        first = torch.where(used, steps, samples).amin(-1)
        last = torch.where(used, steps + 1, 0).amax(-1)
        empty = last == 0
        edges.append((torch.where(empty, 0, first) / samples, torch.where(empty, samples, last) / samples))
    (left, right), (top, bottom) = edges
    low, size = where[..., :2] - where[..., 2:] / 2, where[..., 2:]
    return torch.cat([low + size * torch.stack([left, top], -1), low + size * torch.stack([right, bottom], -1)], -1)


Ruler = Float[Tensor, "B H"]
"""Size of objects at each row of a frame, in multiples of the typical size."""


def at_row(
    typical: Float[Tensor, " 2"], y: Float[Tensor, "B N"], ruler: Ruler | None
) -> Float[Tensor, " 2"] | Float[Tensor, "B N 2"]:
    """Return the typical width and height of an object whose centre is at row `y`, pixels."""
    if ruler is None:
        return typical
    return typical * ruler.gather(1, y.detach().long().clamp(0, ruler.shape[1] - 1))[..., None]


def size_within(
    squashed: Float[Tensor, "*shape 2"], typical: Float[Tensor, "*#shape 2"], size_range: float
) -> Float[Tensor, "*shape 2"]:
    """Return width and height, pixels, from a squashed latent in (-1, 1): `typical` times 1 ± `size_range`."""
    return typical * (1 + size_range * squashed)
