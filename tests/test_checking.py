"""While the tests run, the shapes that the package promises are checked in all of it."""

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import torch
from beartype.roar import BeartypeCallHintParamViolation, BeartypeCallHintReturnViolation, BeartypeDoorHintViolation
from jaxtyping import Float

import scalor
from scalor.model.geometry import size_within
from tests.checking import CALLS, CHECK_THEMSELVES, checked, names_shapes


def functions(module: Any) -> Iterator[FunctionType]:
    """Functions and methods that a module defines."""
    for _, one in inspect.getmembers(module, lambda one: getattr(one, "__module__", None) == module.__name__):
        if inspect.isclass(one):
            yield from (method for method in vars(one).values() if inspect.isfunction(method))
        elif inspect.isfunction(one):
            yield one


@pytest.mark.skipif(torch.cuda.is_available(), reason="where the time step is compiled, nothing is checked")
def test_every_function_that_names_shapes_is_checked() -> None:
    checks = 0
    for found in pkgutil.walk_packages(scalor.__path__, "scalor."):
        if found.name == "scalor.__main__":
            continue
        for function in functions(import_module(found.name)):
            named = any(map(names_shapes, inspect.get_annotations(function).values()))
            if named and function.__qualname__ not in CHECK_THEMSELVES:
                assert hasattr(function, "__wrapped__"), (found.name, function.__qualname__)
                checks += 1
    assert checks > 400
    with pytest.raises(BeartypeCallHintParamViolation):
        size_within(torch.rand(2, 5, 3), torch.rand(2), 0.5)


@checked
def halves(rows: Float[np.ndarray, "N 4"], weights: Float[np.ndarray, " N"]) -> Float[np.ndarray, "N 2"]:
    return rows[:, : int(weights.sum())]


@checked
def in_turn(rows: Float[np.ndarray, "N 4"]) -> Iterator[Float[np.ndarray, " 4"]]:
    yield from rows


@checked
@dataclass
class Record:
    rows: Float[np.ndarray, "N 4"]
    weights: Float[np.ndarray, " N"]


def test_arguments_and_results_agree_in_every_named_dimension() -> None:
    rows = np.zeros((3, 4))
    assert halves(rows, np.full(3, 2 / 3)).shape == (3, 2)
    assert len(list(in_turn(rows))) == len(Record(rows, np.zeros(3)).rows)
    for call in (halves, Record):
        with pytest.raises(BeartypeCallHintParamViolation, match="dimension N is 2"):
            call(rows, np.zeros(2))
        with pytest.raises(BeartypeCallHintParamViolation):
            call(rows.astype(int), np.zeros(3))
    with pytest.raises(BeartypeCallHintReturnViolation):
        halves(rows, np.ones(3))
    with pytest.raises(BeartypeDoorHintViolation):
        next(in_turn(rows[:, :3]))


def test_each_call_has_dimensions_of_its_own() -> None:
    @checked
    def both(rows: Float[np.ndarray, "N 4"]) -> int:
        return len(halves(rows[:2], np.ones(2))) + len(list(in_turn(np.zeros((5, 4)))))

    assert both(np.zeros((3, 4))) == 7


def test_the_first_calls_of_every_test_are_checked() -> None:
    for _ in range(CALLS):
        with pytest.raises(BeartypeCallHintParamViolation):
            halves(np.zeros((3, 3)), np.zeros(3))
    assert halves(np.zeros((3, 3)), np.zeros(3)).shape == (3, 0)
