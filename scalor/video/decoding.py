"""One guard around every decoder: whatever goes wrong in it, the error is a sentence that names the file."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from scalor.errors import InputError

MAX_FRAME_PIXELS = 2**27
"""Largest number of pixels of a frame. An 8K video has 2**25. Sizes are checked before any memory is taken."""
LONGEST_REASON = 120
"""Largest number of characters of a decoder's own message that is shown."""

for _library in ("PIL", "tifffile"):  # otherwise Python prints what they log beside the sentence
    logging.getLogger(_library).addHandler(logging.NullHandler())


@contextmanager
def decoding(what: str, kind: str, remedy: str) -> Iterator[None]:
    """Convert any exception of a decoder to an InputError: `what` cannot be decoded as `kind`, why, and a remedy."""
    try:
        yield
    except Exception as error:
        raise decoding_error(what, kind, error, remedy) from error


def decoding_error(what: str, kind: str, error: Exception, remedy: str) -> InputError:
    """Return the InputError for an exception of a decoder; an InputError is returned unchanged."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, MemoryError):
        return InputError(f"{what} does not fit into memory: reduce its frames, or give a part of them.")
    return InputError(f"{what} cannot be decoded as {kind} ({reason_of(error)}): {remedy}.")


def reason_of(error: Exception) -> str:
    """Return the message of an exception on one line, or its type if it has none."""
    message = getattr(error, "strerror", None) or str(error)
    lines = str(message).strip().splitlines()
    return lines[0][:LONGEST_REASON] if lines and not isinstance(error, KeyError) else type(error).__name__


def check_frame_size(size: tuple[int, int], name: str) -> None:
    """Raise InputError if frames of this height and width are empty or too large to be decoded."""
    height, width = size
    if height < 1 or width < 1:
        raise InputError(f"{name} has frames of {width} x {height} pixels: give frames of at least one pixel.")
    if height * width > MAX_FRAME_PIXELS:
        raise InputError(
            f"{name} has frames of {width} x {height} pixels, more than {MAX_FRAME_PIXELS:,}: reduce them first."
        )
