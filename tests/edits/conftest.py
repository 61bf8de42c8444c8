"""A tracked folder to correct."""

from pathlib import Path

import pytest

from tests.edits.drawn import write_results, write_scene


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The result folder of the drawn scene, with masks, beside its video."""
    write_scene(tmp_path / "discs.mp4")
    write_results(tmp_path / "tracked", tmp_path / "discs.mp4")
    return tmp_path / "tracked"
