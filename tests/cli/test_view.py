"""`scalor view` says what it needs."""

import socket
import sys
from pathlib import Path

import pytest

from scalor.cli.view import farewell, listen
from scalor.server.session import Session
from tests.edits.drawn import write_results, write_scene

from .conftest import Say


def test_a_folder_that_holds_no_tracks_is_refused(say: Say, tmp_path: Path) -> None:
    assert "holds no tracks.csv" in say("view", tmp_path).complaint


def test_without_its_packages_it_says_what_to_install(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'scalor[view]'" in say("view", tmp_path).complaint


def test_at_the_end_of_a_session_the_films_to_draw_again_are_named(tmp_path: Path) -> None:
    write_scene(tmp_path / "discs.mp4")
    write_results(tmp_path / "tracked", tmp_path / "discs.mp4", masks=False)
    session = Session(tmp_path / "tracked", 3600)
    session.edit({"op": "delete", "id": 2})
    session.close()
    assert "follow the edits\nids as tracked are still in overlay.mp4: " in farewell(session)
    session.edit({"op": "undo"})
    session.close()
    assert farewell(session).endswith("follow the edits")


def test_a_port_in_use_is_replaced_by_a_free_one_of_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, listen("127.0.0.1", taken.getsockname()[1]) as listener:
        address, port = listener.getsockname()
        assert address == "127.0.0.1"
        assert port not in (0, taken.getsockname()[1])
