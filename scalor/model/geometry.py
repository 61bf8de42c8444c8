"""Boxes, crops and pastes: the one coordinate convention of the project.

Coordinates are pixels; pixel i covers [i, i + 1), so its centre is at i + 0.5 (what torch calls
`align_corners=False`). A box is (x, y, w, h): centre and size. Boxes are axis-aligned, so bilinear sampling
separates into rows and columns: a crop is two matrix products with hat-function weights, and a sum of pastes
over objects is one more. No per-object canvas ever exists.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def hat(distance: Tensor) -> Tensor:
    """Bilinear weight of a sample at this distance, in units of the sample spacing."""
    return (1 - distance.abs()).clamp(min=0)


def centres(count: int, like: Tensor) -> Float[Tensor, " count"]:
    """Centres of `count` unit intervals laid side by side from 0."""
    return torch.arange(count, device=like.device, dtype=like.dtype) + 0.5


def crop_weights(
    centre: Float[Tensor, "B N"], size: Float[Tensor, "B N"], samples: int, pixels: int
) -> Float[Tensor, "B N samples pixels"]:
    """Weights that read `samples` evenly spaced values from an interval of a row of pixels."""
    step = (size / samples)[..., None]
    points = (centre - size / 2)[..., None] + step * centres(samples, centre)  # [B, N, samples]
    return hat(points[..., None] - centres(pixels, centre))


def paste_weights(
    centre: Float[Tensor, "B N"], size: Float[Tensor, "B N"], samples: int, pixels: int
) -> Float[Tensor, "B N pixels samples"]:
    """Weights that stretch `samples` values over an interval of a row of pixels, zero outside it."""
    offset = centres(pixels, centre) - (centre - size / 2)[..., None]  # [B, N, pixels]
    points = offset * (samples / size)[..., None]
    return hat(points[..., None] - centres(samples, centre))


def crop(image: Float[Tensor, "B C H W"], where: Float[Tensor, "B N 4"], samples: int) -> Float[Tensor, "B N C P P"]:
    """The glimpse inside each box, `samples` pixels a side; zero outside the image."""
    b, c, h, w = image.shape
    n = where.shape[1]
    x, y, width, height = where.unbind(-1)
    rows = crop_weights(y, height, samples, h).reshape(b, n * samples, h)
    columns = crop_weights(x, width, samples, w)  # [B, N, P, W]
    lines = rows @ image.transpose(1, 2).reshape(b, h, c * w)  # [B, N*P, C*W]
    glimpses = lines.view(b, n, samples * c, w) @ columns.transpose(-1, -2)  # [B, N, P*C, P]
    return glimpses.view(b, n, samples, c, samples).transpose(2, 3)


def paste(
    glimpses: Float[Tensor, "B N C P P"], where: Float[Tensor, "B N 4"], frame: tuple[int, int]
) -> Float[Tensor, "B C H W"]:
    """The sum over objects of each glimpse stretched over its box."""
    b, n, c, samples, _ = glimpses.shape
    h, w = frame
    x, y, width, height = where.unbind(-1)
    rows = paste_weights(y, height, samples, h)  # [B, N, H, P]
    columns = paste_weights(x, width, samples, w)  # [B, N, W, P]
    lines = glimpses.transpose(2, 3).reshape(b, n, samples * c, samples) @ columns.transpose(-1, -2)
    rows = rows.permute(0, 2, 1, 3).reshape(b, h, n * samples)
    canvas = rows @ lines.reshape(b, n * samples, c * w)  # [B, H, C*W]
    return canvas.view(b, h, c, w).transpose(1, 2)


def corners(where: Float[Tensor, "*shape 4"]) -> Float[Tensor, "*shape 4"]:
    """(x, y, w, h) as (x0, y0, x1, y1)."""
    half = where[..., 2:] / 2
    return torch.cat([where[..., :2] - half, where[..., :2] + half], -1)


def touches_frame(where: Float[Tensor, "*shape 4"], frame: tuple[int, int]) -> Tensor:
    """Whether any part of a box lies in the frame."""
    x0, y0, x1, y1 = corners(where).unbind(-1)
    return (x1 > 0) & (y1 > 0) & (x0 < frame[1]) & (y0 < frame[0])


def tight_box(
    mask: Float[Tensor, "B N 1 P P"], where: Float[Tensor, "B N 4"], threshold: float = 0.5
) -> Float[Tensor, "B N 4"]:
    """(x0, y0, x1, y1) around the mask's own extent inside its box; the whole box where the mask is empty.

    The model is free to look through a box larger than the object; people want the box of the object.
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


def size_within(
    squashed: Float[Tensor, "*shape 2"], typical: Float[Tensor, " 2"], size_range: float
) -> Float[Tensor, "*shape 2"]:
    """Width and height from a squashed latent in (-1, 1)."""
    return typical * (1 + size_range * squashed)
