"""Where results go: folders known to be writable, and files that are whole or not there."""

import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from scalor.errors import InputError
from scalor.signals import stop_signals

PARTIAL = ".partial"
"""Where, inside the folder of the results, files are until all of them are whole."""


def open_folder(path: str | Path) -> Path:
    """The folder, made if need be, and known to be writable before any work is done."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"folder {path} cannot be written ({error.strerror}): choose another with --out.") from error
    return folder


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write into; it takes the name `path` only if the block succeeds."""
    temporary = path.with_name(f".{path.stem}.{token_hex(4)}{path.suffix}")
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


@contextmanager
def replacing_together(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """A hidden folder inside `folder` to write into; if the block succeeds, its files take their places together.

    All of `names` belong to one result: those that the block did not write again are of an earlier one and go.
    If the block fails, everything stays as it was. What a killed run left behind is removed.
    """
    names = list(names)
    for name in names:
        if (folder / name).is_dir():
            raise InputError(
                f"cannot write {folder / name} (it is a folder): move it away or choose another with --out."
            )
    partial = folder / PARTIAL
    with alone_in(folder):
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            yield partial
            with stop_signals() as caught:
                for name in names:
                    if (partial / name).exists():
                        os.replace(partial / name, folder / name)
                    else:
                        (folder / name).unlink(missing_ok=True)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    if caught:
        signal.raise_signal(caught[0])


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keeps a second run out of the folder; the lock ends with the process, however that ends."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"folder {folder} is being written by another run: wait for it, or choose another with --out."
            ) from error
        yield
    finally:
        os.close(handle)
