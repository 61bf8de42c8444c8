"""Where results come from: the command, the commit, the date."""

import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path


def command_line() -> str:
    """How this process was started, ready to be pasted into a shell."""
    program = Path(sys.argv[0]).name
    return shlex.join(["scalor" if program == "__main__.py" else program, *sys.argv[1:]])


@cache
def commit() -> str:
    """The commit of the source tree, if it is one, "-dirty" where this package is not as committed; `SCALOR_COMMIT`
    names it where git cannot.

    Asked once, before anything else can change the tree under a running training.
    """
    if "SCALOR_COMMIT" in os.environ:
        return os.environ["SCALOR_COMMIT"]
    package = Path(__file__).parent
    if not (package.parent / ".git").exists():  # installed: a repository around the environment is not ours
        return "unknown"
    try:
        head, changed = (
            subprocess.run(["git", *command], cwd=package, capture_output=True, text=True, check=True).stdout.strip()
            for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", "."])
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}-dirty" if changed else head


def today() -> str:
    """The date in UTC, as 2026-01-31."""
    return datetime.now(UTC).strftime("%Y-%m-%d")
