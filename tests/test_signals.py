"""Stop signals: collected or raised, and afterwards as they were before."""

import os
import signal
import threading

import pytest

from scalor.signals import Stopped, stop_signals, stop_signals_raised


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
