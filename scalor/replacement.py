"""Replacement of all files of a result at once, and the manifest of the files that a run wrote.

A result folder holds `.scalor.json`, the manifest: the name, size and SHA-256 of every file of the result. Files that
are not in it, and files that were changed since, are never overwritten.

New files are written into the hidden folder `.partial`. If the file system allows it, they then take the place of the
old ones in a single system call, so a run that is killed at any moment leaves all old files or all new ones: the folder
is exchanged with a new one that also holds links to the user's own files. Where that is not possible, the finished
files move to `.complete` in one step, and from there to their places one by one; `finish_replacement` completes a move
that was interrupted.
"""

import ctypes
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scalor.errors import InputError
from scalor.files import FolderBusy, folder_lock, stop_signals

MANIFEST = ".scalor.json"
PARTIAL = ".partial"
"""Name of the folder, inside the results folder, that holds the files until all of them are complete."""
COMPLETE = ".complete"
"""Name of the folder that holds complete files until all of them have moved to their places."""
EXCHANGE = 2
"""The flag of an exchange, of `renameat2` (Linux) and of `renamex_np` (macOS)."""


@contextmanager
def replacing_together(
    folder: Path, names: Iterable[str], inputs: Iterable[Path] = (), keep: str | None = None
) -> Iterator[Path]:
    """Yield a hidden folder inside `folder` to write into, and move its files to `folder` if the block succeeds.

    If the block fails, `folder` stays as it was. A stop signal that arrives while the files move takes effect
    afterwards. What a killed run left is deleted, or moved to its place if it was complete.

    Parameters
    ----------
    folder : Path
        The folder of the results, which exists.
    names : iterable of str
        The files and folders to replace. Those that the block does not write, but an earlier run wrote, are deleted.
        Other files in the hidden folder are not kept, and other files in `folder` stay.
    inputs : iterable of Path, optional
        Files, folders or patterns of images that the run reads. They are never replaced.
    keep : str, optional
        Name of a file from which a stopped run can be resumed. A hidden folder that holds it stays when the block is
        stopped or killed, and is yielded again to the next run. It is deleted when the block fails by an InputError.

    Raises
    ------
    InputError
        Before the block, if a file with one of the names is an input, was not written by an earlier run, or was
        changed since; or if another run writes into the folder.
    """
    names = list(names)
    check_inputs(folder, names, inputs)
    partial = folder / PARTIAL
    with folder_lock(folder):
        finish_replacement(folder)
        shutil.rmtree(exchanged(folder), ignore_errors=True)
        if keep is None or not (partial / keep).exists():
            shutil.rmtree(partial, ignore_errors=True)
        check_own(folder, names)
        try:
            partial.mkdir(exist_ok=True)
            yield partial
            write_manifest(partial, names, read_manifest(folder))
            with stop_signals() as caught:
                if not exchange_folders(folder, partial, names):
                    os.rename(partial, folder / COMPLETE)
                    finish_replacement(folder)
        except InputError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        finally:
            if keep is None or not (partial / keep).exists():
                shutil.rmtree(partial, ignore_errors=True)
    if caught:
        signal.raise_signal(caught[0])


def check_inputs(folder: Path, names: Iterable[str], inputs: Iterable[Path]) -> None:
    """Raise InputError if a run would replace a file that it reads, or write among images that it reads."""
    for path in inputs:
        if path.is_dir() and path.resolve() == folder.resolve():
            raise InputError(f"{path} is the folder of the input, too: choose another folder with --out.")
        beside = path.parent.resolve() == folder.resolve()
        pattern = not path.exists()  # such as frames/*.png
        if beside and (pattern or path.name in names):
            raise InputError(f"{path} is an input in the folder of the results: choose another folder with --out.")


def check_own(folder: Path, names: Iterable[str]) -> None:
    """Raise InputError if a file with one of the names is not as an earlier run wrote it."""
    written = read_manifest(folder)
    for name in names:
        path = folder / name
        if not os.path.lexists(path):
            continue
        if name not in written and path.is_dir() and not path.is_symlink():
            raise InputError(f"cannot write {path} (it is a folder): move it away or choose another with --out.")
        if name not in written:
            raise InputError(
                f"{path} was not written by an earlier run and would be replaced: move it away or choose another "
                "folder with --out."
            )
        if path.is_symlink() or describe(path) != written[name]:
            raise InputError(
                f"{path} was changed after an earlier run wrote it, and would be replaced: move it away or choose "
                "another folder with --out."
            )


