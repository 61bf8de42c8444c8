"""A module, compiled for the GPU.

Its weights travel as one vector: over T frames their gradients are then added up with one kernel a frame, where
some sixty tensors would take one each. Compiled kernels are kept in torch's cache folder for the next run.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call


class Compiled:
    """Callable: what a module does, with the weights that `weights()` gathers once for all frames of a step.

    The module takes tensors and records of them, so that all that is drawn or annealed comes from outside; a number is
    compiled in.
    """

    def __init__(self, module: nn.Module, used: Iterable[nn.Parameter]) -> None:
        self.module, wanted = module, set(used)
        self.parameters = {name: p for name, p in module.named_parameters() if p in wanted}
        # Two graphs a setting, the first frame's and the later ones'; many settings may train side by side.
        torch._dynamo.config.recompile_limit = 64
        self.compiled = torch.compile(self.plain, fullgraph=True, dynamic=False, options={"combo_kernels": True})

    def weights(self) -> Tensor:
        return torch.cat([parameter.flatten() for parameter in self.parameters.values()])

    def __call__(self, weights: Tensor, *inputs: Any) -> Any:
        return self.compiled(weights, *inputs)

    def plain(self, weights: Tensor, *inputs: Any) -> Any:
        """What is compiled."""
        parts = weights.split([parameter.numel() for parameter in self.parameters.values()])
        named = {
            name: part.view(parameter.shape)
            for part, (name, parameter) in zip(parts, self.parameters.items(), strict=True)
        }
        return functional_call(self.module, named, inputs)
