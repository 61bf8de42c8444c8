"""Every parser refuses what fuzzing found, and damage of what it accepts, by an InputError alone."""

from pathlib import Path
from random import Random

import pytest

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
