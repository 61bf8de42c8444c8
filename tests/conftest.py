"""One thread per test process, and the shapes that the package promises are checked as tests run."""

import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

PACKAGE = Path(__file__).parent.parent / "scalor"
CHECKED = sorted(
    f"scalor.{path.stem}"
    for path in (*PACKAGE.glob("*.py"), *(init.parent for init in PACKAGE.glob("*/__init__.py")))
    if path.stem not in ("__init__", "__main__")
)
"""All of the package."""

CHECKS = find_spec("beartype") is not None and not torch.cuda.is_available()
"""Whether shapes are checked. Not on a GPU, where the time step is compiled with all that it calls."""

if CHECKS:
    from tests import checking  # before anything of the package is imported

    checking.check_shapes(CHECKED)
torch.set_num_threads(1)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup had ignored, so that tests may send it


@pytest.fixture(scope="module")
def untrained_masks() -> Iterator[None]:
    """Make the masks of untrained models visible, for tests that need objects without a training.

    The masks of a new model are so faint that no object is born (`model.initial_mask`).
    """
    from scalor.model import glimpses  # not above: the hook must come first

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glimpses.GlimpseDecoder, "start_masks", lambda *_: None)
        yield


@pytest.fixture(autouse=True)
def _checks_of_shapes() -> None:
    """Check the first calls of every function in every test."""
    if CHECKS:
        checking.seen.clear()


@pytest.fixture(autouse=True)
def _denormal_numbers() -> Iterator[None]:
    """Let tests have denormal numbers, which a training before them in this process may have switched off."""
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(False)
