"""A result folder to serve, written once and copied for every test."""

import shutil
from pathlib import Path

import pytest

from tests.viewer.numbered import write_results


@pytest.fixture(scope="session")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_results(tmp_path_factory.mktemp("numbered") / "tracked")


@pytest.fixture
def folder(numbered: Path, tmp_path: Path) -> Path:
    shutil.copytree(numbered, tmp_path / "tracked")
    return tmp_path / "tracked"
