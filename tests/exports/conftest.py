"""The drawn scene, tracked and put right, to export."""

import shutil
from pathlib import Path

import pytest

from scalor.edits import Delete, EditedFolder, Name, Swap
from scalor.exports import ExportSource, export_source
from scalor.measures import Calibration
from tests.edits.drawn import MIXED, write_tracked_scene


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn scene with its tracks, written once."""
    return write_tracked_scene(tmp_path_factory.mktemp("drawn"))


@pytest.fixture
def source(drawn: Path, tmp_path: Path) -> ExportSource:
    """Three tracks, of which the second has a gap of two frames and the third a name."""
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    folder = EditedFolder(tmp_path / "tracked")
    for step in (Swap(1, 2, MIXED), Delete(2, 10, 11), Name(3, "a <dancer> & more")):
        folder.do(step, write=False)
    return export_source(folder, Calibration(0.5))
