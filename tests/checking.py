"""The run-time check of shapes that `tests/conftest.py` puts into the package.

Types without a shape are mypy's to check.
"""

import functools
import inspect
import typing
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Any

import jaxtyping
import torch
from beartype import BeartypeConf, beartype
from beartype.door import die_if_unbearable
from torch.utils import _contextlib

DIMENSIONS = jaxtyping.jaxtyped
CONF = BeartypeConf(is_pep484_tower=True)
"""As for mypy, an int is also a float."""

CHECK_THEMSELVES = (
    "ClassicalTracker.__init__",
    "Observation.__init__",
    "Selection.__init__",
    "Tracks.__init__",
    "VideoWriter.write",
    "overlay",
)
"""Functions of users, who may give anything: they say in a sentence what is wrong with their arguments."""

CALLS = 20
"""Calls of a function that are checked in one test. A training has thousands, all with the same shapes."""

seen: Counter[Callable[..., Any]] = Counter()
"""Calls of every function in this test so far, up to `CALLS`."""


def check_shapes(packages: Sequence[str]) -> None:
    """Have every function and record of these packages checked, from their import on.

    `jaxtyping.jaxtyped`, which the hook would use, takes several times as long for a call.
    """
    jaxtyping.jaxtyped = lambda typechecker: checked  # type: ignore[assignment]
    jaxtyping.install_import_hook(packages, "tests.checking.checked")
    # `torch.inference_mode` must see that a function is a generator, through the wrapper.
    _contextlib.inspect = SimpleNamespace(  # type: ignore[attr-defined, assignment]
        isclass=inspect.isclass, isgeneratorfunction=lambda f: inspect.isgeneratorfunction(inspect.unwrap(f))
    )


def checked(defined: Any) -> Any:
    """Return a function, or the class of a record, with checks of all shapes that its annotations name."""
    if inspect.isclass(defined):
        if is_dataclass(defined):
            type.__setattr__(defined, "__init__", checked(defined.__init__))
        return defined
    hints = {name: hint if names_shapes(hint) else Any for name, hint in defined.__annotations__.items()}
    if defined.__qualname__ in CHECK_THEMSELVES:
        hints = {"return": hints["return"]}
    if all(hint is Any for hint in hints.values()):
        return defined
    if inspect.isgeneratorfunction(defined):
        return checked_before_the_first_item(defined, hints)
    defined.__annotations__ = hints
    with_checks: Callable[..., Any] = beartype(conf=CONF)(defined)

    @functools.wraps(defined)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():  # the compiler cannot see through the checks
            return defined(*args, **kwargs)
        if seen[defined] == CALLS:
            return defined(*args, **kwargs)
        seen[defined] += 1
        with DIMENSIONS("context"):  # in which a name of a dimension has one size
            return with_checks(*args, **kwargs)

    return call


def checked_before_the_first_item(generator: Callable[..., Any], hints: dict[str, Any]) -> Callable[..., Any]:
    """Return the generator with checks of its arguments.

    Its items are not checked: they would be among the dimensions of whoever asks for them.
    """
    signature = inspect.signature(generator)

    @functools.wraps(generator)
    def call(*args: Any, **kwargs: Any) -> Any:
        with DIMENSIONS("context"):
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                die_if_unbearable(value, hints.get(name, Any), conf=CONF)
        return generator(*args, **kwargs)

    return call


def names_shapes(hint: Any) -> bool:
    """Whether an annotation, or a part of it, names the shape of an array."""
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(names_shapes(part) for part in typing.get_args(hint))
