"""Every parser refuses what fuzzing found, and damage of what it accepts, by an InputError alone."""

from pathlib import Path
from random import Random

import pytest

from benchmarks.fuzz import by_lines
from benchmarks.fuzz.parsers import Parser, parsers, try_one
from benchmarks.torture import damage
from scalor.errors import InputError

INPUTS = Path(__file__).parent / "inputs"
FOUND = sorted(path for path in INPUTS.rglob("*") if path.is_file())
DAMAGES = 25


def parser_of(path: Path) -> Parser:
    return parsers()[path.parent.name.replace("-", " ")]


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_inputs_that_were_once_mistakes_are_refused_or_read(path: Path) -> None:
    assert try_one(parser_of(path), path.read_bytes()) is None


@pytest.mark.parametrize("name", parsers())
def test_what_is_fuzzed_is_accepted_and_damage_of_it_is_no_traceback(name: str) -> None:
    parser = parsers()[name]
    for seed, data in enumerate(parser.seeds):
        parser.parse(data)
        for number in range(DAMAGES):
            random = Random(f"{seed} {number}")
            damaged = damage.pick(random)(data, random)
            assert try_one(parser, damaged) is None, damaged


def test_a_mistake_is_noticed() -> None:
    def parse(data: bytes) -> object:
        if data == b"bad":
            raise InputError("bad")
        return {b"good": 1}[data]

    parser = Parser(parse, ())
    assert try_one(parser, b"bad") is None
    assert isinstance(try_one(parser, b"worse"), KeyError)


def three_letters(data: bytes) -> None:
    """A parser with a mistake that chance alone would hardly ever find."""
    if data[:1] != b"F":
        return
    if data[1:2] != b"U":
        return
    if data[2:3] == b"Z":
        found.append(data)


found: list[bytes] = []


def test_without_atheris_inputs_that_reach_new_lines_are_changed_on() -> None:
    found.clear()
    tried = by_lines.fuzz(three_letters, [b"abc"], 3.0, 0, 16, 1.0, Path(__file__).parent)
    assert tried > 1_000
    assert found
