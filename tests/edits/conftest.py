"""A tracked folder to correct, written once and copied for every test."""

import shutil
from pathlib import Path

import pytest

from tests.edits.drawn import write_tracked_scene


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The video of the drawn scene with its result folder."""
    return write_tracked_scene(tmp_path_factory.mktemp("drawn"), masks=True)


@pytest.fixture
def folder(drawn: Path, tmp_path: Path) -> Path:
    """The result folder of the drawn scene, with masks."""
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    return tmp_path / "tracked"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The same folder, written beside its own video, which may be moved."""
    return write_tracked_scene(tmp_path, masks=True) / "tracked"
