"""Resuming a stopped run: what both runs must have in common, and the snapshot in the hidden folder."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scalor.errors import InputError
from scalor.files import folder_lock
from scalor.replacement import PARTIAL
from scalor.snapshots import read_key

SNAPSHOT = "snapshot"
"""Name of the snapshot in the hidden folder of a run."""


@dataclass(frozen=True)
class Resumption:
    """Whether and how a run resumes one that was stopped."""

    key: Mapping[str, str]
    """What both runs must have in common: the video, the weights, every option, the code."""
    classes: tuple[type, ...]
    """Classes of the caller's state."""
    restart: bool = False
    """Whether to start from the first frame in any case."""
    replace_unfinished: bool = False
    """Whether to start from the first frame, without an error, if the stopped run had other options."""

    def prepare(self, folder: Path) -> None:
        """Delete an unfinished run in a folder if it is not to be resumed.

        Raise InputError if it had other options and `replace_unfinished` is false.
        """
        partial = folder / PARTIAL
        before = read_key(partial / SNAPSHOT)
        if before is None and not self.restart:
            return
        with folder_lock(folder):
            if self.restart or before is None:
                shutil.rmtree(partial, ignore_errors=True)
                return
        differ = sorted(name for name in before.keys() | self.key.keys() if before.get(name) != self.key.get(name))
        if differ and self.replace_unfinished:
            with folder_lock(folder):
                shutil.rmtree(partial, ignore_errors=True)
        elif differ:
            raise InputError(
                f"{folder} holds a stopped run that had another {' and another '.join(differ)}: repeat that command to "
                "resume it, choose another folder with --out, or start from the first frame with --restart."
            )
