"""Commands on a machine that has too little of something, that is told to stop, or whose clock jumps."""

import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.torture.campaign import Campaign, Finding, Try, contents
from benchmarks.torture.commands import GIGABYTE, LIMIT_S, command, forked
from benchmarks.torture.kills import Work, killed, prepare_tracking, results
from benchmarks.torture.outcomes import Ended, Outcome, judge

NOBODY = 65534
"""Number of the user and group without rights."""
Condition = Callable[[Work, Random, Path], tuple[str, Ended, tuple[int, ...]]]
"""Runs the command under a condition; returns what it is, how the command ended, and exit codes that are right."""


def small_files(work: Work, random: Random, home: Path) -> tuple[str, Ended, tuple[int, ...]]:
    """Let no file grow above a size, as on a full disk."""
    most = random.choice((0, 100, 1_000, 10_000, 100_000))
    return f"files of at most {most} bytes", command(work.words, home, limits={resource.RLIMIT_FSIZE: most}), (2,)


def few_descriptors(work: Work, random: Random, home: Path) -> tuple[str, Ended, tuple[int, ...]]:
    """Let few files be open at a time."""
    most = random.randint(4, 40)
    return f"{most} descriptors", command(work.words, home, limits={resource.RLIMIT_NOFILE: most}), (2,)


def little_memory(work: Work, random: Random, home: Path) -> tuple[str, Ended, tuple[int, ...]]:
    """Give little more memory than the libraries have already."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + int(random.choice((0.002, 0.01, 0.05, 0.2)) * GIGABYTE)
    return f"{most / GIGABYTE:.2f} GB of memory", command(work.words, home, limits={resource.RLIMIT_AS: most}), (2,)


def closed_streams(work: Work, random: Random, home: Path) -> tuple[str, Ended, tuple[int, ...]]:
    """Close stdout, stderr or both, break a pipe, or write to a device that is full."""
    kind = random.choice(("stdout closed", "stderr closed", "both closed", "stdout full", "stdout broken"))

    def run() -> int:
        from scalor.cli.main import main

        if kind in ("stdout closed", "both closed"):
            os.close(1)
            sys.stdout = None  # as Python starts then
        if kind in ("stderr closed", "both closed"):
            os.close(2)
            sys.stderr = None
        if kind == "stdout full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        if kind == "stdout broken":
            reader, writer = os.pipe()
            os.close(reader)
            os.dup2(writer, 1)
        return main([*work.words, "--json"])

    return kind, forked(run, home, LIMIT_S, {}), (0, 2, 141)


def stop_signals(work: Work, random: Random, home: Path) -> tuple[str, Ended, tuple[int, ...]]:
    """Ask the command to stop at a random moment."""
    which = random.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    seconds = random.uniform(0.05, 1.0) * work.seconds
    ended = killed(work.words, home, seconds, which)
    assert ended is not None
    return f"{which.name} after {seconds:.3f} s", ended, (128 + which, -which)


def two_at_once(work: Work, random: Random, home: Path) -> tuple[str, Ended, tuple[int, ...]]:
    """Start the command twice."""
    first = os.fork()
    if first == 0:
        try:
            command(work.words, home)
        finally:
            os._exit(0)
    time.sleep(random.uniform(0, 0.5) * work.seconds)
    ended = command(work.words, home)
    os.waitpid(first, 0)
    return "two at once", ended, (2,)


def clock_jumps(work: Work, random: Random, home: Path) -> tuple[str, Ended, tuple[int, ...]]:
    """Let the clock of the day jump by up to a year, forwards and backwards."""
    seed = random.random()

    def run() -> int:
        from scalor.cli.main import main

        jumps, real = Random(seed), time.time
        time.time = lambda: real() + jumps.uniform(-3e7, 3e7)
        return main(list(work.words))

    return "a clock that jumps", forked(run, home, LIMIT_S, {}), ()


def read_only(work: Work, random: Random, home: Path) -> tuple[str, Ended, tuple[int, ...]]:
    """Let the results, or the folder around them, be read-only, for a user who is not the administrator."""
    which = random.choice((home, home / "tracked"))
    for path, _, _ in os.walk(home):
        os.chmod(path, 0o777)
    os.chmod(which, 0o555)

    def run() -> int:
        from scalor.cli.main import main

        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return main(list(work.words))

    return f"{which.name} is read-only", forked(run, home, LIMIT_S, {}), (2,)


CONDITIONS: tuple[Condition, ...] = (
    *(small_files, few_descriptors, little_memory, closed_streams, stop_signals, two_at_once, clock_jumps),
    *((read_only,) if hasattr(os, "getuid") and os.getuid() == 0 else ()),
)


def case(work: Work, given: Try) -> Finding:
    """Run a command under a condition; earlier results must stay, or be replaced by whole new ones."""
    shutil.copytree(work.folder, given.home, dirs_exist_ok=True)
    condition = given.random.choice(CONDITIONS)
    seen, ended, right = condition(work, given.random, given.home)
    try:
        now = results(contents(given.home / "tracked"))
    except (ValueError, KeyError) as error:
        return Finding(Outcome.LOST, seen, f"old and new files are mixed: {error!r}")
    if now not in (results(work.before), results(work.after)):
        return Finding(Outcome.LOST, seen, "neither all old files nor all new ones")
    found = judge(ended)
    told = found is None or found[0] is Outcome.WARNED or (found[0] is not Outcome.HANG and ended.code in right)
    if not told or "Traceback" in ended.err:
        assert found is not None
        return Finding(found[0], seen, found[1])
    if found is None and now != results(work.after):
        return Finding(Outcome.WRONG, seen, "success is claimed, and the old files are there")
    return Finding(Outcome.CLEAN if found is None else Outcome.WARNED, seen)


CAMPAIGN = Campaign("limits and signals", prepare_tracking, case, share=1.5)
