"""Clips with their ground truth: returned by every scene, and the reference for every metric.

B clips, T frames, N objects (padded: an id of -1 means that the object is absent), H by W pixels.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from scalor.data.observation import Observation


@dataclass(frozen=True)
class Truth:
    """Ground truth of every object in every frame. Pixel coordinates: pixel i covers [i, i + 1)."""

    id: Int[Tensor, "B T N"]
    """Identity, unique within a clip; -1 where the object is out of view or not yet born. An object that leaves the
    view completely and returns gets a new id."""
    centre: Float[Tensor, "B T N 2"]
    """x and y of the whole object's centre, pixels."""
    box: Float[Tensor, "B T N 4"]
    """x0, y0, x1, y1 of the whole object, including occluded and out-of-view parts, pixels."""
    visible: Float[Tensor, "B T N"]
    """Share of the object's full area that is in view and not occluded."""
    order: Int[Tensor, "B N"]
    """Depth order: 0 is in front of all others."""
    owner: Int[Tensor, "B T H W"]
    """Index (along N) of the object that each pixel shows, -1 for the background."""


@dataclass(frozen=True)
class Clip:
    """A batch of clips: what a model is given, and its ground truth."""

    observation: Observation
    """[B, T]: images, and for a stationary camera background and ruler."""
    truth: Truth

    @property
    def frames(self) -> Float[Tensor, "B T 3 H W"]:
        """The images, in [0, 1]."""
        return self.observation.image
