"""Where results go: folders known to be writable, and files that are whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from scalor.errors import InputError


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
