"""Clips with their truth: what a synthetic scene returns and what every metric is computed against.

B clips, T frames, N objects (padded: an id of -1 means that the object is not there), H by W pixels.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Truth:
    """Where every object really is. Pixel coordinates: pixel i covers [i, i + 1)."""

    id: Int[Tensor, "B T N"]
    """Identity, unique within a clip, -1 where the object is out of view or not yet born. An object that
    left the view completely and returns carries a new id."""
    centre: Float[Tensor, "B T N 2"]
    """x and y of the whole object's centre, pixels."""
    box: Float[Tensor, "B T N 4"]
    """x0, y0, x1, y1 of the whole object, hidden and out-of-view parts included, pixels."""
    visible: Float[Tensor, "B T N"]
    """Share of the object's full area that is in view and not covered by others."""
    order: Int[Tensor, "B N"]
    """Depth order: 0 is in front of all others."""
    owner: Int[Tensor, "B T H W"]
    """Index (along N) of the object that a pixel shows, -1 for the background."""


@dataclass(frozen=True)
class Clip:
    """A batch of clips: frames in [0, 1] and their truth."""

    frames: Float[Tensor, "B T C H W"]
    """Three colours; where the camera stands still also those of the scene behind, and a ruler."""
    truth: Truth

    @property
    def colours(self) -> Float[Tensor, "B T 3 H W"]:
        """What there is to be seen."""
        return self.frames[:, :, :3]
