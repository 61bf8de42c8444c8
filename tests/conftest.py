"""One thread per test process, and every shape that the rooms of `scalor.model` promise is checked as tests run."""

from pathlib import Path

import model.checking  # noqa: F401 (this directory is on the path; the hook finds the checker by name)
import torch
from jaxtyping import install_import_hook

ROOMS = Path(__file__).parent.parent / "scalor" / "model"
# Not the loop over time itself: the checker's wrapper hides from torch.inference_mode that `stream` is a generator.
install_import_hook(
    [f"scalor.model.{file.stem}" for file in sorted(ROOMS.glob("[a-z]*.py")) if file.stem != "scalor"],
    "model.checking.checked",
)
torch.set_num_threads(1)
