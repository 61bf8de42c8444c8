"""Crop and paste in plain torch: the reference that the Triton kernels must agree with, and the CPU implementation.

Boxes are axis-aligned, so bilinear sampling separates into rows and columns. The matmul versions are matrix products
with hat-function weights over the whole frame. They read no value on the host and run on every device. The local
versions read only the pixels around each box, so their cost grows with the objects and not with the frame.

B clips, C channels, H by W pixels of a frame, N boxes per clip, P by P samples of a glimpse.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import grid_sample


def hat(distance: Tensor) -> Tensor:
    """Return the bilinear weight of a sample at this distance, in units of the sample spacing."""
    return (1 - distance.abs()).clamp(min=0)


def centres(count: int, like: Tensor) -> Float[Tensor, " count"]:
    """Return the centres of `count` adjacent unit intervals that start at 0."""
    return torch.arange(count, device=like.device, dtype=like.dtype) + 0.5


def crop_points(centre: Float[Tensor, "B N"], size: Float[Tensor, "B N"], samples: int) -> Float[Tensor, "B N samples"]:
    """Return the positions of `samples` evenly spaced samples of an interval."""
    return (centre - size / 2)[..., None] + (size / samples)[..., None] * centres(samples, centre)


def paste_weights(
    centre: Float[Tensor, "B N"], size: Float[Tensor, "B N"], samples: int, pixels: Float[Tensor, "*#BN pixels"]
) -> Float[Tensor, "B N pixels samples"]:
    """Return the weights that stretch `samples` values over an interval of a row of pixels, with zeros outside it."""
    points = (pixels - (centre - size / 2)[..., None]) * (samples / size)[..., None]
    return hat(points[..., None] - centres(samples, centre))


def crop_matmul(
    image: Float[Tensor, "B C H W"], where: Float[Tensor, "B N 4"], samples: int
) -> Float[Tensor, "B N C P P"]:
    """Crop by matrix products over the whole image."""
    b, c, h, w = image.shape
    n = where.shape[1]
    x, y, width, height = where.unbind(-1)
    rows = hat(crop_points(y, height, samples)[..., None] - centres(h, y)).reshape(b, n * samples, h)
    columns = hat(crop_points(x, width, samples)[..., None] - centres(w, x))  # [B, N, P, W]
    lines = rows @ image.transpose(1, 2).reshape(b, h, c * w)  # [B, N*P, C*W]
    glimpses = lines.view(b, n, samples * c, w) @ columns.transpose(-1, -2)  # [B, N, P*C, P]
    return glimpses.view(b, n, samples, c, samples).transpose(2, 3)


def paste_matmul(
    glimpses: Float[Tensor, "B N C P P"], where: Float[Tensor, "B N 4"], frame: tuple[int, int]
) -> Float[Tensor, "B C H W"]:
    """Paste by matrix products over the whole frame."""
    b, n, c, samples, _ = glimpses.shape
    h, w = frame
    x, y, width, height = where.unbind(-1)
    rows = paste_weights(y, height, samples, centres(h, y))  # [B, N, H, P]
    columns = paste_weights(x, width, samples, centres(w, x))  # [B, N, W, P]
    lines = glimpses.transpose(2, 3).reshape(b, n, samples * c, samples) @ columns.transpose(-1, -2)
    rows = rows.permute(0, 2, 1, 3).reshape(b, h, n * samples)
    canvas = rows @ lines.reshape(b, n * samples, c * w)  # [B, H, C*W]
    return canvas.view(b, h, c, w).transpose(1, 2)


def crop_local(
    image: Float[Tensor, "B C H W"], where: Float[Tensor, "B N 4"], samples: int
) -> Float[Tensor, "B N C P P"]:
    """Crop with torch's `grid_sample`, which reads only four pixels per sample. All boxes of a clip share one grid."""
    b, c, h, w = image.shape
    n = where.shape[1]
    x, y, width, height = where.unbind(-1)
    # All points at least two pixels outside read zero. Clamping them there keeps the sampler from overflowing.
    across = crop_points(x, width, samples).clamp(-2, w + 2) * (2 / w) - 1
    down = crop_points(y, height, samples).clamp(-2, h + 2) * (2 / h) - 1
    square = (b, n, samples, samples)
    grid = torch.stack([across[:, :, None, :].expand(square), down[..., None].expand(square)], -1)
    glimpses = grid_sample(image, grid.view(b, n * samples, samples, 2), align_corners=False)
    return glimpses.view(b, c, n, samples, samples).transpose(1, 2)


def paste_window(where: Float[Tensor, "B N 4"], samples: int, frame: tuple[int, int]) -> tuple[int, int] | None:
    """Return the height and width of a window large enough for each box, or None if `paste_local` would not be faster.

    It reads the largest box on the host, which costs nothing only on the CPU.
    """
    if where.numel() == 0:
        return None
    reach = 1 + 1 / samples  # a pasted glimpse fades over half a sample beyond its box, on either side
    width, height = (side * reach + 2 for side in where.detach()[..., 2:].reshape(-1, 2).amax(0).tolist())
    # Measured on one core, 64 to 512 pixels a side, 16 and 32 samples, 1 and 5 channels: the two versions take the same
    # time if a window has a fifth to an eighth of the frame's area. The comparison is also false for NaN boxes.
    if not width * height * 6 < frame[0] * frame[1]:
        return None
    return min(int(height), frame[0]), min(int(width), frame[1])


def paste_local(
    glimpses: Float[Tensor, "B N C P P"],
    where: Float[Tensor, "B N 4"],
    frame: tuple[int, int],
    window: tuple[int, int],
) -> Float[Tensor, "B C H W"]:
    """Stretch each glimpse over a window that contains its box, and add the windows into the frame."""
    b, n, c, samples, _ = glimpses.shape
    h, w = frame
    x, y, width, height = where.unbind(-1)
    down, across = first_pixel(y, height, samples, window[0], h), first_pixel(x, width, samples, window[1], w)
    rows = paste_weights(y, height, samples, down[..., None] + centres(window[0], y)).flatten(0, 1)
    columns = paste_weights(x, width, samples, across[..., None] + centres(window[1], x)).flatten(0, 1)
    lines = glimpses.reshape(b * n, c * samples, samples) @ columns.transpose(1, 2)  # [B*N, C*P, window]
    pieces = rows[:, None] @ lines.view(b * n, c, samples, window[1])  # [B*N, C, window, window]
    pieces = pieces.view(b, n, c, window[0] * window[1]).transpose(1, 2).reshape(b, c, -1)
    row_index = down[..., None] + torch.arange(window[0], device=x.device)
    column_index = across[..., None] + torch.arange(window[1], device=x.device)
    pixel = (row_index[..., :, None] * w + column_index[..., None, :]).view(b, 1, -1).expand(b, c, -1)
    return glimpses.new_zeros(b, c, h * w).scatter_add(2, pixel, pieces).view(b, c, h, w)


def first_pixel(
    centre: Float[Tensor, "B N"], size: Float[Tensor, "B N"], samples: int, window: int, pixels: int
) -> Tensor:
    """Return the first pixel of each box's window along one axis. Windows are shifted to lie fully inside the frame."""
    first = centre.detach() - size.detach() * ((1 + 1 / samples) / 2) - 0.5
    return first.floor().long().clamp(0, pixels - window)
