"""What a report of health is made of: measures, each with a level, and a verdict over them."""

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "warn", "bad"]
Verdict = Literal["good", "doubtful", "not to be trusted"]
VERDICTS: dict[Level, Verdict] = {"ok": "good", "warn": "doubtful", "bad": "not to be trusted"}
LEVELS: tuple[Level, ...] = ("ok", "warn", "bad")


@dataclass(frozen=True)
class Measure:
    """One thing that was measured without labels."""

    name: str
    value: float
    unit: str
    level: Level
    sentence: str
    """What was measured, with the number."""
    remedy: str
    """What to do about it; empty where all is well."""


@dataclass(frozen=True)
class Health:
    """How far the tracks of a video can be trusted, and why.

    >>> print("\\n".join(health.lines()))
    health: doubtful
      warning: objects' boxes explain 48 % of what moves. Some things are missed: ...
    """

    verdict: Verdict
    measures: tuple[Measure, ...]

    def __getitem__(self, name: str) -> Measure:
        return next(measure for measure in self.measures if measure.name == name)

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {"verdict": self.verdict, "measures": [asdict(measure) for measure in self.measures]}

    def lines(self, everything: bool = False) -> list[str]:
        """For the terminal: the verdict, then what is wrong, the worst first; with `everything` also what is well."""
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
    """As good as the worst measure."""
    worst = max((LEVELS.index(measure.level) for measure in measures), default=0)
    return VERDICTS[LEVELS[worst]]
