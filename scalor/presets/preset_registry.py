"""The registry of presets: functions that return a whole `Config`, by name."""

import difflib
from collections.abc import Callable
from typing import Any

from scalor import systems
from scalor.config import Config
from scalor.errors import InputError
from scalor.nn.interface import Model
from scalor.registry import Registry

PRESETS: Registry[Callable[[], Config[Any]]] = Registry("scalor.presets")
"""All presets by name, those of installed packages included."""


def register_preset(make: Callable[[], Config[Any]]) -> Callable[[], Config[Any]]:
    """Register a preset under the name of its function, with dashes for underscores; use it as a decorator.

    Parameters
    ----------
    make : callable
        A function without parameters that returns a `Config`. `scalor presets` prints the first line of its docstring.

    Examples
    --------
    >>> @scalor.register_preset
    ... def shapes_few():
    ...     "Fewer shapes."
    ...     return replace(scalor.get_preset("shapes-md"), ...)
    """
    return PRESETS.add(make.__name__.replace("_", "-"), make)


def get_preset(name: str) -> Config:
    """Return the config of a preset.

    Parameters
    ----------
    name : str
        The name of the preset, such as `shapes-md`. `scalor presets` lists all of them.

    Returns
    -------
    Config
        The settings of the model, the training scenes, the test scenes and the training.

    Raises
    ------
    InputError
        If there is no such preset.

    Examples
    --------
    >>> config = scalor.get_preset("shapes-md")
    >>> config.model.slots
    32
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}" if near else "`scalor presets` lists them all"
        raise InputError(f"preset is {name!r}: there is no such preset; {hint}.")
    return PRESETS[name]()


def build(preset: str) -> Model:
    """Return an untrained model with the settings of a preset.

    Parameters
    ----------
    preset : str
        The name of the preset, such as `shapes-md`. `scalor presets` lists all of them.

    Returns
    -------
    Model
        A model with random weights: a `SCALOR`, or a model of the system that the preset is for.

    Raises
    ------
    InputError
        If there is no such preset.

    Examples
    --------
    >>> model = scalor.build("shapes-tiny")
    >>> model.config.slots
    10
    """
    config = get_preset(preset)
    model = systems.build(config.model)
    model.run = config
    return model


def describe(name: str) -> str:
    """Return the first line of a preset's docstring."""
    return (PRESETS[name].__doc__ or "no description").strip().splitlines()[0]
