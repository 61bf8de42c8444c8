"""Clips of the real Grand Central video, for users who have it, in the layout of the SCALOR paper (as in `replay`).

Squares of 240 px at eight places of the 720x480 video (Zhou et al. 2012), every eighth frame, the first nine tenths of
the time for training and the rest for tests. There is no ground truth. The squares are cut out once, which takes
minutes, and stored beside the video.

N frames, P places, B clips.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor
from tqdm import tqdm

from scalor.config import SceneConfig, require
from scalor.data.clip import Clip
from scalor.data.footage import empty_truth
from scalor.data.hashing import key, whole
from scalor.data.replay import CROP, PLACES, SHOWN, STRIDE, TRAINING, home
from scalor.errors import InputError
from scalor.files import replacing

VIDEOS = ("grandcentral.avi", "frames")
"""File name of the video, or of a folder with its frames."""
# Numbers of draws, see `hashing`.
PLACE, START = range(2)


class Station:
    """An unlimited series of clips of one split. The same index always gives the same clip."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        require(config.frame[0] == config.frame[1], "scene.frame", config.frame, "the station is shown in squares")
        self.seed, self.split = seed, split
        squares = kept_squares(config.frame[0])
        cut = int(TRAINING * len(squares))
        own = squares[:cut] if split == "train" else squares[cut:]
        fits = len(own) >= config.length
        require(fits, "scene.length", config.length, f"the {split} split has only {len(own)} frames")
        self.starts = len(own) - config.length + 1
        self.squares = torch.from_numpy(own).to(device)

    def clips(self, index: Int[Tensor, " B"], length: int) -> Clip:
        """Return the clips with these indices. Their truth is empty."""
        clip = key(self.seed, self.split, index)
        first = whole(clip, START, self.starts)[:, None]
        seen = self.squares[first + torch.arange(length, device=index.device), whole(clip, PLACE, len(PLACES))[:, None]]
        frames = seen.float() / 255
        return Clip(frames, empty_truth(frames))


def kept_squares(side: int) -> UInt8[np.ndarray, "N P 3 side side"]:
    """Return every eighth frame at all places. The first call cuts them out of the video and stores them."""
    folder = home(f"the station reads {VIDEOS[0]}, or the pictures in {VIDEOS[1]},")
    path = folder / f"squares_{side}.raw"
    if not path.exists():
        video = find_video(folder)
        with replacing(path) as beside, beside.open("wb") as file:
            for squares in cut_out(video, side):
                file.write(squares.tobytes())
    # The file takes gigabytes, so it is memory-mapped: only what is accessed is read, and nothing is written back.
    return np.memmap(path, np.uint8, "c").reshape(-1, len(PLACES), 3, side, side)


def find_video(folder: Path) -> Path:
    """Return the path of the video or of the folder with its frames."""
    for name in VIDEOS:
        if (folder / name).exists():
            return folder / name
    root = str(folder.parent)
    raise InputError(
        f"SCALOR_DATA is {root!r}: there is neither grand_central/{VIDEOS[0]} nor a folder grand_central/{VIDEOS[1]}; "
        "put the video there."
    )


def cut_out(path: Path, side: int) -> Iterator[UInt8[np.ndarray, "P 3 side side"]]:
    """Yield the squares at all places of every eighth frame of the video, scaled to `side` pixels."""
    from scalor.video import Selection, open_video  # imported here because only this function needs codecs
    from scalor.video.resize import shrink

    for frame in tqdm(open_video(path, Selection(stride=STRIDE)), "cutting", file=sys.stderr, unit="frame"):
        picture = frame.picture
        if picture.shape[:2] != SHOWN:
            raise InputError(f"{path} is {picture.shape[1]}x{picture.shape[0]}: give a video of 720x480 pixels.")
        parts = [shrink(picture[y : y + CROP, x : x + CROP], (side, side)) for x, y in PLACES]
        yield np.stack(parts).transpose(0, 3, 1, 2)
