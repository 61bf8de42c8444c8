"""Reports as JSON."""

import json
import math
from typing import Any

Report = dict[str, Any] | list[dict[str, Any]]


def print_json(document: Report) -> None:
    print(as_json(document), end="")


def as_json(document: Report) -> str:
    """Return a report as one JSON document. Values that could not be measured (not finite) become null."""
    return json.dumps(without_nan(document), indent=2) + "\n"


def without_nan(value: Any) -> Any:
    """Return a copy in which NaN and infinite numbers are None."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
