"""Moving smooth backgrounds: a few slow waves of muted colour, in closed form in time.

All values lie within [0.1, 0.6], well below the objects' colours: the mean of a channel is 0.3 to 0.4, and the
amplitudes of the waves add up to at most 0.2.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scalor.data.hashing import between, fold, uniform

WAVES = 3
# Numbers of draws and the key of a part, see `hashing`.
HEADING, CYCLES, PHASE, DRIFT, STRENGTH = range(5)
CHANNEL = 8  # draws CHANNEL, CHANNEL + 1, CHANNEL + 2: one per colour channel
TEXTURE = 0xBAC6


def textures(keys: Int[Tensor, "B"], times: Int[Tensor, "T"], frame: tuple[int, int]) -> Float[Tensor, "B T 3 H W"]:
    """Return the background of each clip at the given frames."""
    height, width = frame
    base = fold(keys, TEXTURE)
    rows = torch.arange(height, device=keys.device) + 0.5
    columns = torch.arange(width, device=keys.device) + 0.5
    picture = _channels(base, 0.3, 0.4)[:, None, :, None, None]  # [B, 1, 3, 1, 1]
    for wave in range(WAVES):
        draws = fold(base, wave)
        heading = uniform(draws, HEADING) * (2 * math.pi)
        # Cycles along the longer side in both axes, so that the wavelength in pixels does not depend on the direction.
        pitch = between(draws, CYCLES, 0.5, 2.0) * (2 * math.pi / max(frame))
        # Up to a tenth of a cycle per frame: a drift of a few pixels.
        drift = between(draws, DRIFT, -0.1, 0.1) * (2 * math.pi)
        phase = (uniform(draws, PHASE) * (2 * math.pi))[:, None] + drift[:, None] * times  # [B, T]
        down = (pitch * heading.sin())[:, None] * rows  # [B, H]
        across = (pitch * heading.cos())[:, None] * columns  # [B, W]
        angle = phase[:, :, None, None] + (down[:, :, None] + across[:, None, :])[:, None]  # [B, T, H, W]
        strength = between(draws, STRENGTH, 0.6, 1.0) * (0.2 / WAVES)
        tint = _channels(draws, -0.2, 1.0) * strength[:, None]
        picture = picture + angle.sin_()[:, :, None] * tint[:, None, :, None, None]
    return picture


def _channels(keys: Int[Tensor, "B"], low: float, high: float) -> Float[Tensor, "B 3"]:
    return torch.stack([between(keys, CHANNEL + channel, low, high) for channel in range(3)], -1)
