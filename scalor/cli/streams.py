"""Standard streams: closed ones are opened, and what names of files hold cannot command the terminal."""

import os
import re
import sys
from contextlib import suppress
from io import TextIOBase, TextIOWrapper
from typing import TextIO

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that change what a terminal shows: escapes, and those that turn the direction of text."""


def one_line(text: object) -> str:
    """Return a sentence with control characters and line breaks as escapes."""
    return CONTROL.sub(escape, str(text)).replace("\n", "\\n")


def escape(found: re.Match[str]) -> str:
    """Return the escape of a character."""
    return ascii(found[0])[1:-1]


class PlainText(TextIOBase):
    """A text stream that writes control characters, except line breaks and tabs, as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text without control characters."""
        self.stream.write(CONTROL.sub(escape, text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self.stream.fileno()

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self.stream.isatty()


def open_streams() -> None:
    """Open the null device in the place of standard streams that are closed; escape what cannot be printed.

    Otherwise printing fails, and the next file that is opened, perhaps a result, receives what libraries print.
    """
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(null)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, TextIOWrapper):  # names of files need not be text
        sys.stdout.reconfigure(errors="backslashreplace")


def discard_stdout() -> None:
    """Redirect stdout to the null device; otherwise Python fails again when it flushes stdout at exit."""
    with suppress(OSError, ValueError):  # no real stdout, nothing to do
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
