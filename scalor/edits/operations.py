"""The operations of the edit log as typed records, and their form in JSON.

Ids count from 1 and frames from 0, as in `tracks.csv`.
"""

import math
import types
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias, get_args, get_type_hints

from scalor.errors import InputError

Box: TypeAlias = tuple[float, float, float, float]
LONGEST_NAME = 200


@dataclass(frozen=True)
class Swap:
    """Exchange two ids from a frame on."""

    a: int
    b: int
    frame: int


@dataclass(frozen=True)
class Merge:
    """Join two tracks that share no frame: `other` becomes `keep`."""

    keep: int
    other: int


@dataclass(frozen=True)
class Split:
    """Give a track a new id from a frame on. Without `new`, the next free id."""

    id: int
    frame: int
    new: int | None = None


@dataclass(frozen=True)
class Delete:
    """Delete a track, or its boxes from frame `first` to frame `last` (both included)."""

    id: int
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class Name:
    """Name a track. An empty name removes the name."""

    id: int
    name: str


@dataclass(frozen=True)
class Add:
    """Add a missing box x0, y0, x1, y1 in pixels to a tracked frame.

    Without `id`, it begins a track with the next free id.
    """

    frame: int
    box: Box
    id: int | None = None


@dataclass(frozen=True)
class Undo:
    """Take back the last edit in effect."""


@dataclass(frozen=True)
class Redo:
    """Repeat the last edit taken back."""


Edit: TypeAlias = Swap | Merge | Split | Delete | Name | Add
Step: TypeAlias = Edit | Undo | Redo
STEPS: dict[str, type[Step]] = {kind.__name__.lower(): kind for kind in get_args(Step)}
"""Record of each operation, by its name in the log."""


def step_to_dict(step: Step) -> dict[str, Any]:
    """Return a step as a dictionary for JSON.

    Examples
    --------
    >>> step_to_dict(Swap(3, 5, frame=120))
    {'op': 'swap', 'a': 3, 'b': 5, 'frame': 120}
    """
    values = {name: value for name, value in asdict(step).items() if value is not None}
    return {"op": type(step).__name__.lower(), **values}


def step_from_dict(document: object) -> Step:
    """Return the step of a dictionary that `step_to_dict` returned.

    Raise InputError for an unknown operation, a missing or unknown field, or a value that is not allowed.

    Examples
    --------
    >>> step_from_dict({"op": "merge", "keep": 3, "other": 9})
    Merge(keep=3, other=9)
    """
    if not isinstance(document, dict):
        raise InputError(f"an edit is {document!r}: give an object such as {{'op': 'swap', 'a': 3, 'b': 5, ...}}.")
    values = dict(document)
    op = values.pop("op", None)
    if not isinstance(op, str) or op not in STEPS:
        raise InputError(f"op is {op!r}: give one of {', '.join(STEPS)}.")
    kind = STEPS[op]
    hints = get_type_hints(kind)
    for name in values:
        if name not in hints:
            raise InputError(f"{op} has no field {name!r}: it has {', '.join(hints) or 'none'}.")
    optional = {field.name for field in fields(kind) if field.default is None}
    given = {}
    for name, hint in hints.items():
        value = values.get(name)
        if value is None and name in optional:
            continue
        given[name] = _checked(op, name, value, hint)
    step = kind(**given)
    check_step(step)
    return step


def _checked(op: str, name: str, value: object, hint: Any) -> Any:
    """Return a JSON value as the type of its field."""
    wanted = get_args(hint)[0] if isinstance(hint, types.UnionType) else hint
    if wanted is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if wanted is str and isinstance(value, str):
        return value
    if wanted is not int and wanted is not str and isinstance(value, list | tuple) and len(value) == 4:
        return tuple(_number(op, name, side) for side in value)
    kinds = {int: "a whole number", str: "a text"}
    raise InputError(f"{name} of {op} is {value!r}: give {kinds.get(wanted, 'four numbers x0, y0, x1, y1')}.")


def _number(op: str, name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise InputError(f"{name} of {op} holds {value!r}: give four finite numbers x0, y0, x1, y1.")


def check_step(step: Step) -> None:
    """Raise InputError for values that no tracks could make valid."""
    op = type(step).__name__.lower()
    for name, value in asdict(step).items():
        if name in ("a", "b", "id", "keep", "other", "new") and value is not None and value < 1:
            raise InputError(f"{name} of {op} is {value}: ids count from 1.")
        if name in ("frame", "first", "last") and value is not None and value < 0:
            raise InputError(f"{name} of {op} is {value}: frames count from 0.")
    if isinstance(step, Swap) and step.a == step.b:
        raise InputError(f"swap names the id {step.a} twice: give two ids.")
    if isinstance(step, Merge) and step.keep == step.other:
        raise InputError(f"merge names the id {step.keep} twice: give two ids.")
    if isinstance(step, Delete) and step.first is not None and step.last is not None and step.last < step.first:
        raise InputError(f"delete goes from frame {step.first} to {step.last}: give the first frame first.")
    if isinstance(step, Name) and (len(step.name) > LONGEST_NAME or not step.name.isprintable()):
        raise InputError(f"name of track {step.id} must be one line of at most {LONGEST_NAME} characters.")
    if isinstance(step, Add):
        x0, y0, x1, y1 = step.box
        if not (math.isfinite(sum(step.box)) and x0 < x1 and y0 < y1):
            raise InputError(f"box of add is {list(step.box)}: give x0, y0, x1, y1 with x0 < x1 and y0 < y1.")


def describe(step: Step) -> str:
    """Return a step as a short text.

    Examples
    --------
    >>> describe(Swap(3, 5, frame=120))
    'swap 3 and 5 from frame 120'
    """
    match step:
        case Swap(a, b, frame):
            return f"swap {a} and {b} from frame {frame}"
        case Merge(keep, other):
            return f"merge {other} into {keep}"
        case Split(number, frame, new):
            return f"split {number} from frame {frame}" + ("" if new is None else f" as {new}")
        case Delete(number, first, last):
            since = "" if first is None else f" from frame {first}"
            return f"delete {number}{since}" + ("" if last is None else f" to frame {last}")
        case Name(number, name):
            return f"name {number} {name!r}"
        case Add(frame, box, number):
            place = ", ".join(f"{side:g}" for side in box)
            return f"add a box ({place}) at frame {frame}" + ("" if number is None else f" to {number}")
    return type(step).__name__.lower()
