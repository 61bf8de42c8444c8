"""Clips of one's own video, seen whole and small, for models that learn its background (`model.background`).

All frames are read once, shrunk to `scene.frame`. The first 60 % of the time are for training and the rest for tests.
There is no truth. For trackers of real videos see `scalor.data.footage`, which gives the measured background instead.

N frames, H by W pixels, B clips.
"""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from scalor.config import SceneConfig
from scalor.data.clip import Clip
from scalor.data.footage import empty_truth
from scalor.data.hashing import key, whole
from scalor.data.observation import Observation
from scalor.errors import require

TRAINING = 0.6
"""Share of the time that is used for training, from the start."""
FIRST = 0  # number of a draw, see `hashing`


class WholeVideo:
    """An unlimited series of clips of one split. The same index always gives the same clip."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        from scalor.video import Selection, open_video  # imported here because only these scenes need codecs
        from scalor.video.resize import resize

        given = bool(config.footage)
        require(given, "scene.footage", config.footage, "name the video, and the same one as test.footage")
        video = open_video(Path(config.footage), Selection(stride=config.stride))
        frames = np.stack([resize(frame.picture, config.frame).transpose(2, 0, 1) for frame in video])
        cut = round(TRAINING * len(frames))
        own = frames[:cut] if split == "train" else frames[cut:]
        fits = len(own) >= config.length
        require(fits, "scene.length", config.length, f"the {split} part of {config.footage} has {len(own)} frames")
        self.seed, self.split = seed, split
        self.starts = len(own) - config.length + 1
        self.frames = torch.from_numpy(own).to(device)  # [N, 3, H, W]

    def clips(self, index: Int[Tensor, " B"], length: int) -> Clip:
        """Return the clips with these indices. Their truth is empty."""
        first = whole(key(self.seed, self.split, index), FIRST, self.starts)[:, None]
        frames = self.frames[first + torch.arange(length, device=index.device)].float() / 255
        return Clip(Observation(frames), empty_truth(frames))
