"""A slice of the campaign of hostile inputs, and the judgement of how commands end."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from benchmarks.torture import damage, page, record
from benchmarks.torture.outcomes import Ended, Outcome, Result, Row, added, judge, rows

ROOT = Path(__file__).parent.parent.parent


def test_a_slice_of_the_campaigns_ends_well(tmp_path: Path) -> None:
    campaigns = ["damaged checkpoints", "files read back", "command lines", "fault points of a "]
    words = ["--only", *campaigns, "--tries", "2", "--seed", "3", "--out", str(tmp_path / "torture.json")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.torture", *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "torture.json").read_text())["rows"]
    assert [row["campaign"] for row in found] == [
        *campaigns[:3],
        *(f"fault points of a {what}" for what in ("replacement", "replacement, one by one", "save")),
        "all",
    ]
    assert [row["clean"] + row["warned"] for row in found] == [2] * 6 + [12]


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
    both = added(rows([*results, Result("b", 0, Outcome.CLEAN, "", kills=3), Result("a", 6, Outcome.LOST, "")]))
    assert [row.campaign for row in both] == ["a", "b", "all"]
    assert (both[0].tried, both[0].lost) == (7, 2)
    assert (both[-1].tried, both[-1].clean, both[-1].kills) == (8, 2, 3)


def test_pieces_of_a_campaign_add_up_and_are_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "torture.json"
    lost = Result("a", 1, Outcome.LOST, "a case", "why", 2)
    first = record.piece("a", [Result("a", 0, Outcome.CLEAN, ""), lost], 0, 1.0, 1, ["--seed", "3"], 3)
    record.Record([first]).write(path)
    known = record.read(path)
    assert known.pieces == [first]
    assert (known.first("a", 3), known.first("a", 4), known.first("b", 3)) == (2, 0, 0)
    known.pieces.append(record.piece("a", [Result("a", 2, Outcome.WARNED, "")], 2, 5.0, 1, ["--more"], 3))
    known.write(path)
    written = json.loads(path.read_text())
    assert written["seconds"] == 6
    assert [(row["tried"], row["lost"], row["kills"]) for row in written["rows"]] == [(3, 1, 2)]
    assert [piece["provenance"]["command"] for piece in written["pieces"]] == [
        "python -m benchmarks.torture --seed 3",
        "python -m benchmarks.torture --more",
    ]


KINDS = dict.fromkeys(kind for kind in (*damage.COMMON, *damage.RARE) if kind is not damage.nothing)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_damage_changes_the_file_and_a_seed_makes_it_again(kind: damage.Damage) -> None:
    data = Random(99).randbytes(5_000)
    for seed in range(20):
        changed = kind(data, Random(seed))
        assert changed != data
        assert changed == kind(data, Random(seed))


def test_the_page_shows_the_recorded_campaign() -> None:
    document = json.loads(page.RESULTS.read_bytes())
    text = page.PAGE.read_text()
    assert page.with_table(text, page.table(document)) == text
    assert all(row[bad] == 0 for row in document["rows"] for bad in ("traceback", "hang", "wrong", "lost"))
    assert added([piece.row for piece in record.read(page.RESULTS).pieces]) == [Row(**row) for row in document["rows"]]
