"""Folders for results."""

from pathlib import Path

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
