"""Settings of SQAIR."""

from dataclasses import dataclass
from typing import ClassVar

from scalor.errors import require
from scalor.settings import Settings, setting


@dataclass(frozen=True)
class SQAIRConfig(Settings):
    """Settings of SQAIR. The defaults are the published ones for digits; sizes are in pixels of the input frames.

    A standard deviation is the softplus of a network's output minus a shift, which sets its initial value.
    """

    system: ClassVar[str] = "sqair"
    frame: tuple[int, int] = setting((64, 64), "height and width of a frame, pixels; the weights depend on it", ge=1)
    patch: int = setting(4, "side of the patches into which the image encoder divides a frame, pixels", ge=1)
    image_channels: tuple[int, ...] = setting(
        (16, 32), "channels of the image encoder's convolutional layers", ge=1, shortest=1
    )
    slots: int = setting(3, "N, the most objects at once, and the steps of discovery in the first frame", ge=1)
    discoveries: int = setting(3, "most steps of discovery in a later frame", ge=1)
    particles: int = setting(5, "k, the particles of the importance-weighted bound in training", ge=2)
    object_size: tuple[float, float] = setting((9.0, 9.0), "typical height and width of an object, pixels", gt=0)
    size_range: float = setting(0.5, "largest deviation of a size from object_size, as a share of it", gt=0, lt=1)
    reach: float = setting(
        1.2, "extent of the allowed centres in frames, so that an object can be half outside of the frame", gt=0
    )
    glimpse: int = setting(20, "P, side of a glimpse, in which an object is encoded and decoded, pixels", ge=1)
    what_dim: int = setting(50, "length of z_what, the appearance of an object", ge=1)
    hidden_dim: int = setting(256, "width of the layers and of the hidden states", ge=1)
    first_discovery: float = setting(
        0.75, "prior probability of one more discovery in the first frame, after training", gt=0, lt=1
    )
    later_discovery: float = setting(
        0.1, "prior probability of one more discovery in a frame after the first", gt=0, lt=1
    )
    sigma: float = setting(0.3, "standard deviation of the pixel noise, pixels in [0, 1]", gt=0)
    discovery_limit: float = setting(
        5.0, "largest absolute presence logit of discovery, so that other choices are tried", gt=0
    )
    discovery_bias: float = setting(
        4.0, "bias of the presence logits of discovery in the first frame, so that objects are found at first", ge=0
    )
    propagation_bias: float = setting(
        5.0, "bias of the presence logits of propagation, so that objects persist at first", ge=0
    )
    prior_bias: float = setting(10.0, "bias of the presence logits of propagation's prior", ge=0)
    where_shift: float = setting(
        2.0,
        "shift of the standard deviation of z_where in propagation and its prior: about 0.05 at first",
        ge=-10,
        le=10,
    )
    discovery_where_shift: float = setting(
        0.5, "the same in discovery: 0.2, so that the particles of a clip look at different places", ge=-10, le=10
    )
    discovery_what_shift: float = setting(
        -0.5, "the same of z_what in discovery: 0.5, so that a new object costs no more than it gains", ge=-10, le=10
    )
    darkness: float = setting(
        4.0, "subtracted from the pixel logits: a bright first canvas would teach the model to draw nothing", ge=0
    )
    eagerness: float = setting(
        1.0, "in training, the first frame's log odds of one more object are multiplied by it", gt=0
    )
    newcomers_from: int = setting(
        3, "in training, only sequences of at least so many frames look for new objects after the first", ge=1
    )

    def check(self) -> None:
        """Check that boxes and patches fit the frame."""
        divided = all(side % self.patch == 0 for side in self.frame)
        require(divided, "model.frame", self.frame, f"both must be multiples of model.patch, {self.patch}")
        fits = all(size < side for size, side in zip(self.object_size, self.frame, strict=True))
        require(fits, "model.object_size", self.object_size, "an object must be smaller than the frame")

    @property
    def latents(self) -> int:
        """L, the length of z_where and z_what together."""
        return 4 + self.what_dim

    def misfit(self, frame: tuple[int, int]) -> str | None:
        """Return what is wrong with frames of this height and width, or None if the model can process them."""
        height, width = self.frame
        return None if frame == self.frame else f"these weights see frames of {height}x{width} pixels alone"
