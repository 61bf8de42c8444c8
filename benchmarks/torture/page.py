"""`python -m benchmarks.torture.page`: write the table of the recorded campaign into docs/torture.md."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "torture.md"
RESULTS = ROOT / "benchmarks" / "results" / "torture.json"
BEGIN, END = "<!-- torture: begin -->\n", "<!-- torture: end -->"
COLUMNS = ("tried", "clean", "warned", "traceback", "hang", "wrong", "lost", "kills")


def table(document: dict[str, Any]) -> str:
    """Return the sums of a campaign as a table, and where they come from."""
    lines = ["| campaign | " + " | ".join(COLUMNS) + " |", "| :-- |" + " --: |" * len(COLUMNS)]
    for row in document["rows"]:
        lines.append(f"| {row['campaign']} | " + " | ".join(f"{row[column]:,}" for column in COLUMNS) + " |")
    origins = [piece["provenance"] for piece in document["pieces"]]
    dates = sorted({origin["date"] for origin in origins})
    seeds = sorted({origin["seed"] for origin in origins})
    machines = sorted({f"{origin['hardware']['cores']} cores of an {origin['hardware']['cpu']}" for origin in origins})
    loads = [origin["hardware"]["load_before"] for origin in origins]
    lines.append(
        f"\n`python -m benchmarks.torture --more`, {len(origins)} pieces, {document['seconds'] / 60:.0f} minutes, "
        f"seed {', '.join(map(str, seeds))}, commits {', '.join(document['commits'])}, {', '.join(machines)} busy "
        f"with other work (load {min(loads):.0f} to {max(loads):.0f}), {', '.join(dates)}."
    )
    return "\n".join(lines) + "\n"


def with_table(text: str, found: str) -> str:
    """Return the page with another table."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + found + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(), table(json.loads(RESULTS.read_bytes()))))
