"""The run-time type checker that `tests/conftest.py` hooks into the package."""

import inspect
import typing
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from beartype import BeartypeConf, beartype
from torch.utils import _contextlib

# `torch.inference_mode` must see that a function is a generator, through the wrapper of the checker.
_contextlib.inspect = SimpleNamespace(  # type: ignore[attr-defined, assignment]
    isclass=inspect.isclass, isgeneratorfunction=lambda f: inspect.isgeneratorfunction(inspect.unwrap(f))
)
_init_subclass = typing.Protocol.__init_subclass__.__func__  # type: ignore[attr-defined]


def _make_checkable(cls: type, *args: Any, **kwargs: Any) -> None:
    """Beartype cannot check a protocol that is not `runtime_checkable`, so all are made so as they are defined."""
    _init_subclass(cls, *args, **kwargs)
    if cls.__dict__.get("_is_protocol"):
        cls._is_runtime_protocol = True  # type: ignore[attr-defined]


typing.Protocol.__init_subclass__ = classmethod(_make_checkable)  # type: ignore[assignment]


CONF = BeartypeConf(is_pep484_tower=True)
"""As for mypy, an int is also a float."""


CHECK_THEMSELVES = ("Selection.__init__", "Observation.__init__", "VideoWriter.write")
"""Functions of users, who may give anything; they say in a sentence what is wrong."""


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with checks of its arguments and its result."""
    if getattr(function, "__qualname__", "") in CHECK_THEMSELVES:
        return function
    hints = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: Any if hint is typing.Self else hint for name, hint in hints.items()}
    return beartype(function, conf=CONF)  # type: ignore[call-overload, no-any-return]
