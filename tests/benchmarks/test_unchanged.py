"""`python -m benchmarks.unchanged` tells working trees that compute the same from those that do not."""

import json
from pathlib import Path

import pytest

from benchmarks.unchanged import main, tasks

PROGRAM = '''
"""A command line that writes what it is told to, whatever the command."""
import sys
from pathlib import Path

words = sys.argv[1:]
out = Path(words[words.index("--out") + 1])
out.mkdir(parents=True)
if {fails}:
    sys.exit("scalor: out of luck.")
(out / "tracks.csv").write_text("""{tracks}""")
(out / "log.jsonl").write_text("""{log}""")
'''
TRACKS = "frame,id,x0,y0,x1,y1,confidence\n0,1,2,3,4,5,0.9\n1,1,2,3,4,5,0.8\n1,2,6,7,8,9,0.7\n"
OLDER = "id,frame,x0,y0,x1,y1,presence\n0,0,2,3,4,5,0.9\n0,1,2,3,4,5,0.8\n1,1,6,7,8,9,0.7\n"
LOG = '{"step": 1, "elbo": -3.25, "seconds": 4}\n{"step": 2, "elbo": -3.125, "seconds": 5}\n'


def tree(folder: Path, tracks: str = TRACKS, log: str = LOG, fails: bool = False) -> str:
    """Write a working tree whose package does nothing but write results."""
    (folder / "scalor").mkdir(parents=True)
    (folder / "scalor" / "__init__.py").write_text("")
    (folder / "scalor" / "__main__.py").write_text(PROGRAM.format(tracks=tracks, log=log, fails=fails))
    return str(folder)


def compared(one: str, other: str, out: Path, task: str) -> tuple[int, str]:
    """Return the exit code, and what is said of one task."""
    code = main([one, other, "--only", task, "--out", str(out)])
    (row,) = json.loads(out.read_text())["rows"]
    return code, row["same"]


@pytest.mark.parametrize("task", ["demo", "50 steps of shapes-tiny"])
def test_two_trees_that_compute_the_same_are_unchanged(task: str, tmp_path: Path) -> None:
    one, other = tree(tmp_path / "one"), tree(tmp_path / "other")
    assert compared(one, other, tmp_path / "said.json", task) == (0, "yes")


@pytest.mark.parametrize(
    ("task", "tracks", "log"),
    [
        ("demo", TRACKS.replace("0.7", "0.71"), LOG),
        ("demo", TRACKS.replace("6,7,8,9", "6,7,8,9.5"), LOG),
        ("demo", TRACKS.replace("1,2,6", "1,1,6"), LOG),
        ("demo", TRACKS.rsplit("\n", 2)[0] + "\n", LOG),
        ("50 steps of shapes-tiny", TRACKS, LOG.replace("3.125", "3.1250001")),
    ],
)
def test_one_other_number_is_noticed(task: str, tracks: str, log: str, tmp_path: Path) -> None:
    one, other = tree(tmp_path / "one"), tree(tmp_path / "other", tracks, log)
    assert compared(one, other, tmp_path / "said.json", task) == (1, "NO")


def test_times_and_names_of_columns_and_where_ids_start_do_not_matter(tmp_path: Path) -> None:
    one = tree(tmp_path / "one")
    other = tree(tmp_path / "other", OLDER, LOG.replace('"seconds": 4', '"seconds": 7'))
    assert compared(one, other, tmp_path / "said.json", "demo") == (0, "yes")
    assert compared(one, other, tmp_path / "said.json", "50 steps of shapes-tiny") == (0, "yes")


def test_a_command_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    one, other = tree(tmp_path / "one"), tree(tmp_path / "other", fails=True)
    code, said = compared(one, other, tmp_path / "said.json", "demo")
    assert code == 1
    assert said == f"failed: {other}: scalor: out of luck."


def test_without_a_result_nothing_is_said_to_be_the_same(tmp_path: Path) -> None:
    empty = TRACKS.split("\n")[0] + "\n"
    one, other = tree(tmp_path / "one", empty), tree(tmp_path / "other", empty)
    assert compared(one, other, tmp_path / "said.json", "demo") == (1, "NO")


def test_real_footage_is_compared_where_it_is_given(tmp_path: Path) -> None:
    without, given = tasks(None, tmp_path / "scene.npy"), tasks(tmp_path, tmp_path / "scene.npy")
    assert given[: len(without)] == without
    assert all("vtest.avi" in task.name for task in given[len(without) :])
    assert len(given) > len(without)
