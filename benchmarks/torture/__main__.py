"""`python -m benchmarks.torture`: hostile inputs, kills and exhausted machines, seeded, within a time budget.

    make torture BUDGET=600
    python -m benchmarks.torture --only videos --budget 300 --seed 7 --more
    python -m benchmarks.torture --only videos --case 93 --seed 7

Prints how many cases ended how, and every case that did not end well with its number. The exit code is 1 if there are
any. With --more, the results are added to those in the file, and every campaign goes on after its last case there. A
run that is stopped (Ctrl-C) keeps what it has.
"""

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks import report
from benchmarks.torture import command_lines, fault_points, kills, limits, read_back, record, videos, weights
from benchmarks.torture.campaign import Campaign, run
from benchmarks.torture.commands import load_libraries
from benchmarks.torture.outcomes import GOOD, Result
from scalor.files import stop_signals

CAMPAIGNS = (
    videos.CAMPAIGN,
    weights.CAMPAIGN,
    read_back.CAMPAIGN,
    command_lines.CAMPAIGN,
    *kills.CAMPAIGNS,
    *fault_points.CAMPAIGNS,
    limits.CAMPAIGN,
)
SAVE_EVERY_S = 30.0
"""Seconds between two writes of the file."""


def options() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.torture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=600, help="seconds for all campaigns together (default 600)")
    parser.add_argument("--tries", type=int, help="cases of every campaign, however long they take")
    parser.add_argument("--only", nargs="+", default=[""], help="run only campaigns whose names contain one of these")
    parser.add_argument("--case", type=int, help="run only the case of this number, and write no file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time (default 1)")
    parser.add_argument("--more", action="store_true", help="add to the results in the file")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/torture.json"))
    return parser


def main(words: list[str] | None = None) -> int:
    """Run the campaigns, print the table and write the JSON."""
    words = sys.argv[1:] if words is None else words
    asked = options().parse_args(words)
    os.environ["OMP_NUM_THREADS"] = "1"
    load_libraries()
    chosen = [campaign for campaign in CAMPAIGNS if any(word in campaign.name for word in asked.only)]
    known = record.read(asked.out) if asked.more else record.Record()
    until = time.monotonic() + asked.budget
    ended_well = True
    with stop_signals() as stopped:
        for number, campaign in enumerate(chosen):
            shares = sum(other.share for other in chosen[number:])
            budget = (
                1e9 if asked.tries or asked.case is not None else (until - time.monotonic()) * campaign.share / shares
            )
            first = known.first(campaign.name, asked.seed) if asked.case is None else asked.case
            ended_well &= run_one(campaign, asked, words, known, first, budget, stopped)
            if stopped:
                break
    print("\n" + report.table(known.rows))
    return int(not ended_well)


def run_one(
    campaign: Campaign,
    asked: argparse.Namespace,
    words: list[str],
    known: record.Record,
    first: int,
    budget: float,
    stopped: list[int],
) -> bool:
    """Run a campaign, add its piece to the record, and save that now and then; return whether all cases ended well."""
    tries = 1 if asked.case is not None else asked.tries
    results: list[Result] = []
    begun = saved = time.monotonic()
    known.pieces.append(record.piece(campaign.name, [], first, 0, asked.jobs, words, asked.seed))

    def save() -> None:
        seconds = time.monotonic() - begun
        origin = known.pieces[-1].provenance
        ran = record.piece(campaign.name, results, first, seconds, asked.jobs, words, asked.seed)
        known.pieces[-1] = replace(ran, provenance=origin)
        if asked.case is None:
            known.write(asked.out)

    for result in run(campaign, asked.seed, budget, tries, first, asked.jobs):
        results.append(result)
        if result.outcome not in GOOD or asked.case is not None:
            print(f"{result.campaign} {result.number}: {result.outcome}: {result.case}: {result.detail}", flush=True)
        if time.monotonic() - saved > SAVE_EVERY_S:
            save()
            saved = time.monotonic()
        if stopped:
            break
    save()
    if not results:
        known.pieces.pop()
    return all(result.outcome in GOOD for result in results)


if __name__ == "__main__":
    sys.exit(main())
