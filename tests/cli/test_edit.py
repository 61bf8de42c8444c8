"""`scalor edit`: every operation from the shell, its document, and its refusals."""

import csv
from pathlib import Path

import pytest

from scalor.edits import Delete, EditedFolder
from tests.edits.drawn import MIXED, true_centres

from .conftest import Say


def test_a_crossing_is_found_and_put_right(tracked: Path, say: Say) -> None:
    (found,) = say("edit", tracked, "crossings", "--next", "--json").document["crossings"]
    assert (found["a"], found["b"], found["frame"]) == (1, 2, MIXED)
    done = say("edit", tracked, "swap", found["a"], found["b"], "--from", found["frame"], "--json").document
    assert (done["entry"]["op"], done["edits"]) == ("swap", 1)
    with open(tracked / "tracks.csv", newline="") as file:
        for row in csv.DictReader(file):
            assert float(row["x"]) == pytest.approx(true_centres()[int(row["frame"]), int(row["id"]) - 1, 0], abs=1e-3)


def test_every_operation_and_the_log(tracked: Path, say: Say) -> None:
    for words in (
        ["split", 3, "--from", 10],
        ["merge", 3, 4],
        ["delete", 3, "--from", 2, "--to", 3],
        ["undo"],
        ["redo"],
        ["add", "--frame", 2, "--box", -3, 5, 4.5, 15, "--id", 3],
        ["add", "--frame", 2, "--box", 30, 5, 40, 15],
        ["name", 1, "queen bee"],
    ):
        assert "in effect" in say("edit", tracked, *words).out
    log = say("edit", tracked, "log", "--json").document
    assert [one["op"] for one in log["entries"]] == [
        *("split", "merge", "delete", "undo", "redo", "add", "add", "name"),
    ]
    assert len(log["in_effect"]) == 6
    assert log["names"] == {"1": "queen bee"}
    assert say("edit", "--json", tracked, "log").document == log
    assert log["entries"][0]["new"] == 4
    assert log["entries"][5]["box"] == [-3, 5, 4.5, 15]
    shown = say("edit", tracked, "log").out
    assert "delete 3 from frame 2 to frame 3" in shown
    assert "name 1 'queen bee'" in shown


def test_doubtful_places_are_listed(tracked: Path, say: Say) -> None:
    assert say("edit", tracked, "doubtful").out == "no doubtful place\n"
    say("edit", tracked, "delete", 3, "--from", 30)
    (place,) = say("edit", tracked, "doubtful", "--json").document["doubtful"]
    assert (place["kind"], place["id"], place["first"]) == ("ends inside", 3, 29)
    assert "track 3 ends inside the picture" in say("edit", tracked, "doubtful").out


def test_the_films_are_drawn_again(tracked: Path, say: Say) -> None:
    say("edit", tracked, "swap", 1, 2, "--from", MIXED)
    before = (tracked / "overlay.mp4").read_bytes()
    assert f"`scalor edit {tracked} render` draws again" in say("edit", tracked, "name", 1, "queen").out
    assert say("edit", tracked, "render").out == f"drawn again in {tracked}\n"
    assert (tracked / "overlay.mp4").read_bytes() != before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["swap", 1, 9, "--from", 3], "there is no track 9"),
        (["swap", 1, 2], "--from"),
        (["swap", 1, 2, "--from", -1], "at least 0"),
        (["swap", 0, 2, "--from", 1], "at least 1"),
        (["merge", 1, 2], "both have a box in 40 frames"),
        (["undo"], "nothing to undo"),
        (["add", "--frame", 99, "--box", 1, 2, 3, 4], "from 0 to 39"),
        (["add", "--frame", 9, "--box", 3, 2, 1, 4], "x0 < x1"),
        (["crossings", "--near", 0], "near is"),
        (["render", "--video", "none.mp4"], "none.mp4"),
        (["swop"], "swop"),
        ([], "OPERATION"),
    ],
)
def test_refusals(words: list[object], said: str, tracked: Path, say: Say) -> None:
    if words[:1] == ["render"]:
        say("edit", tracked, "delete", 1)
    assert said in say("edit", tracked, *words).complaint


def test_a_folder_without_results_is_refused(tmp_path: Path, say: Say) -> None:
    assert "holds no tracks.csv" in say("edit", tmp_path, "log").complaint


def test_files_that_lag_behind_the_log_are_made_again(tracked: Path, say: Say) -> None:
    EditedFolder(tracked).do(Delete(3), write=False)
    say("edit", tracked, "log")
    with open(tracked / "tracks.csv", newline="") as file:
        assert {row["id"] for row in csv.DictReader(file)} == {"1", "2"}
