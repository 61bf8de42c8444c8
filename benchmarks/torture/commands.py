"""Commands of `scalor` run in processes of their own, without loading the libraries again for each.

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
from importlib import import_module
from pathlib import Path
from threading import RLock

from tqdm import tqdm

from benchmarks.torture.outcomes import Ended

GIGABYTE = 1 << 30
LIMIT_S = 60.0
"""Processor time of a command after which it hangs; also the time that it may do nothing at all. Time that other
processes of a busy machine take does not count."""
LONGEST_S = 20 * LIMIT_S
"""Seconds after which a command hangs in any case."""
MEMORY = 6 * GIGABYTE
"""Address space of a command; a healthy one needs about 3 GB of it, most of it for libraries."""
LONGEST_TEXT = 1 << 24
"""Number of bytes at the end of what a command prints that are kept."""
STOPPED = (128 + signal.SIGTERM, -signal.SIGTERM)
"""Exit codes of a command that ended because it was asked to."""


def load_libraries() -> None:
    """Load what commands need, once, before the first fork: every module that a child had after some commands.

    Only modules are loaded here. Commands run in children, since a process that has computed gradients must not fork.
    """
    import torch

    from benchmarks.torture.models import TINY, tiny_weights
    from benchmarks.torture.videos import pictures, write_film

    torch.set_num_threads(1)
    tqdm.set_lock(RLock())  # its own is shared by all forks, which wait for ever when one is killed that holds it
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def write_inputs() -> int:
            tiny_weights(folder)
            write_film(folder / "a.mp4", "libx264", "yuv420p", pictures())
            return 0

        forked(write_inputs, folder, LIMIT_S, {})
        for words in (
            ["track", "a.mp4", "--weights", "tiny.safetensors", "--out", "masks", "--masks"],
            ["track", "a.mp4", "--weights", "classical-colour", "--object-size", "10x10", "--out", "tracked"],
            ["edit", "tracked", "delete", "1"],
            ["predict", "a.mp4", "--weights", "tiny.safetensors", "--out", "predicted"],
            ["fit", "a.mp4", "--scratch", "--steps", "1", "--object-size", "9x9", "--device", "cpu", "--out", "fit"],
            ["train", "shapes-tiny", *TINY, "--train.steps", "1", "--clips", "1", "--device", "cpu", "--out", "run"],
        ):
            forked(lambda words=words: run_and_list(words), folder, LIMIT_S, {})  # type: ignore[misc]
            for module in (folder / "modules.txt").read_text().split():
                with suppress(Exception):
                    import_module(module)


def run_and_list(words: list[str]) -> int:
    """Run a command and write the names of all loaded modules to `modules.txt`."""
    from scalor.cli.main import main

    code = main(words)
    Path("modules.txt").write_text("\n".join(sys.modules))
    return code


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
    """Run a function in a child process as if it were a program. Its stdout and stderr are pipes."""
    (out, to_out), (err, to_err) = os.pipe(), os.pipe()
    texts = {out: bytearray(), err: bytearray()}
    try:
        child = os.fork()
        if child == 0:
            become(work, folder, to_out, to_err, limits)
        os.close(to_out)
        os.close(to_err)
        code = wait(child, limit_s / 4 if patient else limit_s, texts, kill=not patient)
        if code is None and patient:
            os.kill(child, signal.SIGTERM)
            code = wait(child, limit_s, texts)
            code = 0 if code in STOPPED else code
        read_available(texts)
    finally:
        os.close(out)
        os.close(err)
    return Ended(code, *(bytes(text).decode(errors="replace") for text in texts.values()))


def read_available(texts: Mapping[int, bytearray]) -> None:
    """Append to the texts what can be read from their pipes without waiting."""
    for pipe, text in texts.items():
        os.set_blocking(pipe, False)
        with suppress(BlockingIOError):
            while part := os.read(pipe, 1 << 16):
                text += part
                del text[:-LONGEST_TEXT]


def become(work: Callable[[], int], folder: Path, out: int, err: int, limits: Mapping[int, int]) -> None:
    """Turn this process into the program; it does not return."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace")  # as Python opens it
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


def wait(child: int, limit_s: float, texts: Mapping[int, bytearray], kill: bool = True) -> int | None:
    """Wait for a process and read what it writes. Return its exit code, negative for a signal, or None for no end.

    Its time is over after `limit_s` seconds of its processor time, or as long without any. With `kill`, it and its
    children are then killed.
    """
    before = used = processor_time(child)
    begun = changed = time.monotonic()
    pause = 0.002
    while True:
        read_available(texts)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        now, last = time.monotonic(), used
        used = processor_time(child)
        changed = now if used > last else changed
        if used - before > limit_s or now - changed > limit_s or now - begun > LONGEST_S:
            if kill:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(1.5 * pause, 0.02)


def processor_time(process: int) -> float:
    """Return the processor time of a running process and of its children that ended, s."""
    with suppress(OSError):
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
    return time.monotonic()  # a machine without /proc
