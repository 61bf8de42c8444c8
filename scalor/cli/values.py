"""Values of options: functions that read one from text, or say what it must be."""

import argparse
import math

from scalor.errors import shown

LARGEST_COUNT = 10**9
"""Largest number of frames, slots, clips or steps, and largest id."""
LARGEST_INT = 2**63 - 1
"""Largest seed."""
LONGEST_FIT = 10_000
"""Longest fit, minutes: about a week."""
LARGEST_SCALE = 8
"""Largest factor by which `fit --scratch` enlarges a video."""


def positive(text: str) -> int:
    """Return a whole number of at least 1."""
    return whole(text, 1, LARGEST_COUNT)


def natural(text: str) -> int:
    """Return a whole number of at least 0."""
    return whole(text, 0, LARGEST_INT)


def whole(text: str, least: int, most: int) -> int:
    """Return a whole number in a range."""
    short = text.isascii() and text.isdigit() and len(text.lstrip("0")) <= len(str(most))
    if not short or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(
            f"{shown(text)} must be a whole number of at least {least} and at most {most:,}"
        )
    return int(text)


def scale(text: str) -> float:
    """Return a factor by which a video is scaled."""
    value = number(text)
    if not 0 < value <= LARGEST_SCALE:
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0 and at most {LARGEST_SCALE}")
    return value


def minutes(text: str) -> float:
    """Return a time in minutes."""
    value = number(text)
    if not 0 < value <= LONGEST_FIT:
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0 and at most {LONGEST_FIT}")
    return value


def probability(text: str) -> float:
    """Return a number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number between 0 and 1")
    return value


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number") from None


def duration(text: str) -> float:
    """Return a time in seconds, above 0."""
    value = number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of seconds above 0")
    return value


def height_and_width(text: str) -> tuple[float, float]:
    """Return the height and width of a text such as `9x9`."""
    try:
        height, width = map(float, text.split("x"))
    except ValueError:
        height = width = math.nan
    if not (0 < height < math.inf and 0 < width < math.inf):
        raise argparse.ArgumentTypeError(f"{text!r} must be a height and a width in pixels, for example 9x9")
    return height, width


def shard(word: str) -> tuple[int, int]:
    """Return a part of a list as its number, from 0, and the number of parts."""
    part, slash, parts = word.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
        raise argparse.ArgumentTypeError(f"{word!r} must be a part and the number of parts, such as 0/8 to 7/8")
    return int(part), int(parts)
