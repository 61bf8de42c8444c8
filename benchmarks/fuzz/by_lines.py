"""Coverage-guided fuzzing where atheris does not install: changed inputs that reach new pairs of lines are changed on.

Slower than atheris, which counts branches in compiled code, but needs nothing beyond Python.
"""

import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from benchmarks.torture import damage

Pair = tuple[str, int, int]
"""A file, and two lines of it that ran one after the other."""
TOKENS = tuple(
    word.encode()
    for word in (
        *("0", "-1", "1e999", "nan", "null", "true", '""', "[]", "{}", ",", "\n", '"', "\\", "\0", "\ud7ff", "9" * 25),
        *("\x1b[", "../", "--", "=", ".", "1e308", "0x1", "\u0663", "[[[[", ":", "-", "x"),
    )
)
"""Bytes that mean something to some parser."""


class TooSlow(BaseException):
    """A parser took longer than it may. No guard around a decoder takes it for an error of the input."""


def fuzz(
    one: Callable[[bytes], None],
    seeds: Sequence[bytes],
    seconds: float,
    seed: int,
    longest: int,
    slowest_s: float,
    files: Path,
) -> int:
    """Try changed inputs for some seconds. Return how many were tried.

    `one` tries an input. Lines are watched in the files below the folder `files`.
    """
    random = Random(seed)
    known = list(seeds)
    seen: set[Pair] = set()
    until, tried = time.monotonic() + seconds, 0

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {slowest_s} s")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for data in seeds:
            seen |= pairs_of(one, data, files, slowest_s)
        while time.monotonic() < until:
            data = changed(random.choice(known), known, random)[:longest]
            tried += 1
            found = pairs_of(one, data, files, slowest_s)
            if not found <= seen:
                seen |= found
                known.append(data)
    finally:
        signal.signal(signal.SIGALRM, before)
    return tried


def changed(data: bytes, known: Sequence[bytes], random: Random) -> bytes:
    """Return an input changed in one to four places."""
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.randrange(len(data) + 1)
        match random.randrange(4):
            case 0 if data:
                data = damage.pick(random)(data, random) if len(data) > 1 else b""
            case 1:
                data = data[:place] + random.choice(TOKENS) + data[place + random.choice((0, 0, 1, 3)) :]
            case 2:
                data = data[:place] + random.choice(known)[random.randrange(8) :]
            case _:
                data = data[:place] + random.randbytes(1) + data[place + 1 :]
    return data


def pairs_of(one: Callable[[bytes], None], data: bytes, files: Path, slowest_s: float) -> set[Pair]:
    """Try an input. Return the pairs of lines that ran."""
    found: set[Pair] = set()
    below = str(files)
    last: dict[FrameType, int] = {}

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            found.add((frame.f_code.co_filename, last.get(frame, 0), frame.f_lineno))
            last[frame] = frame.f_lineno
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(below) else None

    signal.setitimer(signal.ITIMER_REAL, slowest_s)
    sys.settrace(call)
    try:
        one(data)
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return found
