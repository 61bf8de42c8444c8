"""A tracked folder to correct, written once and copied for every test."""

import shutil
from pathlib import Path

import pytest

from tests.edits.drawn import write_results, write_scene


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The video of the drawn scene with its result folder."""
    home = tmp_path_factory.mktemp("drawn")
    write_scene(home / "discs.mp4")
    write_results(home / "tracked", home / "discs.mp4")
    return home


@pytest.fixture
def folder(drawn: Path, tmp_path: Path) -> Path:
    """The result folder of the drawn scene, with masks."""
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    return tmp_path / "tracked"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The same folder, written beside its own video, which may be moved."""
    write_scene(tmp_path / "discs.mp4")
    write_results(tmp_path / "tracked", tmp_path / "discs.mp4")
    return tmp_path / "tracked"
