"""The log: every step survives the file, a damaged line is told in a sentence, a half-written last one is ignored."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.edits import Add, Delete, Merge, Name, Redo, Split, Step, Swap, Undo, read_log, step_from_dict, step_to_dict
from scalor.edits.edit_log import append
from scalor.errors import InputError

ids, frames = st.integers(1, 10**6), st.integers(0, 10**6)
sides = st.floats(-1e4, 1e4)
STEPS = st.one_of(
    st.builds(Swap, ids, ids, frames).filter(lambda step: step.a != step.b),
    st.builds(Merge, ids, ids).filter(lambda step: step.keep != step.other),
    st.builds(Split, ids, frames, st.none() | ids),
    st.builds(Delete, ids, st.none(), st.none() | frames),
    st.builds(Name, ids, st.text(st.characters(categories=["L", "N", "P"]), max_size=20)),
    st.builds(Add, frames, st.tuples(sides, sides).map(lambda at: (*at, at[0] + 1, at[1] + 2)), st.none() | ids),
    st.just(Undo()),
    st.just(Redo()),
)
LINES: list[Step] = [Swap(3, 5, 120), Name(3, "Königin"), Undo(), Redo(), Add(7, (1.5, 2.0, 3.0, 4.0))]


@settings(deadline=None)
@given(STEPS)
def test_a_step_survives_json(step: Step) -> None:
    assert step_from_dict(json.loads(json.dumps(step_to_dict(step)))) == step


@pytest.fixture
def log(tmp_path: Path) -> Path:
    for step in LINES:
        append(tmp_path / "edits.jsonl", step, "abc")
    return tmp_path / "edits.jsonl"


def test_a_log_is_read_as_it_was_written(log: Path) -> None:
    entries = read_log(log, "abc")
    assert [entry.step for entry in entries] == LINES
    assert all(entry.when.endswith("Z") for entry in entries)
    assert read_log(log.with_name("none.jsonl")) == []


def test_a_line_cut_short_anywhere_is_as_if_it_had_never_been_begun(log: Path) -> None:
    whole = log.read_bytes()
    last = whole[:-1].rfind(b"\n") + 1
    for end in range(last, len(whole)):
        log.write_bytes(whole[:end])
        assert [entry.step for entry in read_log(log)] == LINES[:-1]
    append(log, LINES[-1], "abc")
    assert [entry.step for entry in read_log(log, "abc")] == LINES


def test_a_log_cut_in_its_first_line_is_begun_again(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:9])
    assert read_log(log, "abc") == []
    append(log, LINES[0], "abc")
    assert [entry.step for entry in read_log(log, "abc")] == LINES[:1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "damaged"),
        ("[1, 2]", "damaged"),
        ("\udcff", "damaged"),
        ('{"op": "swop"}', "op is 'swop'"),
        ('{"op": ["swap"]}', "give one of"),
        ("{}", "op is None"),
        ('{"op": "swap", "a": 1, "b": 2}', "frame of swap is None"),
        ('{"op": "swap", "a": 1, "b": 2, "frame": 1.5}', "give a whole number"),
        ('{"op": "swap", "a": true, "b": 2, "frame": 1}', "a of swap is True"),
        ('{"op": "swap", "a": 0, "b": 2, "frame": 1}', "ids count from 1"),
        ('{"op": "swap", "a": 2, "b": 2, "frame": 1}', "give two ids"),
        ('{"op": "merge", "keep": 2, "other": 2}', "give two ids"),
        ('{"op": "split", "id": 2, "frame": -1}', "frames count from 0"),
        ('{"op": "delete", "id": 2, "first": 5, "last": 4}', "the first frame first"),
        ('{"op": "name", "id": 2, "name": 5}', "give a text"),
        ('{"op": "name", "id": 2, "name": "a\\nb"}', "one line"),
        ('{"op": "undo", "id": 2}', "no field 'id'"),
        ('{"op": "undo", "op2": 2}', "no field 'op2'"),
        ('{"op": "add", "frame": 2, "box": [1, 2, 3]}', "four numbers"),
        ('{"op": "add", "frame": 2, "box": [1, 2, 3, NaN]}', "finite"),
        ('{"op": "add", "frame": 2, "box": [1, 2, 3, "4"]}', "finite"),
        ('{"op": "add", "frame": 2, "box": [3, 2, 1, 4]}', "x0 < x1"),
    ],
)
def test_a_damaged_line_is_told_with_its_number(line: str, said: str, log: Path) -> None:
    lines = log.read_bytes().split(b"\n")
    lines[3] = line.encode("utf-8", "surrogateescape")
    log.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=r"edits\.jsonl, line 4") as told:
        read_log(log)
    assert said in str(told.value)


def test_undo_and_redo_need_something_to_work_on(tmp_path: Path) -> None:
    for step in (Undo(), Redo()):
        path = tmp_path / f"{step}.jsonl"
        append(path, step, "abc")
        with pytest.raises(InputError, match="nothing to"):
            read_log(path)


def test_a_log_of_other_tracks_or_of_another_version_is_refused(log: Path) -> None:
    with pytest.raises(InputError, match="belongs to other tracks"):
        read_log(log, "abd")
    log.write_text('{"scalor_edits": 2}\n')
    with pytest.raises(InputError, match="line 1"):
        read_log(log)
