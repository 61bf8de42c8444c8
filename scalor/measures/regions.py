"""Zones and lines in the picture, and the JSON file that holds them.

The file is an object with the lists "zones" and "lines", each of which may be missing. Coordinates are pixels of the
video, x to the right and y down:

    {"zones": [{"name": "nest", "polygon": [[10, 10], [90, 10], [50, 80]]},
               {"name": "food", "circle": [200, 120, 30]},
               {"name": "left", "rectangle": [0, 0, 320, 480]}],
     "lines": [{"name": "gate", "from": [320, 480], "to": [320, 0]}]}

A circle is x, y, radius; a rectangle is x0, y0, x1, y1. A line is crossed forward from its left to its right, as seen
by someone who walks from its first point to its second.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from scalor.errors import InputError
from scalor.files import check_is_file

Point = tuple[float, float]


@dataclass(frozen=True)
class Zone:
    """A zone of the picture: a polygon, or a circle. Coordinates are pixels of the video.

    Examples
    --------
    >>> nest = Zone("nest", polygon=((10, 10), (90, 10), (50, 80)))
    >>> nest.contains(np.array([[50.0, 40.0], [10.0, 80.0]])).tolist()
    [True, False]
    >>> food = Zone("food", circle=(200, 120, 30))
    """

    name: str
    polygon: tuple[Point, ...] = ()
    circle: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        if (self.circle is None) == (len(self.polygon) < 3):
            raise InputError(f"zone {self.name!r} needs a polygon of at least three points, or a circle.")
        if self.circle is not None and not self.circle[2] > 0:
            raise InputError(f"zone {self.name!r} has a circle of radius {self.circle[2]:g}: give one above 0.")

    @classmethod
    def rectangle(cls, name: str, x0: float, y0: float, x1: float, y1: float) -> "Zone":
        """Return a rectangular zone."""
        if not (x0 < x1 and y0 < y1):
            raise InputError(f"zone {name!r} has the rectangle {[x0, y0, x1, y1]}: give x0 < x1 and y0 < y1.")
        return cls(name, ((x0, y0), (x1, y0), (x1, y1), (x0, y1)))

    def contains(self, points: Float[np.ndarray, "N 2"]) -> Bool[np.ndarray, " N"]:
        """Return which points lie in the zone. A polygon that crosses itself is filled by the even-odd rule."""
        if self.circle is not None:
            x, y, radius = self.circle
            inside: np.ndarray = np.hypot(points[:, 0] - x, points[:, 1] - y) < radius
            return inside
        inside = np.zeros(len(points), bool)
        px, py = points.T
        for (x0, y0), (x1, y1) in zip(self.polygon, (*self.polygon[1:], self.polygon[0]), strict=True):
            beside = (y0 > py) != (y1 > py)
            inside[beside] ^= px[beside] < x0 + (py[beside] - y0) / (y1 - y0) * (x1 - x0)
        return inside


@dataclass(frozen=True)
class CountingLine:
    """A line between two points, in pixels of the video, to count the objects that cross it.

    Examples
    --------
    From left to right is forward, because the line goes up:

    >>> gate = CountingLine("gate", start=(25, 100), end=(25, 0))
    """

    name: str
    start: Point
    end: Point

    def __post_init__(self) -> None:
        if not 0 < math.dist(self.start, self.end) < math.inf:
            raise InputError(f"line {self.name!r} goes from {self.start} to {self.end}: give two different points.")


@dataclass(frozen=True)
class Regions:
    """Zones and lines of a picture.

    Examples
    --------
    >>> regions = Regions(lines=(CountingLine("gate", (25, 100), (25, 0)),))
    >>> measure(tracks, regions=regions).line_counts["forward"].tolist()
    [1]
    """

    zones: tuple[Zone, ...] = ()
    lines: tuple[CountingLine, ...] = ()

    def __post_init__(self) -> None:
        for kind, names in (("zone", [zone.name for zone in self.zones]), ("line", [line.name for line in self.lines])):
            for name in names:
                if not name.strip() or not name.isprintable():
                    raise InputError(f"a {kind} has the name {name!r}: give every {kind} a name of one line.")
                if names.count(name) > 1:
                    raise InputError(f"two {kind}s have the name {name!r}: give each its own.")


SHAPES = ("polygon", "circle", "rectangle")


def read_regions(path: str | Path) -> Regions:
    """Read zones and lines from a JSON file; see the text of this module for its form.

    Raises
    ------
    InputError
        If the file cannot be read, or holds anything that it should not.

    Examples
    --------
    >>> regions = read_regions("zones.json")
    >>> [zone.name for zone in regions.zones]
    ['ring']
    """
    check_is_file(path, "a JSON file of zones and lines")
    try:
        document = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give a JSON file of zones and lines.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    try:
        return regions_from_dict(document)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def regions_from_dict(document: object) -> Regions:
    """Return the zones and lines of a document with the form of the JSON file."""
    if not isinstance(document, dict):
        raise InputError('give an object with the lists "zones" and "lines".')
    _only(document, ("zones", "lines"), "the file")
    zones, lines = (document.get(name, []) for name in ("zones", "lines"))
    if not isinstance(zones, list) or not isinstance(lines, list):
        raise InputError('"zones" and "lines" must be lists.')
    return Regions(tuple(_zone(one) for one in zones), tuple(_line(one) for one in lines))


def _zone(document: object) -> Zone:
    name, values = _named(document, "zone", SHAPES)
    if len(values) != 1:
        raise InputError(f"zone {name!r} has {len(values)} shapes: give one of {', '.join(SHAPES)}.")
    ((shape, value),) = values.items()
    what = f"{shape} of zone {name!r}"
    if shape == "polygon":
        if not isinstance(value, list):
            raise InputError(f"{what} must be a list of points [x, y].")
        return Zone(name, tuple(_point(point, what) for point in value))
    if shape == "circle":
        x, y, radius = _numbers(value, 3, what)
        return Zone(name, circle=(x, y, radius))
    return Zone.rectangle(name, *_numbers(value, 4, what))


def _line(document: object) -> CountingLine:
    name, values = _named(document, "line", ("from", "to"))
    for end in ("from", "to"):
        if end not in values:
            raise InputError(f"line {name!r} has no {end!r}: give the points 'from' and 'to'.")
    start, end_point = (_point(values[end], f"{end!r} of line {name!r}") for end in ("from", "to"))
    return CountingLine(name, start, end_point)


def _named(document: object, kind: str, fields: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the name and the other fields of a zone or line."""
    if not isinstance(document, dict) or not isinstance(document.get("name"), str):
        raise InputError(f"a {kind} is {document!r}: give an object with a name.")
    values = dict(document)
    name = values.pop("name")
    _only(values, fields, f"{kind} {name!r}")
    return name, values


def _only(document: dict[str, Any], fields: Sequence[str], where: str) -> None:
    for field in document:
        if field not in fields:
            raise InputError(f"{where} has a field {field!r}: it may have {', '.join(fields)}.")


def _point(value: object, what: str) -> Point:
    x, y = _numbers(value, 2, what)
    return x, y


def _numbers(value: object, count: int, what: str) -> list[float]:
    """Return a list of finite numbers."""
    if isinstance(value, list) and len(value) == count:
        numbers = [one for one in value if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(numbers) == count and all(math.isfinite(one) for one in numbers):
            return [float(one) for one in numbers]
    raise InputError(f"{what} holds {value!r}: give {count} finite numbers.")
