"""The drawn scene, tracked and put right, to export."""

from pathlib import Path

import pytest

from scalor.edits import Delete, EditedFolder, Name, Swap
from scalor.exports import ExportSource, export_source
from scalor.measures import Calibration
from tests.edits.drawn import MIXED, write_results, write_scene


@pytest.fixture
def source(tmp_path: Path) -> ExportSource:
    """Three tracks, of which the second has a gap of two frames and the third a name."""
    write_scene(tmp_path / "discs.mp4")
    write_results(tmp_path / "tracked", tmp_path / "discs.mp4", masks=False)
    folder = EditedFolder(tmp_path / "tracked")
    for step in (Swap(1, 2, MIXED), Delete(2, 10, 11), Name(3, "a <dancer> & more")):
        folder.do(step, write=False)
    return export_source(folder, Calibration(0.5))
