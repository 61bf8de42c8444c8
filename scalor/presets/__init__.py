"""Presets: one function per experiment, each of which returns a whole `Config`.

On the command line (`scalor train shapes-md`) a preset has the name of its function, with dashes for underscores.
Importing this package registers all presets, in the order in which `scalor presets` lists them.
"""

from scalor.presets import shapes_and_digits, station, bouncing_balls, other_systems, universal  # noqa: F401, I001 (the order of the list)
from scalor.presets.preset_registry import PRESETS, build, describe, get_preset, register_preset

__all__ = ["PRESETS", "build", "describe", "get_preset", "register_preset"]
