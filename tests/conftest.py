"""One thread per test process, every shape that the models' files promise is checked as tests run, and untrained models
show their objects."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from jaxtyping import install_import_hook

ROOMS = Path(__file__).parent.parent / "scalor" / "model"
# The compiler cannot see through the checker. So not on a GPU, where the time step is compiled, and not for
# `scalor.kernels`, whose functions are compiled in their own tests.
if find_spec("beartype") is not None and not torch.cuda.is_available():
    import tests.model.checking  # noqa: F401 (the hook finds the checker by name)

    # Not the loop over time itself: the checker's wrapper hides from torch.inference_mode that `stream` is a generator.
    rooms = [f"scalor.model.{file.stem}" for file in sorted(ROOMS.glob("[a-z]*.py")) if file.stem != "scalor"]
    rooms += ["scalor.baselines.vrnn", "scalor.baselines.vae", "scalor.baselines.whole_frames"]
    install_import_hook(rooms, "tests.model.checking.checked")
torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def untrained_masks() -> Iterator[float]:
    """With masks as faint as they start, an untrained model would have no objects to test anything on. Gives what they
    start with otherwise."""
    from scalor.model import glimpses  # not above: the hook must come first

    with pytest.MonkeyPatch.context() as patch:
        faint = glimpses.INITIAL_MASK_SHIFT
        patch.setattr(glimpses, "INITIAL_MASK_SHIFT", 0.0)
        yield faint
