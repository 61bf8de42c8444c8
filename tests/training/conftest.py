"""One run to compare the others with."""

import sys
from pathlib import Path

import pytest

from .tiny import run, tiny


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps without a disturbance. Look, do not touch."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch.utils.tensorboard", None)
        run(tiny(6, save_every=2), folder)
    return folder
