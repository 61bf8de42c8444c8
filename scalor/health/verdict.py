"""The verdict of the health report: `Measure` with its level, `Limits` of a level, and `Health`, all measures."""

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "warn", "bad"]
Verdict = Literal["good", "doubtful", "not to be trusted"]
VERDICTS: dict[Level, Verdict] = {"ok": "good", "warn": "doubtful", "bad": "not to be trusted"}
LEVELS: tuple[Level, ...] = ("ok", "warn", "bad")


@dataclass(frozen=True)
class Measure:
    """One quantity that was measured without labels."""

    name: str
    value: float
    unit: str
    level: Level
    sentence: str
    """Description of the measurement, with its value."""
    remedy: str
    """Advice for the user; empty if the level is ok."""


@dataclass(frozen=True)
class Health:
    r"""Health report of a tracking run: a verdict and the measures behind it.

    >>> print("\n".join(health.lines()))
    health: doubtful
      warning: Boxes cover 48 % of the foreground, which is everything that moves. Objects are missed: ...
    """

    verdict: Verdict
    measures: tuple[Measure, ...]

    def __getitem__(self, name: str) -> Measure:
        """Return the measure of this name."""
        return next(measure for measure in self.measures if measure.name == name)

    def to_dict(self) -> dict[str, object]:
        """Return the report as a dictionary for JSON."""
        return {"verdict": self.verdict, "measures": [asdict(measure) for measure in self.measures]}

    def lines(self, everything: bool = False) -> list[str]:
        """Return lines of text for the terminal: the verdict, then the measures that are not ok, the worst first.

        With `everything`, the measures that are ok follow.
        """
        words = {"ok": "ok", "warn": "warning", "bad": "bad"}
        shown = [one for level in reversed(LEVELS) for one in self.measures if one.level == level]
        return [
            f"health: {self.verdict}",
            *(
                f"  {words[one.level]}: {one.sentence}{' ' if one.remedy else ''}{one.remedy}"
                for one in shown
                if everything or one.level != "ok"
            ),
        ]


def verdict_of(measures: tuple[Measure, ...]) -> Verdict:
    """Return the verdict of the worst measure."""
    worst = max((LEVELS.index(measure.level) for measure in measures), default=0)
    return VERDICTS[LEVELS[worst]]


@dataclass(frozen=True)
class Limits:
    """Values from which a measure is a warning or bad.

    Larger values are worse if `bad` is at least `warn`, and smaller values are worse otherwise.
    """

    warn: float
    bad: float

    def level(self, value: float) -> Level:
        """Return the level of a value."""
        sign = 1 if self.bad >= self.warn else -1
        if sign * value >= sign * self.bad:
            return "bad"
        return "warn" if sign * value >= sign * self.warn else "ok"
