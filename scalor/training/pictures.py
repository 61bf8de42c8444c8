"""TensorBoard pictures of a run: frames with boxes and ids, reconstruction, background, masks, glimpses.

Without TensorBoard installed nothing is drawn; the JSONL log is always written.
"""

from pathlib import Path
from typing import Any

import torch

from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.model.scalor import SCALOR


class Pictures:
    def __init__(self, folder: Path, config: Config, first: int) -> None:
        self.every = config.train.picture_every
        self.writer: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first or None)

    def maybe(self, done: int, model: SCALOR, scenes: Scenes) -> None:
        if self.writer is None or done % self.every:
            return
