"""All files of a result are replaced together, and nothing that a run did not write is replaced."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scalor import replacement
from scalor.errors import InputError
from scalor.replacement import MANIFEST, replacing_together, settle

NAMES = ("a.txt", "b.txt", "c.txt")


def put(folder: Path, text: str, names: tuple[str, ...] = NAMES) -> None:
    with replacing_together(folder, NAMES) as partial:
        for name in names:
            (partial / name).write_text(text)


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file() and path.name != MANIFEST}


def test_files_of_an_earlier_result_go_when_the_new_one_is_complete(tmp_path: Path) -> None:
    put(tmp_path, "old")
    with replacing_together(tmp_path, NAMES) as partial:
        (partial / "a.txt").write_text("new")
        (partial / "scratch").write_text("not a result")
        assert texts(tmp_path) == dict.fromkeys(NAMES, "old")
    assert texts(tmp_path) == {"a.txt": "new"}


def test_a_stop_signal_waits_until_all_files_are_in_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "old")
    rename = os.rename
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored

    def interrupted(source: Path, target: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        rename(source, target)

    monkeypatch.setattr("scalor.replacement.os.rename", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            put(tmp_path, "new")
    finally:
        signal.signal(signal.SIGINT, before)
    assert texts(tmp_path) == dict.fromkeys(NAMES, "new")


def test_two_runs_cannot_write_into_one_folder(tmp_path: Path) -> None:
    with replacing_together(tmp_path, NAMES) as partial:
        (partial / "a.txt").write_text("first")
        with pytest.raises(InputError, match="is being written by another run: wait for it, or choose another"):
            put(tmp_path, "second")
    assert texts(tmp_path) == {"a.txt": "first"}
    put(tmp_path, "second", ("b.txt",))
    assert texts(tmp_path) == {"b.txt": "second"}


def test_a_folder_in_the_way_of_a_file_is_told_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "b.txt").mkdir()
    with pytest.raises(InputError, match=r"b\.txt \(it is a folder\): move it away"):
        put(tmp_path, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def by_exchange(folder: Path) -> None:
    """Leave the folder as it is: it can be exchanged as a whole."""


def one_by_one(folder: Path) -> None:
    """Put a folder of the user into it, which no exchange can take along."""
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_text("mine")


WAYS = pytest.mark.parametrize("prepare", [by_exchange, one_by_one])


@WAYS
def test_files_of_the_user_stay(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    prepare(folder)
    (folder / "mine.csv").write_text("mine")
    (folder / "link").symlink_to("mine.csv")
    put(folder, "old")
    put(folder, "new", ("a.txt",))
    assert texts(folder) == {"a.txt": "new", "mine.csv": "mine", "link": "mine"}
    assert (folder / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_a_file_that_no_run_wrote_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("mine")
    with pytest.raises(InputError, match=r"b\.txt was not written by an earlier run"):
        put(tmp_path, "new")
    assert texts(tmp_path) == {"b.txt": "mine"}


def test_a_file_that_was_changed_since_is_never_replaced(tmp_path: Path) -> None:
    put(tmp_path, "old")
    (tmp_path / "b.txt").write_text("corrected by hand")
    with pytest.raises(InputError, match=r"b\.txt was changed after"):
        put(tmp_path, "new")
    assert texts(tmp_path)["b.txt"] == "corrected by hand"


@pytest.mark.parametrize("name", ["b.txt", "", "*.png"])
def test_an_input_is_never_replaced_even_if_an_earlier_run_wrote_it(tmp_path: Path, name: str) -> None:
    put(tmp_path, "old")
    with pytest.raises(InputError, match="input"), replacing_together(tmp_path, NAMES, [tmp_path / name]):
        pytest.fail("the block must not begin")
    assert texts(tmp_path) == dict.fromkeys(NAMES, "old")


def test_inputs_with_other_names_may_lie_in_the_folder_of_the_results(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_text("film")
    with replacing_together(tmp_path, NAMES, [tmp_path / "film.mp4", tmp_path.parent]) as partial:
        (partial / "a.txt").write_text("new")
    assert texts(tmp_path) == {"a.txt": "new", "film.mp4": "film"}


@WAYS
def test_files_of_the_result_that_are_not_replaced_stay(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    prepare(folder)
    put(folder, "old")
    with replacing_together(folder, ["b.txt", "c.txt"]) as partial:
        (partial / "b.txt").write_text("new")
    assert texts(folder) == {"a.txt": "old", "b.txt": "new"}
    put(folder, "next")  # the manifest still knows them all
    assert texts(folder) == dict.fromkeys(NAMES, "next")


@pytest.mark.parametrize("damage", ["", "[]", "{}", "[" * 100_000, '{"files": 3}', "\x00"])
def test_a_damaged_manifest_protects_every_file(tmp_path: Path, damage: str) -> None:
    put(tmp_path, "old")
    (tmp_path / MANIFEST).write_text(damage)
    with pytest.raises(InputError, match="was not written by an earlier run"):
        put(tmp_path, "new")
    assert texts(tmp_path) == dict.fromkeys(NAMES, "old")


def test_the_working_directory_stays_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path(), "old")
    put(Path(), "new")
    assert texts(Path()) == dict.fromkeys(NAMES, "new")
    assert texts(tmp_path) == dict.fromkeys(NAMES, "new")


FILE_EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "shutil.copystat", "ctypes.dlsym")
"""Audit events of calls that change files; the exchange itself is a foreign function, looked up by name."""


def killed_at(event_number: int, work: Callable[[], None]) -> bool:
    """Run some work in a process that is killed at its n-th call that may change a file. Return whether it was."""
    child = os.fork()
    if child == 0:
        left = event_number

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event in FILE_EVENTS and (event != "open" or arguments[1] not in ("r", "rb")):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@WAYS
def test_a_kill_at_any_call_leaves_all_old_files_or_all_new_ones(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    old, new = dict.fromkeys(NAMES, "old"), {"a.txt": "new", "b.txt": "new"}
    seen = []
    for number in range(1, 200):
        folder = tmp_path / str(number) / "out"
        folder.mkdir(parents=True)
        prepare(folder)
        (folder / "mine.csv").write_text("mine")
        put(folder, "old")
        killed = killed_at(number, lambda folder=folder: put(folder, "new", ("a.txt", "b.txt")))  # type: ignore[misc]
        if prepare is one_by_one:
            settle(folder)  # as everything does that reads results
        found = texts(folder)
        assert found.pop("mine.csv") == "mine"
        assert found in (old, new)
        seen.append(found == new)
        if not killed:
            break
        put(folder, "next")  # what the killed run left is in nobody's way
        assert texts(folder) == {**dict.fromkeys(NAMES, "next"), "mine.csv": "mine"}
        assert sorted(path.name for path in folder.parent.iterdir()) == ["out"]
    assert not killed
    assert seen[-1]
    assert len(seen) > 10
    assert seen == sorted(seen), "from some call on, the new files are there"


def test_without_an_exchange_the_files_move_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(one: Path, other: Path) -> None:
        raise OSError("no exchange of folders")

    monkeypatch.setattr(replacement, "exchange", refuse)
    put(tmp_path, "old")
    put(tmp_path, "new", ("c.txt",))
    assert texts(tmp_path) == {"c.txt": "new"}
    assert set(json.loads((tmp_path / MANIFEST).read_text())["files"]) == {"c.txt"}
