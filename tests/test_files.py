"""Stop signals: collected or raised, and afterwards as they were before."""

import json
import math
import os
import signal
import threading
from pathlib import Path

import pytest

from benchmarks.torture.interrupts import killed_at, points
from scalor.files import Stopped, as_json, open_folder, print_json, stop_signals, stop_signals_raised


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
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


def test_a_hangup_that_is_ignored_stays_ignored_as_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals_raised():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_beside_the_main_thread_nothing_is_handled() -> None:
    entered = []

    def work() -> None:
        with stop_signals() as caught, stop_signals_raised():
            entered.append(caught)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert entered == [[]]


def test_what_could_not_be_measured_is_null_wherever_it_stands() -> None:
    document = {"mota": math.nan, "all": [1.5, math.inf, (2, -math.inf)], "of": {"mse": math.nan, "clips": 3}}
    plain = {"mota": None, "all": [1.5, None, [2, None]], "of": {"mse": None, "clips": 3}}
    assert json.loads(as_json(document), parse_constant=pytest.fail) == plain


def test_a_printed_document_ends_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"step": 1}])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"step": 1}]
    assert printed.endswith("]\n")


def test_a_kill_while_a_folder_is_tried_leaves_nothing_in_it(tmp_path: Path) -> None:
    def try_folder() -> int:
        open_folder("out")
        return 0

    whole = tmp_path / "whole"
    (whole / "out").mkdir(parents=True)
    calls = points(try_folder, whole)
    assert calls
    for number, call in enumerate(calls):
        home = tmp_path / str(number)
        (home / "out").mkdir(parents=True)
        assert killed_at(call, try_folder, home) is None, call
        assert list((home / "out").iterdir()) == []
