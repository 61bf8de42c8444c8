"""Every test of the kernels runs on the GPU where there is one. Elsewhere Triton's interpreter runs on the CPU."""

from importlib.util import find_spec

import pytest
import torch


def interpret() -> None:
    """Switch Triton to its interpreter, whoever imported it before."""
    import triton.language as tl
    from triton import knobs
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    knobs.runtime.interpret = True
    for room in (tl, tl.standard):
        for name, function in list(vars(room).items()):
            if isinstance(function, JITFunction):
                setattr(room, name, InterpretedFunction(function.fn))


if find_spec("triton") is not None and not torch.cuda.is_available():
    interpret()


@pytest.fixture
def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
