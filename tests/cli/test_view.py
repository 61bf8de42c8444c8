"""`scalor view` says what it needs."""

import signal
import socket
import sys
from pathlib import Path

import pytest

from scalor.cli.edit import films_note
from scalor.cli.view import draw_films_again, listen
from scalor.edits import Delete, EditedFolder, Name
from scalor.files import Stopped
from tests.edits.drawn import write_results, write_scene

from .conftest import Say


def test_a_folder_that_holds_no_tracks_is_refused(say: Say, tmp_path: Path) -> None:
    assert "holds no tracks.csv" in say("view", tmp_path).complaint


def test_without_its_packages_it_says_what_to_install(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'scalor[view]'" in say("view", tmp_path).complaint


def test_at_the_end_of_a_session_the_films_are_drawn_with_the_edits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_scene(tmp_path / "discs.mp4")
    write_results(tmp_path / "tracked", tmp_path / "discs.mp4", masks=False)
    folder = EditedFolder(tmp_path / "tracked")
    folder.do(Delete(2))
    before = (tmp_path / "tracked" / "overlay.mp4").read_bytes()

    with monkeypatch.context() as patch:  # control-C meanwhile
        patch.setattr("scalor.cli.view.draw_films", stop)
        assert draw_films_again(folder) == ""
    assert folder.stale_films == ["overlay.mp4"]
    (tmp_path / "discs.mp4").rename(tmp_path / "moved.mp4")
    assert "discs.mp4" in draw_films_again(folder)
    assert "overlay.mp4 as before: " in films_note(folder)
    assert (tmp_path / "tracked" / "overlay.mp4").read_bytes() == before

    (tmp_path / "moved.mp4").rename(tmp_path / "discs.mp4")
    assert draw_films_again(folder) == films_note(folder) == ""
    assert (tmp_path / "tracked" / "overlay.mp4").read_bytes() != before
    folder.do(Name(1, "a name is not in the films"))
    capsys.readouterr()
    assert draw_films_again(folder) == ""
    assert capsys.readouterr().err == ""


def stop(*_: object) -> None:
    raise Stopped(signal.SIGINT)


def test_a_port_in_use_is_replaced_by_a_free_one_of_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, listen("127.0.0.1", taken.getsockname()[1]) as listener:
        address, port = listener.getsockname()
        assert address == "127.0.0.1"
        assert port not in (0, taken.getsockname()[1])
