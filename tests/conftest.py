"""One thread per test process, and the shapes that most of the package promises are checked as tests run."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch
from jaxtyping import install_import_hook

# The compiler cannot see through the checker. So not on a GPU, where the time step is compiled, and not for
# `scalor.kernels`, whose functions are compiled in their own tests.
if find_spec("beartype") is not None and not torch.cuda.is_available():
    import tests.model.checking  # noqa: F401 (the hook finds the checker by name)

    packages = [
        f"scalor.{name}" for name in ("model", "nn", "still", "video", "tracking", "camera", "data.observation")
    ]
    packages += ["scalor.baselines.vrnn", "scalor.baselines.vae", "scalor.baselines.whole_frames"]
    install_import_hook(packages, "tests.model.checking.checked")
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def untrained_masks() -> Iterator[None]:
    """Make the masks of untrained models visible, for tests that need objects without a training.

    The masks of a new model are so faint that no object is born (`INITIAL_MASK_SHIFT`).
    """
    from scalor.model import glimpses  # not above: the hook must come first

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glimpses, "INITIAL_MASK_SHIFT", 0.0)
        yield


@pytest.fixture(autouse=True)
def _denormal_numbers() -> Iterator[None]:
    """Let tests have denormal numbers, which a training before them in this process may have switched off."""
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(False)
