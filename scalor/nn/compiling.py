"""Compilation of a module for the GPU.

The weights are passed as one vector. So their gradients over T frames are summed with one kernel per frame, instead of
one for each of some sixty tensors. Torch keeps compiled kernels in its cache folder for the next run.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call


class Compiled:
    """Compiled module; call it with the vector of weights and the inputs of the module.

    `weights` gathers the vector once for all frames of a training step. Noise and annealed values must be inputs, and
    must be tensors or records of tensors, because a Python number is compiled in as a constant.
    """

    def __init__(self, module: nn.Module, used: Iterable[nn.Parameter]) -> None:
        self.module, wanted = module, set(used)
        self.parameters = {name: p for name, p in module.named_parameters() if p in wanted}
        # Each setting needs two graphs (first frame, later frames), and many settings may train side by side.
        torch._dynamo.config.recompile_limit = 64
        self.compiled = torch.compile(self.plain, fullgraph=True, dynamic=False, options={"combo_kernels": True})

    def weights(self) -> Tensor:
        """Return all weights that the module uses, as one vector."""
        return torch.cat([parameter.flatten() for parameter in self.parameters.values()])

    def __call__(self, weights: Tensor, *inputs: Any) -> Any:
        return self.compiled(weights, *inputs)

    def plain(self, weights: Tensor, *inputs: Any) -> Any:
        """Run the module with these weights; this is the function that is compiled."""
        parts = weights.split([parameter.numel() for parameter in self.parameters.values()])
        named = {
            name: part.view(parameter.shape)
            for part, (name, parameter) in zip(parts, self.parameters.items(), strict=True)
        }
        return functional_call(self.module, named, inputs)
