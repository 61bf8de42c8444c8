"""Settings: fields of frozen dataclasses, each with a default, a help text and the range of its values.

A record of settings is a dataclass derived from `Settings`. It checks the type and the range of every value when it is
created; `Settings.check` is for conditions that relate several settings. Values from JSON or the command line are
checked in the same way, by `checked`.
"""

import dataclasses
import difflib
import math
import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from scalor.errors import InputError, require

T = TypeVar("T")
Record = TypeVar("Record")
Bound = float | tuple[float | None, ...] | None
"""A bound for all numbers of a setting, one for each place of a tuple, or none."""

LARGEST_INT = 2**63 - 1
"""Largest integer that a setting may have, so that it fits into 64 bits."""


@dataclass(frozen=True)
class Range:
    """The values that a setting may have. The bounds hold for every number in a tuple."""

    ge: Bound = None
    """The numbers are at least this."""
    gt: Bound = None
    """The numbers are above this."""
    le: Bound = None
    """The numbers are at most this."""
    lt: Bound = None
    """The numbers are below this."""
    multiple_of: int | None = None
    also: float | None = None
    """A value that is allowed although it is out of bounds; it usually switches something off."""
    choices: Collection[str] = ()
    """The texts to choose from. None given: any text."""
    shortest: int = 0
    """Smallest number of values in a tuple of any length."""

    def place(self, index: int) -> "Range":
        """Return the range of one place of a tuple."""

        def bound(given: Bound) -> Bound:
            return given[index] if isinstance(given, tuple) else given

        return dataclasses.replace(self, ge=bound(self.ge), gt=bound(self.gt), le=bound(self.le), lt=bound(self.lt))

    def holds(self, value: Any) -> bool:
        """Return whether a number or a text is allowed."""
        if isinstance(value, str):
            return not self.choices or value in self.choices
        if isinstance(value, bool) or value == self.also:
            return True
        compared = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
        bounds = ((compare, getattr(self, name)) for name, compare in compared.items())
        within = all(bound is None or compare(value, bound) for compare, bound in bounds)
        return within and math.isfinite(value) and (self.multiple_of is None or value % self.multiple_of == 0)

    def __str__(self) -> str:
        """Return the range in words, such as "at least 1". It is empty if every finite value is allowed."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if any(isinstance(bound, tuple) for bound in (self.ge, self.gt, self.le, self.lt)):
            return ""
        if self.gt is not None and self.lt is not None:
            words = [f"between {self.gt:,} and {self.lt:,}"]
        else:
            bounds = {"at least": self.ge, "above": self.gt, "at most": self.le, "below": self.lt}
            words = [f"{word} {bound:,}" for word, bound in bounds.items() if bound is not None]
            words = ["positive" if text == "above 0" else text for text in words]
        if self.multiple_of is not None:
            words.append(f"a multiple of {self.multiple_of}")
        return (f"{self.also:,}, or " if self.also is not None else "") + " and ".join(words)


def setting(
    default: T,
    help: str,
    *,
    ge: Bound = None,
    gt: Bound = None,
    le: Bound = None,
    lt: Bound = None,
    multiple_of: int | None = None,
    also: float | None = None,
    choices: Collection[str] = (),
    shortest: int = 0,
) -> T:
    """Return a dataclass field with a default, the help text of the command line, and a range (see `Range`)."""
    allowed = Range(ge, gt, le, lt, multiple_of, also, choices, shortest)
    field: T = dataclasses.field(default=default, metadata={"help": help, "range": allowed})
    return field


@dataclass(frozen=True)
class Settings:
    """Base class of the records of settings."""

    section: ClassVar[str] = "model"
    """Name of the record in a `Config` and on the command line."""

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name, value in checked(type(self), values, self.section).items():
            object.__setattr__(self, name, value)
        self.check()

    def check(self) -> None:
        """Check the settings that depend on each other. Raise InputError if they do not fit together."""


def checked(record: type[Any], values: dict[str, Any], section: str) -> dict[str, Any]:
    """Return values converted to the types of a record's settings. Raise InputError if a type or a range is wrong.

    Parameters
    ----------
    record : type
        The dataclass that the settings belong to.
    values : dict
        Values by the name of the setting, as they are or as JSON has them (lists for tuples, whole numbers for floats).
    section : str
        Name of the record in error messages, such as `train`.
    """
    hints, fields = get_type_hints(record), {field.name: field for field in dataclasses.fields(record)}
    found = {}
    for name, given in values.items():
        value = convert(hints[name], given, f"{section}.{name}")
        check_range(fields[name].metadata.get("range", Range()), hints[name], value, f"{section}.{name}", value)
        found[name] = value
    return found


def fields_of(config: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return every setting of a config by its dotted name, such as `train.batch`."""
    return {
        f"{section.name}.{field.name}": field
        for section in dataclasses.fields(config)
        for field in dataclasses.fields(getattr(config, section.name))
    }


