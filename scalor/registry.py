"""Registries of presets, systems and data sets, which other packages can extend without a fork.

A package declares what it adds as entry points in its pyproject.toml; nothing is imported until it is used:

    [project.entry-points."scalor.presets"]
    dots-tiny = "dots.presets:dots_tiny"        # a function that returns a Config

    [project.entry-points."scalor.scenes"]
    dots = "dots.data:Dots"                     # a class of scenes, for scene.kind dots

    [project.entry-points."scalor.systems"]
    small-vae = "dots.models:SMALL_VAE"         # a scalor.systems.System

In a session, `scalor.register_preset`, `scalor.register_scenes` and `scalor.register_system` do the same.
"""

from collections.abc import Callable, Collection, Iterator, MutableMapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from scalor.errors import InputError

T = TypeVar("T")


class Registry(MutableMapping[str, T], Generic[T]):
    """A dictionary of what this package defines, what a session registers, and what installed packages offer.

    Parameters
    ----------
    group : str
        Group of the entry points, such as `scalor.presets`.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self._known: dict[str, T] = {}

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """Entry points by name. If two packages offer one name, the first one counts."""
        return {point.name: point for point in reversed(list(entry_points(group=self.group)))}

    def add(self, name: str, value: T) -> T:
        """Register a value under a new name, and return it. Raise InputError if the name is taken."""
        if name in self:
            raise InputError(f"name is {name!r}: {self.group} has one of that name already; choose another.")
        self._known[name] = value
        return value

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            point = self._installed[name]
            try:
                self._known[name] = point.load()
            except Exception as error:  # whatever another package does when it is imported
                package = point.dist.name if point.dist else point.value
                raise InputError(
                    f"{name!r} of {self.group} cannot be loaded from the package {package} "
                    f"({type(error).__name__}: {error}): repair or uninstall it."
                ) from error
        return self._known[name]

    def __setitem__(self, name: str, value: T) -> None:
        self._known[name] = value

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._installed

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._known, *self._installed]))

    def __len__(self) -> int:
        return len(list(iter(self)))


SCENES: Registry[Callable[..., Any]] = Registry("scalor.scenes")
"""Classes of scenes that other packages or a session add, by kind.

A class is called with the `SceneConfig`, a seed, a split ("train" or "test") and a device. Its method
`clips(index, length)` returns the `Clip` of the given indices (a tensor), always the same one for the same index.
"""


class SceneKinds(Collection[str]):
    """The kinds of scenes: those of this package and those in `SCENES`."""

    built_in = ("shapes", "mnist", "balls", "composed", "replay", "station", "footage", "video")

    def __contains__(self, kind: object) -> bool:
        return kind in self.built_in or kind in SCENES

    def __iter__(self) -> Iterator[str]:
        return iter([*self.built_in, *SCENES])

    def __len__(self) -> int:
        return len(self.built_in) + len(SCENES)


def register_scenes(kind: str) -> Callable[[T], T]:
    """Register a class of scenes for this session, for `scene.kind`; use it as a decorator.

    Parameters
    ----------
    kind : str
        The new value of `scene.kind`.

    Examples
    --------
    >>> @scalor.register_scenes("dots")
    ... class Dots:
    ...     def __init__(self, config, seed, split, device): ...
    ...     def clips(self, index, length): ...
    """
    if kind in SceneKinds():
        raise InputError(f"kind is {kind!r}: there are scenes of that kind already; choose another.")

    def register(scenes: T) -> T:
        SCENES[kind] = scenes  # type: ignore[assignment]
        return scenes

    return register
