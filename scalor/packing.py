"""Packed weights, about a quarter of the original size, for shipping and sharing.

Large matrices are stored as 8-bit integers with one scale per row. All other tensors are stored in half precision.
The effect on tracking is small; docs/log.md, "all densities with `clip_object`", has figures.
"""

import torch
from torch import Tensor

SCALE = "/scale"
"""Suffix that, added to the name of a packed tensor, gives the name of the tensor of its scales."""
MAX_UNPACKED = 4096
"""Largest number of elements of a tensor that is always stored in half precision."""
MAX_STEP = 0.1
"""Largest allowed quantisation step (median over the rows), as a share of the median absolute value of the matrix.

Matrices with outliers exceed it and are stored in half precision.
"""
INT8_MAX = 127
"""Largest absolute value of a packed element."""


def pack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors as 8-bit integers with scales, or in half precision."""
    packed = {}
    for name, tensor in tensors.items():
        packed[name] = tensor.half()
        if tensor.ndim < 2 or tensor.numel() <= MAX_UNPACKED:
            continue
        rows = tensor.float().flatten(1)
        scale = rows.abs().amax(1, keepdim=True).clamp(min=torch.finfo().tiny) / INT8_MAX
        if scale.median() <= MAX_STEP * rows.abs().median():
            packed[name] = (rows / scale).round().to(torch.int8).view(tensor.shape)
            packed[name + SCALE] = scale[:, 0]
    return packed


def unpack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Invert `pack`, up to rounding. Tensors that have no scales are returned as they are."""
    whole = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name in tensors.keys() - whole.keys():
        rows = whole[name.removesuffix(SCALE)]
        whole[name.removesuffix(SCALE)] = (rows.flatten(1) * tensors[name][:, None]).view(rows.shape)
    return whole
