"""Crop and paste of boxes, with Triton or plain torch, whichever is faster on the device.

`crop` is the paper's spatial transformer (STN in Algorithms 1 and 2). `paste` is its inverse (STN^-1 in Algorithms 1
and 3), summed over objects.

A box is (x, y, w, h): centre and size in pixels, where pixel i covers [i, i + 1). Sampling is bilinear. A crop reads
zero outside the image, and a pasted glimpse fades to zero over half a sample beyond its box. All sums are in float32 or
higher precision.

B clips, C channels, H by W pixels of a frame, N boxes per clip, P by P samples of a glimpse.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.kernels import plain_torch

Backend = Literal["triton", "matmul", "local"]

_HAS_TRITON = find_spec("triton") is not None
_forced: Backend | None = None


@contextmanager
def forced(backend: Backend) -> Iterator[None]:
    """Force one implementation for all calls inside the context, for tests and benchmarks."""
    global _forced
    before, _forced = _forced, backend
    try:
        yield
    finally:
        _forced = before


def crop(image: Float[Tensor, "B C H W"], where: Float[Tensor, "B N 4"], samples: int) -> Float[Tensor, "B N C P P"]:
    """Cut the glimpse inside each box out of an image.

    Parameters
    ----------
    image
        Images of the clips.
    where
        Boxes, (x, y, w, h) in pixels.
    samples
        P, side of a glimpse.

    Returns
    -------
    Tensor
        Glimpses in the image's dtype, zero outside the image.
    """
    if _uses_triton(image):
        # Imported when first needed: a machine without a GPU may have no Triton.
        from scalor.kernels import triton_operators

        return triton_operators.crop(image, where, samples)
    local = image.device.type == "cpu" and not _small(image) if _forced is None else _forced == "local"
    dtype = _wide(image, where)
    with torch.autocast(image.device.type, enabled=False):
        version = plain_torch.crop_local if local else plain_torch.crop_matmul
        return version(image.to(dtype), where.to(dtype), samples).to(image.dtype)


def paste(
    glimpses: Float[Tensor, "B N C P P"], where: Float[Tensor, "B N 4"], frame: tuple[int, int]
) -> Float[Tensor, "B C H W"]:
    """Stretch each glimpse over its box and sum over objects.

    Parameters
    ----------
    glimpses
        Pictures of the objects.
    where
        Boxes, (x, y, w, h) in pixels.
    frame
        Height and width of the result.

    Returns
    -------
    Tensor
        Frames in float32 or higher precision.
    """
    if _uses_triton(glimpses):
        from scalor.kernels import triton_operators

        return triton_operators.paste(glimpses, where, frame)
    # `paste_window` reads the largest box on the host: free only on the CPU, and not possible in a compiled graph.
    local = _forced != "matmul" and glimpses.device.type == "cpu" and not torch.compiler.is_compiling()
    window = plain_torch.paste_window(where, glimpses.shape[-1], frame) if local else None
    dtype = _wide(glimpses, where)
    glimpses, where = glimpses.to(dtype), where.to(dtype)
    with torch.autocast(glimpses.device.type, enabled=False):
        if window is None:
            return plain_torch.paste_matmul(glimpses, where, frame)
        return plain_torch.paste_local(glimpses, where, frame, window)


def _uses_triton(values: Tensor) -> bool:
    if _forced is not None:
        return _forced == "triton"
    return _HAS_TRITON and values.is_cuda and values.dtype in (torch.float32, torch.bfloat16)


def _small(image: Tensor) -> bool:
    """Return whether matrix products over the whole image are faster (measured: 2.8 times for 64 channels of 8x8)."""
    return image.shape[-2] * image.shape[-1] <= 16 * 16


def _wide(values: Tensor, where: Tensor) -> torch.dtype:
    """Return the dtype to compute in: float32 or that of the inputs if it has higher precision."""
    return torch.promote_types(torch.promote_types(values.dtype, where.dtype), torch.float32)
