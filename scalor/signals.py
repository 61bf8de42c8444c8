"""Handling of stop signals: SIGINT (Ctrl-C) and SIGTERM (kill).

Work that must finish a step before it ends collects them. In work that may end anywhere they raise an exception.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], None]


class Stopped(BaseException):
    """An exception for a stop signal, with the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Yield a list that collects a stop signal, which then does not end the process.

    A second stop signal goes to the handler that was there before.
    """
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        restore(before)

    with handling(note) as before:
        yield caught


@contextmanager
def stop_signals_raised() -> Iterator[None]:
    """Raise `Stopped` inside the block on a stop signal.

    `Stopped` derives from BaseException, so nothing catches it by accident.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    with handling(stop):
        yield


@contextmanager
def handling(handler: Handler) -> Iterator[dict[int, Any]]:
    """Send stop signals to a handler inside the block. Yield the previous handlers, which are restored afterwards."""
    before: dict[int, Any] = {}
    try:
        for which in (signal.SIGINT, signal.SIGTERM):
            before[which] = signal.signal(which, handler)
    except ValueError:  # not the main thread: only that one receives signals
        before.clear()
    try:
        yield before
    finally:
        restore(before)


def restore(handlers: dict[int, Any]) -> None:
    for which, handler in handlers.items():
        signal.signal(which, handler)
