"""Weights in about a quarter of their size, to ship and to share: large matrices as 8-bit whole numbers, with a scale a
row, the rest in half precision.

Tracking hardly notices: docs/log.md, "all densities with `clip_object`", has figures.
"""

import torch
from torch import Tensor

SCALE = "/scale"
"""After the name of a packed tensor: that of its scales."""
SMALL = 4096
"""Tensors of no more numbers than this are kept in half precision."""
COARSE = 0.1
"""So are matrices whose usual number would be rounded in steps of more than this share of it, for the sake of a few
far larger ones."""
LARGEST = 127


def pack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    packed = {}
    for name, tensor in tensors.items():
        packed[name] = tensor.half()
        if tensor.ndim < 2 or tensor.numel() <= SMALL:
            continue
        rows = tensor.float().flatten(1)
        scale = rows.abs().amax(1, keepdim=True).clamp(min=torch.finfo().tiny) / LARGEST
        if scale.median() <= COARSE * rows.abs().median():
            packed[name] = (rows / scale).round().to(torch.int8).view(tensor.shape)
            packed[name + SCALE] = scale[:, 0]
    return packed


def unpack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse, up to rounding; tensors that are not packed stay as they are."""
    whole = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name in tensors.keys() - whole.keys():
        rows = whole[name.removesuffix(SCALE)]
        whole[name.removesuffix(SCALE)] = (rows.flatten(1) * tensors[name][:, None]).view(rows.shape)
    return whole
