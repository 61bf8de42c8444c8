"""Stop signals (Ctrl-C and kill): collected by work that ends in order, raised in work that may end anywhere."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], None]


class Stopped(BaseException):
    """A stop signal has come."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collects a stop signal instead of dying of it; a second one acts as it did before."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        restore(before)

    with handling(note) as before:
        yield caught


@contextmanager
def stop_signals_raised() -> Iterator[None]:
    """Makes a stop signal an exception that nothing catches by accident."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    with handling(stop):
        yield


@contextmanager
def handling(handler: Handler) -> Iterator[dict[int, Any]]:
    """Stop signals go to the handler; gives those that they went to before."""
    before: dict[int, Any] = {}
    try:
        for which in (signal.SIGINT, signal.SIGTERM):
            before[which] = signal.signal(which, handler)
    except ValueError:  # not the main thread: nobody can stop us by signal
        before.clear()
    try:
        yield before
    finally:
        restore(before)


def restore(handlers: dict[int, Any]) -> None:
    for which, handler in handlers.items():
        signal.signal(which, handler)
