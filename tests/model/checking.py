"""The run-time type checker that `tests/conftest.py` hooks into `scalor.model`."""

from collections.abc import Callable
from typing import Any, runtime_checkable

from beartype import beartype


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """beartype, told how to recognise an `Estimator`: it cannot check a protocol that is not `runtime_checkable`."""
    from scalor.nn.distributions import Estimator

    runtime_checkable(Estimator)
    return beartype(function)
