"""Crop and paste as custom torch operators that launch the Triton kernels.

They are opaque to the compiler and differentiable once. The sizes below are fixed and not auto-tuned, because tuning
would cost seconds at the start and break graph capture.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from scalor.kernels import triton_kernels

TILE = 8
"""Side of the square of pixels that one program fills: about the size of a small object, so few pixels are idle."""
TILE_WARPS = 1
"""Warps per tile. A single warp finds its next object in one instruction and never waits for other warps."""
HELD = 256
"""Boxes tested against a tile at once: eight per thread."""
DEVICES = ("cpu", "cuda")
"""Devices of the operators. On the CPU, Triton's interpreter runs the same kernels."""
DEEP = 4
"""Channels of one tile for which one program computes the gradient: eight sums per thread."""


def crop(image: Tensor, where: Tensor, samples: int) -> Tensor:
    """Cut glimpses out of images, see `scalor.kernels.crop`."""
    assert where.shape == (image.shape[0], where.shape[1], 4), (image.shape, where.shape)
    glimpses: Tensor = _crop(image, where.float(), samples)
    return glimpses


def paste(glimpses: Tensor, where: Tensor, frame: tuple[int, int]) -> Tensor:
    """Stretch glimpses over boxes and sum them, see `scalor.kernels.paste`."""
    assert where.shape == (*glimpses.shape[:2], 4), (glimpses.shape, where.shape)
    canvas: Tensor = _paste(glimpses, where.float(), *frame)
    return canvas


def _empty_canvas(glimpses: Tensor, where: Tensor, height: int, width: int) -> Tensor:
    b, _, c, _, _ = glimpses.shape
    return glimpses.new_empty(b, c, height, width, dtype=torch.float32)


@custom_op("scalor::paste", mutates_args=(), device_types=DEVICES)
def _paste(glimpses: Tensor, where: Tensor, height: int, width: int) -> Tensor:
    b, n, c, p, _ = glimpses.shape
    canvas = _empty_canvas(glimpses, where, height, width)
    if where.numel() == 0:
        return canvas.zero_()
    tiles = _ceil_div(height, TILE) * _ceil_div(width, TILE)
    with _on(glimpses):
        triton_kernels.paste_forward_kernel[(b * tiles,)](
            glimpses.contiguous(),
            where.contiguous(),
            canvas,
            n,
            C=c,
            P=p,
            H=height,
            W=width,
            SIDE=TILE,
            HELD=min(HELD, _power_of_two(n)),
            num_warps=TILE_WARPS,
        )
    return canvas