def describe(path: Path) -> dict[str, object]:
    """Return the size and hash of a file, or of all files of a folder, as the manifest holds them."""
    if path.is_dir():
        return {file.name: describe(file) for file in sorted(path.iterdir())}
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def read_manifest(folder: Path) -> dict[str, object]:
    """Return the files that the last run wrote into a folder, by name; none if there is no usable manifest."""
    try:
        files = json.loads((folder / MANIFEST).read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return files if isinstance(files, dict) else {}


def write_manifest(folder: Path, names: Iterable[str], before: dict[str, object]) -> None:
    """Write the manifest of a folder's files with the given names, and delete everything else in the folder.

    Entries of the manifest `before` with other names are kept.
    """
    files = {name: file for name, file in before.items() if name not in names}
    for path in sorted(folder.iterdir()):
        if path.name not in names:
            remove(path)
            continue
        files[path.name] = describe(path)
        for written in path.iterdir() if path.is_dir() else [path]:
            with open(written, "rb") as file:
                os.fsync(file.fileno())
    (folder / MANIFEST).write_text(
        json.dumps({"written_by": "scalor", "files": dict(sorted(files.items()))}, indent=1) + "\n"
    )


def finish_replacement(folder: Path) -> None:
    """Move the files of a complete result to their places, if an earlier run was killed while it did so.

    Call it with the folder locked, before its files are read or replaced.
    """
    complete = folder / COMPLETE
    if not (complete / MANIFEST).exists():
        shutil.rmtree(complete, ignore_errors=True)
        return
    new = read_manifest(complete)
    for name in read_manifest(folder).keys() - new.keys():
        remove(folder / name)
    for name in [*new, MANIFEST]:  # the manifest last: until then the move can be finished
        if not (complete / name).exists():  # moved before
            continue
        if (complete / name).is_dir():
            remove(folder / name)
        os.replace(complete / name, folder / name)
    shutil.rmtree(complete)


def settle(folder: Path) -> None:
    """Finish the move of a run that was killed, before the results in a folder are read; no other run is disturbed."""
    if not (folder / COMPLETE / MANIFEST).exists():
        return
    with suppress(FolderBusy, OSError), folder_lock(folder):
        finish_replacement(folder)


def remove(path: Path) -> None:
    """Delete a file or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def exchanged(folder: Path) -> Path:
    """Return the folder beside a result folder that it is exchanged with."""
    whole = folder.resolve()
    return whole.with_name(f".{whole.name}.exchange")


def exchange_folders(folder: Path, partial: Path, names: Iterable[str]) -> bool:
    """Put the files of `partial` in the place of the old ones in one system call. Return whether that was possible.

    It is not possible if the folder holds folders of the user, if it is the working directory, or if the file system
    has no exchange or no hard links.
    """
    whole = folder.resolve()
    if whole == Path.cwd() or whole in Path.cwd().parents or whole.parent == whole:
        return False
    replaced = {*names, MANIFEST, PARTIAL}
    kept = [path for path in whole.iterdir() if path.name not in replaced]
    if any(path.is_dir() and not path.is_symlink() for path in kept):
        return False
    beside = exchanged(folder)
    try:
        os.rename(partial, beside)
    except OSError:
        return False
    try:
        for path in kept:
            os.link(path, beside / path.name, follow_symlinks=False)
        shutil.copystat(whole, beside)
        exchange(beside, whole)
    except OSError:
        for path in kept:
            (beside / path.name).unlink(missing_ok=True)
        os.rename(beside, partial)
        return False
    shutil.rmtree(beside, ignore_errors=True)
    return True


def exchange(one: Path, other: Path) -> None:
    """Exchange two folders in one system call. Raise OSError if that is not possible."""
    library = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(first, second, EXCHANGE)
    elif sys.platform == "linux" and hasattr(library, "renameat2"):
        here = -100  # paths that are not absolute count from the working directory
        failed = library.renameat2(here, first, here, second, EXCHANGE)
    else:
        raise OSError("no exchange of folders")
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
