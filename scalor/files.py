"""Files of results: folders checked to be writable, files that are complete or absent, reports as JSON, stop signals.

Work that must finish a step before it ends collects the signals SIGINT (Ctrl-C), SIGTERM (kill) and SIGHUP (the
terminal was closed). In work that may end anywhere they raise an exception.
"""

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from types import FrameType
from typing import IO, Any, TextIO

from scalor.errors import InputError

Handler = Callable[[int, FrameType | None], None]
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class FolderBusy(InputError):
    """Another run holds the lock of a folder."""


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
        for which in STOP_SIGNALS:
            if which in (signal.SIGINT, signal.SIGTERM) or signal.getsignal(which) is not signal.SIG_IGN:  # nohup
                before[which] = signal.signal(which, handler)
    except ValueError:  # not the main thread: only that one receives signals
        before.clear()
    try:
        yield before
    finally:
        restore(before)


def restore(handlers: dict[int, Any]) -> None:
    """Install the previous signal handlers again."""
    for which, handler in handlers.items():
        signal.signal(which, handler)


def check_is_file(path: str | Path, wanted: str) -> None:
    """Raise InputError if a path is not a file: reading a pipe or a device may never end."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"{path} is not a file: give {wanted}.")


DEEPEST = 500
"""Largest number of parts of a path. Python creates the folders of a path one inside the other, and more would exhaust
its stack."""


def open_folder(path: str | Path) -> Path:
    """Create a folder if it does not exist, check that it is writable, and return its path.

    Call it before any work is done. Raise InputError if the folder cannot be written.
    """
    from tempfile import TemporaryFile

    folder = Path(path)
    if len(folder.parts) > DEEPEST:
        raise InputError(f"folder {path} has {len(folder.parts)} parts: choose a shorter path with --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()  # has no name, where the system allows it: a kill leaves nothing
    except OSError as error:
        raise InputError(f"folder {path} cannot be written ({error.strerror}): choose another with --out.") from error
    return folder


@contextmanager
def replacing(path: Path, ending: str | None = None) -> Iterator[Path]:
    """Yield a temporary file next to `path` to write into, and rename it to `path` only if the block succeeds.

    The temporary file has the ending of `path`, or the one that is given.
    """
    temporary = path.with_name(f".{path.stem}.{token_hex(4)}{path.suffix if ending is None else ending}")
    try:
        temporary.touch()
    except OSError as error:
        raise InputError(
            f"cannot write {path} ({error.strerror}): choose a folder that exists and can be written to."
        ) from error
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def open_at(path: Path, position: int | None = None) -> TextIO:
    """Open a text file for writing: a new one or, with a position that `saved_position` returned, the file up to it."""
    if position is None:
        return open(path, "w+")
    os.truncate(path, position)
    return open(path, "a+")


def saved_position(file: IO[Any]) -> int:
    """Write to the disk what a file holds so far, and return its length in bytes."""
    file.flush()
    os.fsync(file.fileno())
    return os.fstat(file.fileno()).st_size


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other runs inside the block.

    The lock ends with the process, however the process ends. On Windows nothing is locked. Raise InputError if another
    run holds the lock.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            replaced = not os.path.samestat(os.fstat(handle), os.stat(folder))
        except (BlockingIOError, FileNotFoundError):
            replaced = True
        if replaced:
            raise FolderBusy(
                f"folder {folder} is being written by another run: wait for it, or choose another with --out."
            )
        yield
    finally:
        os.close(handle)


Report = dict[str, Any] | list[dict[str, Any]]


def print_json(document: Report) -> None:
    """Print a report to standard output as JSON."""
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