def with_values(config: Record, values: Mapping[str, object]) -> Record:
    """Return a config with other values of some settings, by their dotted names.

    All values change at once, so settings that depend on each other (frame and grid) can change together. Raise
    InputError for unknown names and for values of a wrong type or out of range.
    """
    known = fields_of(config)
    sections: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}" if near else "`scalor train --help-all` lists them all"
            raise InputError(f"setting is {name!r}: there is no such setting; {hint}.")
        section, field = name.split(".")
        sections.setdefault(section, {})[field] = value
    changed = {}
    for section, given in sections.items():
        record = getattr(config, section)
        changed[section] = dataclasses.replace(record, **checked(type(record), given, section))
    return dataclasses.replace(config, **changed)  # type: ignore[type-var]


def check_range(allowed: Range, hint: Any, value: Any, name: str, whole: Any) -> None:
    """Raise InputError if a value, or a number in it, is out of range. `whole` is the value to show."""
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        any_length = inner[-1] is Ellipsis
        require(len(value) >= allowed.shortest, name, whole, f"give at least {allowed.shortest} values")
        for index, item in enumerate(value):
            kind, limits = (inner[0], allowed) if any_length else (inner[index], allowed.place(index))
            check_range(dataclasses.replace(limits, shortest=0), kind, item, name, whole)
        return
    unbounded = hint is float and allowed.le is None and allowed.lt is None
    words = " and ".join(filter(None, [str(allowed), "finite" if unbounded else ""]))
    require(allowed.holds(value), name, whole, f"{'it' if value is whole else repr(value)} must be {words}")


def convert(hint: Any, value: Any, name: str) -> Any:
    """Return a plain value (from Python, JSON or the command line) converted to the type of a setting."""
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        require(isinstance(value, list | tuple), name, value, "give a list")
        if inner[-1] is Ellipsis:
            inner = (inner[0],) * len(value)
        require(len(inner) == len(value), name, value, f"give {len(inner)} values")
        return tuple(convert(kind, item, name) for kind, item in zip(inner, value, strict=True))
    if hint in (int, float) and not isinstance(value, bool) and isinstance(value, Integral):
        value = int(value)  # also NumPy's integers
        require(abs(value) <= LARGEST_INT, name, value, "it must fit into 64 bits")
    if hint is float and not isinstance(value, bool) and isinstance(value, Real):
        return float(value)
    require(type(value) is hint, name, value, f"give {plain(hint)}")
    return value


def plain(hint: Any) -> str:
    """Return the name of a type in plain English."""
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}.get(hint, str(hint))


def build_record(record: type[Any], values: Any, path: str) -> Any:
    """Return a record of settings from a table of plain values. `path` names the record in error messages."""
    require(isinstance(values, dict), path, values, f"a {record.__name__} is a table of fields")
    unknown = sorted(set(values) - {field.name for field in dataclasses.fields(record)})
    require(not unknown, path, unknown, "these fields are unknown to this version")
    return record(**checked(record, values, path))
