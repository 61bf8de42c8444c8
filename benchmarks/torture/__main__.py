"""`python -m benchmarks.torture`: hostile inputs, kills and exhausted machines, seeded, within a time budget.

    make torture BUDGET=600
    python -m benchmarks.torture --only "damaged videos" --tries 200 --seed 7
    python -m benchmarks.torture --only "damaged videos" --case 93 --seed 7

Prints how many cases ended how, and every case that did not end well with its number. The exit code is 1 if there are
any.
"""

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import report
from benchmarks.torture import command_lines, fault_points, kills, limits, read_back, videos, weights
from benchmarks.torture.campaign import run
from benchmarks.torture.commands import load_libraries
from benchmarks.torture.outcomes import GOOD, rows
from benchmarks.track_command import origin

CAMPAIGNS = (
    videos.CAMPAIGN,
    weights.CAMPAIGN,
    read_back.CAMPAIGN,
    command_lines.CAMPAIGN,
    *kills.CAMPAIGNS,
    *fault_points.CAMPAIGNS,
    limits.CAMPAIGN,
)


def main(words: list[str] | None = None) -> int:
    """Run the campaigns, print the table and write the JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.torture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=600, help="seconds for all campaigns together (default 600)")
    parser.add_argument("--tries", type=int, help="cases of every campaign, however long they take")
    parser.add_argument("--only", nargs="+", default=[""], help="run only campaigns whose names contain one of these")
    parser.add_argument("--case", type=int, help="run only the case of this number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/torture.json"))
    asked = parser.parse_args(words)
    os.environ["OMP_NUM_THREADS"] = "1"
    load_libraries()
    chosen = [campaign for campaign in CAMPAIGNS if any(word in campaign.name for word in asked.only)]
    shares = sum(campaign.share for campaign in chosen)
    results = []
    for campaign in chosen:
        budget = 1e9 if asked.tries or asked.case is not None else asked.budget * campaign.share / shares
        tries, first = (1, asked.case) if asked.case is not None else (asked.tries, 0)
        found = run(campaign, asked.seed, budget, tries, first)
        results += found
        for result in found:
            if result.outcome not in GOOD or asked.case is not None:
                print(
                    f"{result.campaign} {result.number}: {result.outcome}: {result.case}: {result.detail}", flush=True
                )
    print("\n" + report.table(rows(results)))
    failures = [asdict(result) for result in results if result.outcome not in GOOD]
    table = [asdict(row) for row in rows(results)]
    words = sys.argv[1:] if words is None else words
    if asked.case is None:
        report.write(asked.out, {"rows": table, "failures": failures, **origin("torture", words, asked.seed)})
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
