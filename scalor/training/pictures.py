"""Pictures of a run: frames with boxes and ids, reconstruction, background, masks, glimpses.

They are written to TensorBoard if it is installed. For a model that is fitted to a video (`scalor fit`), the newest
picture is also written to `preview.png` in the run folder. Only SCALOR has pictures. The JSONL log is always written.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from scalor.config import Config, SystemConfig
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Model
from scalor.visual.colors import label_picture
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, strip, to_bytes

PREVIEW_FILE = "preview.png"
FRAME_SIDE = 192
"""Approximate side of one frame in a strip, pixels."""


class Pictures:
    """Writer of the pictures of a run."""

    def __init__(self, folder: Path, config: Config[SystemConfig], first: int) -> None:
        self.every = config.train.picture_every
        self.preview = folder / PREVIEW_FILE if config.scene.kind == "footage" else None
        self.writer: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first or None)

    def maybe(self, done: int, model: Model, scenes: Scenes) -> None:
        """Write the pictures of the first training clip if `done` steps is a multiple of `train.picture_every`."""
        nowhere = self.writer is None and self.preview is None
        if nowhere or done % self.every or not isinstance(model, SCALOR):
            return
        pictures = views(model, scenes.clips(0, 1).observation[0])
        if self.preview is not None:
            save_png(self.preview, pictures["clip"])
        if self.writer is not None:
            for name, picture in pictures.items():
                self.writer.add_image(name, picture, done, dataformats="HWC")
            self.writer.flush()

    def close(self) -> None:
        """Close the TensorBoard log."""
        if self.writer is not None:
            self.writer.close()


def views(model: SCALOR, frames: Observation) -> dict[str, np.ndarray]:
    """Return the pictures of one clip [T], each uint8 [h, w, 3]."""
    seen = model.reconstruct(frames)
    tracks = model.track(frames, masks=True) if len(frames) > 1 else seen.tracks
    labels = np.full((len(frames), *tracks.size), -1)
    if tracks.masks is not None:
        for row in range(len(tracks)):
            labels[tracks.frame[row]][tracks.masks[row]] = tracks.id[row]
    rows = {
        "boxes": overlay(frames.image.cpu().numpy(), tracks, scale=max(1, FRAME_SIDE // max(tracks.size))),
        "reconstruction": to_bytes(seen.frames[0]),
        "background": to_bytes(seen.background[0]),
        "masks": label_picture(labels),
    }
    return {"clip": strip(rows), "glimpses": glimpses(model, frames)}


def glimpses(model: SCALOR, frames: Observation) -> np.ndarray:
    """Return the glimpses of all slots: one row per slot, one column per frame, black where the slot is empty."""
    pictures = model.object_pictures(frames)[0].cpu().numpy()  # [T, K, 3, P, P]
    down = np.concatenate(list(pictures.transpose(1, 0, 3, 4, 2)), 1)  # [T, K*P, P, 3]
    return to_bytes(torch.from_numpy(np.concatenate(list(down), 1)).permute(2, 0, 1))
