"""What a campaign is: cases that are made from a number, run in a folder of their own, and judged."""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from tqdm import tqdm

from benchmarks.torture.outcomes import Outcome, Result


@dataclass(frozen=True)
class Finding:
    """The end of a case, as the campaign judged it."""

    outcome: Outcome
    case: str
    detail: str = ""
    kills: int = 0
    """Kills of the case."""


@dataclass(frozen=True)
class Try:
    """What makes a case."""

    number: int
    random: Random
    home: Path
    """A folder of its own, deleted afterwards."""


@dataclass(frozen=True)
class Campaign:
    """One kind of hostility."""

    name: str
    prepare: Callable[[Path], Any]
    """Makes what all cases share, in a folder; the result is given to every case."""
    case: Callable[[Any, Try], Finding]
    """Runs a case."""
    share: float = 1.0
    """Part of the time budget, relative to the other campaigns."""
    count: Callable[[Any], int] | None = None
    """The number of all cases there are, for a campaign that tries every one of them."""


def run(campaign: Campaign, seed: int, budget_s: float, tries: int | None, first: int, jobs: int) -> Iterator[Result]:
    """Run cases of a campaign, from number `first` on, until the time or the number of tries is over.

    The result of every case is yielded when it ends. The time of the preparation counts.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"torture-{campaign.name}-".replace(" ", "-")))
    until = time.monotonic() + budget_s
    try:
        shared = campaign.prepare(folder)
        last = first + tries if tries is not None else 10**9
        if campaign.count is not None:
            last = min(last, campaign.count(shared))
        numbers = iter(range(first, last))
        with (
            ProcessPoolExecutor(jobs, get_context("fork"), end_with_parent) as pool,
            tqdm(total=tries, desc=campaign.name, unit="case", leave=False, disable=None) as bar,
        ):
            waiting: set[Future[Result]] = set()
            try:
                while True:
                    while len(waiting) < jobs and time.monotonic() < until:
                        number = next(numbers, None)
                        if number is None:
                            break
                        waiting.add(pool.submit(one_case, campaign, shared, seed, number, folder))
                    if not waiting:
                        break
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        bar.update()
                        yield future.result()
            finally:
                pool.shutdown(cancel_futures=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def end_with_parent() -> None:
    """Let this process be killed when the one that started it is."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def one_case(campaign: Campaign, shared: Any, seed: int, number: int, folder: Path) -> Result:
    """Run a case in a folder that is deleted afterwards."""
    home = folder / f"case-{number}"
    home.mkdir()
    try:
        found = campaign.case(shared, Try(number, Random(f"{seed} {campaign.name} {number}"), home))
    except Exception:  # the campaign's own mistake must not end it, and must be seen
        found = Finding(Outcome.WRONG, "the campaign itself failed", traceback.format_exc()[-1000:])
    finally:
        make_writable(home)
        shutil.rmtree(home, ignore_errors=True)
    return Result(campaign.name, number, found.outcome, found.case, found.detail, found.kills)


def make_writable(folder: Path) -> None:
    """Let all folders below a folder be written again, so that they can be deleted."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder."""
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder, by their path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in files_below(folder)}
