"""Commands of `scalor` run in processes of their own, without loading the libraries anew for each.

A process that has loaded them forks; the child becomes the command. It has its own files for stdout and stderr, its own
limits, and is killed with all its children when its time is over.
"""

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.torture.outcomes import Ended

GIGABYTE = 1 << 30
LIMIT_S = 60.0
"""Seconds after which a command hangs."""
MEMORY = 6 * GIGABYTE
"""Address space of a command; a healthy one needs about 3 GB of it, most of it for libraries."""


STOPPED = (128 + signal.SIGTERM, -signal.SIGTERM)
"""Exit codes of a command that ended because it was asked to."""


def load_libraries() -> None:
    """Load what commands need, once, before the first fork."""
    import av  # noqa: F401
    import cv2  # noqa: F401
    import scipy.optimize  # noqa: F401
    import torch

    import scalor.cli.track
    import scalor.cli.train  # noqa: F401

    torch.set_num_threads(1)


def command(
    words: Sequence[str],
    folder: Path,
    limit_s: float = LIMIT_S,
    limits: Mapping[int, int] | None = None,
    patient: bool = False,
) -> Ended:
    """Run a command of `scalor` in a folder. Return how it ended.

    `limits` maps resources of the `resource` module to their limits. With `patient`, a command that is still busy after
    the time limit may have been asked for much: it is stopped by SIGTERM, and hangs only if it ignores that.
    """

    def work() -> int:
        from scalor.cli.main import main

        return main(list(words))

    return forked(work, folder, limit_s, {resource.RLIMIT_AS: MEMORY, **(limits or {})}, patient)


def forked(
    work: Callable[[], int], folder: Path, limit_s: float, limits: Mapping[int, int], patient: bool = False
) -> Ended:
    """Run a function in a child process as if it were a program."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            become(work, folder, out.fileno(), err.fileno(), limits)
        code = wait(child, limit_s / 4 if patient else limit_s, kill=not patient)
        if code is None and patient:
            os.kill(child, signal.SIGTERM)
            code = wait(child, limit_s)
            code = 0 if code in STOPPED else code
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return Ended(code, *texts)


def become(work: Callable[[], int], folder: Path, out: int, err: int, limits: Mapping[int, int]) -> None:
    """Turn this process into the program; it does not return."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", 1)
        for which, most in limits.items():
            resource.setrlimit(which, (most, resource.getrlimit(which)[1]))
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(which, signal.default_int_handler if which is signal.SIGINT else signal.SIG_DFL)
        code = work()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        with suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


def wait(child: int, limit_s: float, kill: bool = True) -> int | None:
    """Wait for a process. Return its exit code, negative for a signal, or None if its time is over.

    With `kill`, it and its children are killed then.
    """
    until = time.monotonic() + limit_s
    pause = 0.002
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until and not kill:
            return None
        if time.monotonic() > until:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
