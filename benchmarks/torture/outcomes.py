"""What a case of the campaign can end with, and how the end of a command is judged."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum


class Outcome(StrEnum):
    """The end of a case. The first two are good."""

    CLEAN = "clean"
    """The results are whole and right."""
    WARNED = "warned"
    """The input was refused in one sentence, or the results say what is missing."""
    TRACEBACK = "traceback"
    """A traceback, or a crash of the process."""
    HANG = "hang"
    """No end within the time limit."""
    WRONG = "wrong"
    """Success is claimed and the results are not whole, or the refusal is not one clear sentence."""
    LOST = "lost"
    """Something that was saved before is gone."""


GOOD = (Outcome.CLEAN, Outcome.WARNED)


@dataclass(frozen=True)
class Result:
    """One case: its number makes it again."""

    campaign: str
    number: int
    outcome: Outcome
    case: str
    """What was done, in a few words."""
    detail: str = ""
    """What was seen, where the outcome is not good."""
    kills: int = 0
    """Kills of the case."""


@dataclass(frozen=True)
class Row:
    """The counts of a campaign."""

    campaign: str
    tried: int
    clean: int
    warned: int
    traceback: int
    hang: int
    wrong: int
    lost: int
    kills: int = 0


def rows(results: Sequence[Result]) -> list[Row]:
    """Return the counts of every campaign, and of all of them."""
    names = list(dict.fromkeys(result.campaign for result in results))
    return [row_of(name, [result for result in results if result.campaign == name]) for name in names]


def row_of(name: str, results: Sequence[Result]) -> Row:
    """Return the counts of some results."""
    counts = Counter(str(result.outcome) for result in results)
    outcomes = {str(outcome): counts[str(outcome)] for outcome in Outcome}
    return Row(name, len(results), **outcomes, kills=sum(result.kills for result in results))


def added(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each campaign, the sum of its rows, and one for all campaigns if there are several."""
    names = list(dict.fromkeys(row.campaign for row in rows))
    sums = [sum_of(name, [row for row in rows if row.campaign == name]) for name in names]
    return [*sums, sum_of("all", rows)] if len(sums) > 1 else sums


def sum_of(name: str, rows: Sequence[Row]) -> Row:
    """Return the sum of some rows."""
    counts = [field.name for field in fields(Row) if field.name != "campaign"]
    return Row(name, **{count: sum(getattr(row, count) for row in rows) for count in counts})


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None
    """The exit code, negative for a signal, None if it did not end in time."""
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The last line that it wrote to stderr, as a terminal shows it."""
        lines = [line.split("\r")[-1] for line in self.err.rstrip("\n").split("\n")]
        return lines[-1]


REFUSAL = re.compile(r"scalor( [a-z-]+)?: .+[.!)]$")


def judge(ended: Ended) -> tuple[Outcome, str] | None:
    """Return the outcome of a command by the way it ended, or None if it claims success.

    >>> judge(Ended(2, "", "scalor: video x.mp4 cannot be read: use another copy."))
    (<Outcome.WARNED: 'warned'>, '')
    >>> judge(Ended(0, "", "")) is None
    True
    """
    if ended.code is None:
        return Outcome.HANG, ended.sentence[-300:]
    if "Traceback (most recent call last)" in ended.err or ended.code < 0:
        return Outcome.TRACEBACK, f"exit {ended.code}: {ended.sentence[-300:]}"
    if ended.code == 0:
        return None
    told = [line.split("\r")[-1] for line in ended.err.rstrip("\n").split("\n")]
    refusals = [line for line in told if line and not line.startswith(("warning: ", "usage: "))]
    if ended.code == 2 and len(refusals) == 1 and REFUSAL.match(refusals[0]):
        return Outcome.WARNED, ""
    return Outcome.WRONG, f"exit {ended.code}: {' / '.join(refusals)[-300:]}"
