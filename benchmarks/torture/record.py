"""The JSON of the campaigns: pieces of work, each with its provenance, that add up."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.torture.outcomes import GOOD, Result, Row, added, row_of
from benchmarks.track_command import origin


@dataclass(frozen=True)
class Piece:
    """Cases of one campaign that one process ran, one after the other."""

    first: int
    """Number of the first case."""
    seconds: float
    """Time that they took, with their preparation."""
    jobs: int
    """Cases at a time."""
    row: Row
    failures: list[Result]
    provenance: dict[str, Any]

    @property
    def next(self) -> int:
        """Number of the case after the last one."""
        return self.first + self.row.tried


@dataclass
class Record:
    """All pieces of a file."""

    pieces: list[Piece] = field(default_factory=list)

    def first(self, campaign: str, seed: int) -> int:
        """Return the number of the first case of a campaign that was not run with this seed."""
        ran = [piece for piece in self.pieces if piece.row.campaign == campaign and piece.provenance["seed"] == seed]
        return max((piece.next for piece in ran), default=0)

    @property
    def rows(self) -> list[Row]:
        """The sums of all pieces."""
        return added([piece.row for piece in self.pieces])

    def write(self, path: Path) -> None:
        """Write the sums and the pieces."""
        seconds = round(sum(piece.seconds for piece in self.pieces), 1)
        commits = sorted({piece.provenance["commit"] for piece in self.pieces})
        table = [asdict(row) for row in self.rows]
        pieces = [asdict(piece) for piece in self.pieces]
        report.write(path, {"rows": table, "seconds": seconds, "commits": commits, "pieces": pieces})


def read(path: Path) -> Record:
    """Read the pieces of a file; none if it does not exist."""
    if not path.exists():
        return Record()
    pieces = json.loads(path.read_bytes())["pieces"]
    return Record([piece_of(piece) for piece in pieces])


def piece_of(document: dict[str, Any]) -> Piece:
    """Return a piece from its JSON."""
    failures = [Result(**failure) for failure in document["failures"]]
    return Piece(**{**document, "row": Row(**document["row"]), "failures": failures})


def piece(
    campaign: str, results: Sequence[Result], first: int, seconds: float, jobs: int, words: Sequence[str], seed: int
) -> Piece:
    """Return the piece of some results."""
    failures = [result for result in results if result.outcome not in GOOD]
    return Piece(first, round(seconds, 1), jobs, row_of(campaign, results), failures, origin("torture", words, seed))
