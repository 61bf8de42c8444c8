"""Provenance of results: the command line, the commit and the date."""

import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path


def command_line() -> str:
    """Return the command line of this process, quoted for a shell."""
    program = Path(sys.argv[0]).name
    return shlex.join(["scalor" if program == "__main__.py" else program, *sys.argv[1:]])


@cache
def commit() -> str:
    """Return the short hash of the commit of the source tree, or "unknown" if that cannot be found.

    "-dirty" is appended if this package has uncommitted changes. The environment variable `SCALOR_COMMIT` replaces the
    result, for use where git is not available. The result is cached: training calls this function at its start, so
    later changes of the source tree do not alter it.
    """
    if "SCALOR_COMMIT" in os.environ:
        return os.environ["SCALOR_COMMIT"]
    package = Path(__file__).parent
    if not (package.parent / ".git").exists():  # installed package: a repository around the environment is not this one
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
    """Return the date in UTC, for example 2026-01-31."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def provenance_of(video: str, weights: str) -> dict[str, str]:
    """Return the provenance of results: video, weights, command, commit and date."""
    return {"video": video, "weights": weights, "command": command_line(), "commit": commit(), "date": today()}
