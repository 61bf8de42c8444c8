"""Stop signals: collected or raised, and afterwards as they were before."""

import json
import math
import os
import signal
import threading
from pathlib import Path

import pytest

from scalor.errors import InputError
from scalor.files import Stopped, as_json, print_json, replacing_together, stop_signals, stop_signals_raised


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_raised_where_the_work_is(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Stopped) as stop, stop_signals_raised():
        os.kill(os.getpid(), number)
    assert stop.value.number == number
    assert signal.getsignal(number) is before


def test_a_signal_is_collected_and_the_next_one_does_what_it_did_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals_raised(), stop_signals() as caught:
        os.kill(os.getpid(), signal.SIGTERM)
        assert caught == [signal.SIGTERM]
        with pytest.raises(Stopped):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_beside_the_main_thread_nothing_is_handled() -> None:
    entered = []

    def work() -> None:
        with stop_signals() as caught, stop_signals_raised():
            entered.append(caught)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert entered == [[]]


NAMES = ("a.txt", "b.txt", "c.txt")


def put(folder: Path, text: str, names: tuple[str, ...] = NAMES) -> None:
    with replacing_together(folder, NAMES) as partial:
        for name in names:
            (partial / name).write_text(text)


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


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
    replace = os.replace
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored

    def interrupted(source: Path, target: Path) -> None:
        if target.name == "b.txt":
            signal.raise_signal(signal.SIGINT)
        replace(source, target)

    monkeypatch.setattr("scalor.files.os.replace", interrupted)
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


def test_what_could_not_be_measured_is_null_wherever_it_stands() -> None:
    document = {"mota": math.nan, "all": [1.5, math.inf, (2, -math.inf)], "of": {"mse": math.nan, "clips": 3}}
    plain = {"mota": None, "all": [1.5, None, [2, None]], "of": {"mse": None, "clips": 3}}
    assert json.loads(as_json(document), parse_constant=pytest.fail) == plain


def test_a_printed_document_ends_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"step": 1}])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"step": 1}]
    assert printed.endswith("]\n")
