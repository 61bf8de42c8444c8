"""Dotted overrides of the settings of a preset: `--model.slots 48`, `--train.lengths '[[0, 2], [2000, 4]]'`.

Values are parsed as JSON, otherwise as a pair such as `48x80`, otherwise as a string. Then they are checked against the
type and the range of the setting (`scalor.settings`).
"""

import dataclasses
import difflib
import json
from typing import Any

from scalor.config import Config
from scalor.errors import InputError
from scalor.settings import fields_of, with_values


def apply(config: Config, words: list[str]) -> Config:
    """Return the config with overrides given as `--name value` or `--name=value`."""
    known = fields_of(config)
    given = pairs(words)
    for name, _ in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            hint = f"did you mean --{near[0]}" if near else "`scalor train --help-all` lists them all"
            raise InputError(f"override is --{name}: there is no such setting; {hint}.")
    return with_values(config, {name: read(text) for name, text in given})


def settings(words: list[str]) -> dict[str, Any]:
    """Return the settings and values of overrides, for `scalor.fit`."""
    return {name: read(text) for name, text in pairs(words)}


def pairs(words: list[str]) -> list[tuple[str, str]]:
    """Return the names and values of overrides as text."""
    found = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise InputError(f"override is {word!r}: overrides look like --model.slots 48.")
        name, equals, text = word[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InputError(f"override --{name} has no value: write --{name} VALUE.")
            text = rest.pop(0)
        found.append((name, text))
    return found


def read(text: str) -> Any:
    """Return the value of a JSON text, the pair of a text such as `48x80`, or any other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or lists nested too deeply
        try:
            height, width = (float(part) if "." in part else int(part) for part in text.split("x"))
        except ValueError:
            return text
        return [height, width]


def with_test_scenes(config: Config, other: Config) -> Config:
    """Return the config with the test scenes of another one."""
    return dataclasses.replace(config, test=other.test)