def _empty_pair(gradient: Tensor, glimpses: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    return glimpses.new_empty(glimpses.shape), where.new_empty(where.shape)


@custom_op("scalor::paste_backward", mutates_args=(), device_types=DEVICES)
def _paste_backward(gradient: Tensor, glimpses: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    b, n, c, p, _ = glimpses.shape
    to_glimpses, to_where = _empty_pair(gradient, glimpses, where)
    if where.numel() == 0:
        return to_glimpses, to_where
    with _on(glimpses):
        triton_kernels.paste_backward_kernel[(b * n,)](
            gradient.contiguous(),
            glimpses.contiguous(),
            where.contiguous(),
            to_glimpses,
            to_where,
            n,
            C=c,
            P=p,
            H=gradient.shape[-2],
            W=gradient.shape[-1],
            SAMPLES=_power_of_two(p * p),
            num_warps=_warps(p * p),
        )
    return to_glimpses, to_where


def _keep_for_paste(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _pull_through_paste(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
    to_glimpses, to_where = _paste_backward(gradient, *ctx.saved_tensors)
    return to_glimpses, to_where, None, None


_paste.register_fake(_empty_canvas)
_paste_backward.register_fake(_empty_pair)
_paste.register_autograd(_pull_through_paste, setup_context=_keep_for_paste)


def _empty_glimpses(image: Tensor, where: Tensor, samples: int) -> Tensor:
    b, c, _, _ = image.shape
    return image.new_empty(b, where.shape[1], c, samples, samples)


@custom_op("scalor::crop", mutates_args=(), device_types=DEVICES)
def _crop(image: Tensor, where: Tensor, samples: int) -> Tensor:
    b, c, h, w = image.shape
    n = where.shape[1]
    glimpses = _empty_glimpses(image, where, samples)
    if where.numel() == 0:
        return glimpses
    image = _whole_clips(image)
    spread = _spread(c, samples)
    steps = min(_ceil_div(c, spread), 8)
    with _on(image):
        triton_kernels.crop_forward_kernel[(b * n * _ceil_div(c, spread * steps),)](
            image,
            where.contiguous(),
            glimpses,
            n,
            image.stride(0),
            C=c,
            P=samples,
            H=h,
            W=w,
            SAMPLES=_power_of_two(samples * samples),
            SPREAD=spread,
            STEPS=steps,
            num_warps=_warps(spread * samples * samples),
        )
    return glimpses


def _empty_where(gradient: Tensor, image: Tensor, where: Tensor) -> Tensor:
    return where.new_empty(where.shape)


@custom_op("scalor::crop_to_where", mutates_args=(), device_types=DEVICES)
def _crop_to_where(gradient: Tensor, image: Tensor, where: Tensor) -> Tensor:
    b, c, h, w = image.shape
    n, p = where.shape[1], gradient.shape[-1]
    to_where = _empty_where(gradient, image, where)
    if where.numel() == 0:
        return to_where
    image = _whole_clips(image)
    spread = _spread(c, p)
    with _on(image):
        triton_kernels.crop_to_where_kernel[(b * n,)](
            gradient.contiguous(),
            image,
            where.contiguous(),
            to_where,
            n,
            image.stride(0),
            C=c,
            P=p,
            H=h,
            W=w,
            SAMPLES=_power_of_two(p * p),
            SPREAD=spread,
            num_warps=_warps(spread * p * p),
        )
    return to_where


def _empty_image(gradient: Tensor, where: Tensor, height: int, width: int) -> Tensor:
    b, _, c, _, _ = gradient.shape
    return gradient.new_empty(b, c, height, width)


@custom_op("scalor::crop_to_image", mutates_args=(), device_types=DEVICES)
def _crop_to_image(gradient: Tensor, where: Tensor, height: int, width: int) -> Tensor:
    b, n, c, p, _ = gradient.shape
    to_image = _empty_image(gradient, where, height, width)
    if where.numel() == 0:
        return to_image.zero_()
    deep = min(DEEP, _power_of_two(c))
    tiles = _ceil_div(height, TILE) * _ceil_div(width, TILE)
    with _on(gradient):
        triton_kernels.crop_to_image_kernel[(b * tiles * _ceil_div(c, deep),)](
            gradient.contiguous(),
            where.contiguous(),
            to_image,
            n,
            C=c,
            P=p,
            H=height,
            W=width,
            SIDE=TILE,
            HELD=min(HELD, _power_of_two(n)),
            SPREAD=deep,
            num_warps=TILE_WARPS,
        )
    return to_image


def _keep_for_crop(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _pull_through_crop(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
    image, where = ctx.saved_tensors
    needs_image, needs_where, _ = ctx.needs_input_grad
    to_image = _crop_to_image(gradient, where, *image.shape[-2:]) if needs_image else None
    to_where = _crop_to_where(gradient, image, where) if needs_where else None
    return to_image, to_where, None


_crop.register_fake(_empty_glimpses)
_crop_to_where.register_fake(_empty_where)
_crop_to_image.register_fake(_empty_image)
_crop.register_autograd(_pull_through_crop, setup_context=_keep_for_crop)


def _whole_clips(image: Tensor) -> Tensor:
    """Return the image with each clip contiguous. Gaps between clips are allowed, as in one frame of many videos."""
    h, w = image.shape[-2:]
    return image if image.stride()[1:] == (h * w, w, 1) else image.contiguous()


def _spread(channels: int, samples: int) -> int:
    """Return the number of channels that one program handles at once.

    A small glimpse takes several, because a single channel would leave threads idle.
    """
    return min(_power_of_two(channels), max(1, 256 // _power_of_two(samples * samples)))


def _warps(values: int) -> int:
    """Return the number of warps for two values per thread.

    With two values, the sums of five channels leave room for other programs beside this one.
    """
    return min(16, max(1, _power_of_two(values) // 64))


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


def _ceil_div(total: int, part: int) -> int:
    return -(-total // part)


def _on(tensor: Tensor) -> AbstractContextManager[object]:
    """Make the tensor's device current, because Triton launches kernels on the current device."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()
