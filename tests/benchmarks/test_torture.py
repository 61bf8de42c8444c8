"""A slice of the campaign of hostile inputs, and the judgement of how commands end."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from benchmarks.torture import damage
from benchmarks.torture.outcomes import Ended, Outcome, Result, judge, rows

ROOT = Path(__file__).parent.parent.parent


def test_a_slice_of_the_campaigns_ends_well(tmp_path: Path) -> None:
    campaigns = ["damaged checkpoints", "files read back", "command lines", "kills of track"]
    words = ["--only", *campaigns, "--tries", "4", "--seed", "3", "--out", str(tmp_path / "torture.json")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.torture", *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "torture.json").read_text())["rows"]
    assert [row["campaign"] for row in found] == [*campaigns, "all"]
    assert [row["clean"] + row["warned"] for row in found] == [4] * 4 + [16]


SENTENCE = "scalor: video x.mp4 cannot be read: use another copy."


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (Ended(0, "", ""), None),
        (Ended(2, "", SENTENCE + "\n"), Outcome.WARNED),
        (Ended(2, "", " 50%|##\r" + SENTENCE + "\n"), Outcome.WARNED),
        (Ended(2, "", "decoder error\n" + SENTENCE), Outcome.WRONG),
        (Ended(2, "", ""), Outcome.WRONG),
        (Ended(1, "", SENTENCE), Outcome.WRONG),
        (Ended(1, "", "Traceback (most recent call last):\n  ...\nKeyError: 13"), Outcome.TRACEBACK),
        (Ended(-11, "", ""), Outcome.TRACEBACK),
        (Ended(None, "", ""), Outcome.HANG),
    ],
)
def test_the_end_of_a_command_is_judged(ended: Ended, outcome: Outcome | None) -> None:
    found = judge(ended)
    assert (found and found[0]) == outcome


def test_every_case_is_counted_once() -> None:
    results = [Result("a", number, outcome, "") for number, outcome in enumerate(Outcome)]
    (row,) = rows(results)
    assert (row.tried, row.clean, row.warned, row.traceback, row.hang, row.wrong, row.lost) == (6, 1, 1, 1, 1, 1, 1)
    both = rows([*results, Result("b", 0, Outcome.CLEAN, "")])
    assert [row.campaign for row in both] == ["a", "b", "all"]
    assert (both[-1].tried, both[-1].clean) == (7, 2)


KINDS = dict.fromkeys(kind for kind in (*damage.COMMON, *damage.RARE) if kind is not damage.nothing)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_damage_changes_the_file_and_a_seed_makes_it_again(kind: damage.Damage) -> None:
    data = Random(99).randbytes(5_000)
    for seed in range(20):
        changed = kind(data, Random(seed))
        assert changed != data
        assert changed == kind(data, Random(seed))
