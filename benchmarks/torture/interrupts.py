"""Work in a child process, killed when it enters one chosen system call that changes a file.

`strace` lists the calls of an undisturbed run and kills the process at one of them: the first kind of call after
which the kernel has not changed the file. Where strace is missing, an audit hook of Python takes its place; it sees
every call that opens, moves or deletes a file, and none that only writes into an open one.
"""

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.torture.commands import LIMIT_S, MEMORY, forked
from benchmarks.torture.outcomes import Ended

CALLS = (
    *("open", "openat", "creat", "write", "pwrite64", "writev", "rename", "renameat", "renameat2", "link", "linkat"),
    *("symlink", "symlinkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "truncate", "ftruncate", "fallocate"),
    *("fsync", "fdatasync", "chmod", "fchmod", "fchmodat", "utimensat", "sendfile", "copy_file_range", "fsetxattr"),
)
"""System calls that may change a file."""
EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "os.chmod", "os.utime")
"""Audit events of such calls."""
FOREIGN = "ctypes.call_function"
"""The event of a call of a C function: the exchange of two folders is one."""
CALL = re.compile(r"(?:\d+ +)?(\w+)\((.*)")
ANY_TRACER = 2**64 - 1
PR_SET_PTRACER = 0x59616D61
Work = Callable[[], int]


@dataclass(frozen=True)
class Point:
    """One call that changes a file."""

    call: str
    number: int
    """How many calls of this kind there are up to this one, from 1 on; also those that change no file."""
    text: str
    """The call as strace shows it."""


def points(work: Work, folder: Path) -> list[Point]:
    """Run some work in a folder, undisturbed. Return its calls that change a file."""
    log = folder.with_name(f"{folder.name}-calls.txt")
    way = traced if shutil.which("strace") else audited
    ended = run(lambda: way(work, log, None), folder)
    assert ended.code == 0, ended
    return list(changing(log.read_text(errors="replace").splitlines()))


def killed_at(point: Point, work: Work, folder: Path) -> Ended | None:
    """Run some work in a folder and kill it at a call. Return how it ended, or None if it was killed."""
    log = folder.with_name(f"{folder.name}-calls.txt")
    way = traced if shutil.which("strace") else audited
    ended = run(lambda: way(work, log, point), folder)
    log.unlink(missing_ok=True)
    return None if ended.code == -signal.SIGKILL else ended


def run(work: Work, folder: Path) -> Ended:
    return forked(work, folder, 2 * LIMIT_S, {resource.RLIMIT_AS: MEMORY})


def changing(lines: list[str]) -> Iterator[Point]:
    """Yield the calls that change a file, out of lines of strace.

    Left out are calls that open a file to read it, and those that write to a pipe or a device.
    """
    counts: Counter[str] = Counter()
    for line in lines:
        found = CALL.match(line)
        if found is None:
            continue
        call, rest = found[1], found[2]
        counts[call] += 1
        if call in ("open", "openat") and not re.search(r"O_WRONLY|O_RDWR|O_CREAT", rest):
            continue
        if re.match(r"\d+<(pipe|socket|anon_inode|/dev/)|[^\"]*\"/dev/", rest):
            continue
        yield Point(call, counts[call], line[:160])


def traced(work: Work, log: Path, point: Point | None) -> int:
    """Do some work in this process while strace looks on, which writes the calls to a file or kills at one of them."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(ANY_TRACER), 0, 0, 0)
    calls = ",".join(f"?{call}" for call in CALLS)
    inject = [] if point is None else ["-e", f"inject={point.call}:signal=SIGKILL:when={point.number}"]
    words = ["strace", "-y", "-s", "0", "-p", str(os.getpid()), "-o", str(log), "-e", f"trace={calls}", *inject]
    strace = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert strace.stderr is not None
    told = strace.stderr.readline()
    assert "attached" in told, told
    try:
        return work()
    finally:
        strace.terminate()  # it detaches and writes what it holds
        strace.wait()


def audited(work: Work, log: Path, point: Point | None) -> int:
    """Do some work in this process under an audit hook, which writes the calls to a file or kills at one of them."""
    counts: Counter[str] = Counter()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if event not in (*EVENTS, FOREIGN):
            return
        if event == "open" and not int(str(arguments[2])) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        name = event.replace(".", "_") if event != "open" else "creat"
        counts[name] += 1
        if point is None:
            os.write(handle, f"{name}({arguments[0]!r})\n".encode(errors="replace"))
        elif (point.call, point.number) == (name, counts[name]):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    return work()
