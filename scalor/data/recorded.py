"""Composed clips that have been compressed by a real H.264 encoder.

Encoding runs on the CPU, so a bank of such clips is made once, before training, and kept on the training device. Clips
are enlarged before they are encoded and reduced afterwards, because real videos are compressed at their own resolution
before a model scales them down.

M clips in the bank, B clips, T frames, N objects, H by W pixels.
"""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor

from scalor.data.clip import Clip, Truth
from scalor.errors import without_extra

ENLARGED = (1, 2, 3)
"""Factors by which clips are enlarged before encoding; each is used equally often."""
QUALITY = (20, 38)
"""Range of x264's constant rate factor: from hardly visible losses to obvious blocks."""
BANK_BATCH = 32
"""Number of clips that are drawn in one batch for the bank."""

Pictures = UInt8[np.ndarray, "T H W 3"]


class RecordedClips:
    """A bank of clips that were encoded and decoded.

    >>> bank = RecordedClips(clips_from_a_compositor, seed=0)
    >>> clip = bank.replace(clip, chosen, number)
    """

    def __init__(self, drawn: Iterator[Clip], seed: int) -> None:
        """Encode and decode the colours of all clips that `drawn` yields, several in parallel."""
        colours, rest, truths = [], [], []
        random = np.random.default_rng(seed)
        with ThreadPoolExecutor() as pool:
            for clip in drawn:
                count = len(clip.frames)
                pictures = clip.colours.permute(0, 1, 3, 4, 2).mul(255).round().byte().cpu().numpy()
                quality, enlarged = random.integers(*QUALITY, count, endpoint=True), random.choice(ENLARGED, count)
                decoded = list(pool.map(round_trip, pictures, quality.tolist(), enlarged.tolist()))
                colours.append(torch.from_numpy(np.stack(decoded)).permute(0, 1, 4, 2, 3).contiguous())
                rest.append(clip.frames[:, :1, 3:])
                truths.append(clip.truth)
        device = truths[0].id.device
        self.colours: UInt8[Tensor, "M T 3 H W"] = torch.cat(colours).to(device)
        self.rest = torch.cat(rest)
        """Background and ruler channels, which are constant throughout a clip."""
        self.truth = {field.name: torch.cat([getattr(one, field.name) for one in truths]) for field in fields(Truth)}
        self.truth["owner"] = self.truth["owner"].short()  # one value per pixel: a quarter of the memory

    def __len__(self) -> int:
        return len(self.colours)

    def replace(self, clip: Clip, chosen: Bool[Tensor, " B"], number: Int[Tensor, " B"]) -> Clip:
        """Return `clip` with the chosen clips replaced by the bank's clips of these numbers."""
        length = clip.frames.shape[1]
        colours = self.colours[number, :length].to(clip.frames.dtype) / 255
        rest = self.rest[number].expand(-1, length, -1, -1, -1)
        frames = torch.where(chosen[:, None, None, None, None], torch.cat([colours, rest], 2), clip.frames)
        truth = {}
        for name, bank in self.truth.items():
            ours, theirs = bank[number], getattr(clip.truth, name)
            ours = (ours if name == "order" else ours[:, :length]).to(theirs.dtype)
            truth[name] = torch.where(chosen.view(-1, *[1] * (theirs.ndim - 1)), ours, theirs)
        return Clip(frames, Truth(**truth))


def round_trip(pictures: Pictures, quality: int, enlarged: int = 1) -> Pictures:
    """Encode pictures as H.264 and decode them.

    `quality` is the constant rate factor. Pictures are encoded at `enlarged` times their size and then scaled back.
    """
    try:
        import av
    except ImportError as error:
        raise without_extra("recording clips (scene.recorded)", "av") from error
    height, width = pictures.shape[1:3]
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        options = {"crf": str(quality), "preset": "veryfast", "threads": "1"}
        large = {"height": enlarged * height, "width": enlarged * width}
        stream = container.add_stream("libx264", 25, options, pix_fmt="yuv420p", **large)
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame.reformat(format="yuv420p", **large)))
        container.mux(stream.encode(None))
    file.seek(0)
    with av.open(file, "r") as container:
        frames = container.decode(video=0)
        decoded = [frame.reformat(width, height, "rgb24", interpolation="AREA").to_ndarray() for frame in frames]
    return np.stack(decoded)
