"""What a system must offer to be trained, saved and evaluated like every other.

Letters: B clips, T frames, H by W pixels.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import Config, SystemConfig
from scalor.data.clip import Truth
from scalor.nn.distributions import Estimator, Noise
from scalor.tracks import Tracks


class Annealed(NamedTuple):
    """What changes during training, as it is at one step."""

    temperature: Float[Tensor, ""]
    """Of relaxed presences."""
    presence_prior: Float[Tensor, ""]
    """Probability of a discovery."""
    cut_gradients: bool
    """Whether gradients end at each frame."""
    clip_object: float = 0.0
    """If not: how many times the usual one the gradient of an object's place and latents from later frames may be; 0:
    any. It stays the same all the time."""


class Bound(NamedTuple):
    """What a training step climbs, and what it writes down besides."""

    elbo: Float[Tensor, " B"]
    """Nats a clip. Its gradient is the one that is followed, so it may be an estimator's own."""
    numbers: dict[str, Float[Tensor, " B"]]
    """By the names in `Model.reported`, and those of the lesson where there is one."""
    lesson: Float[Tensor, " B"] | None = None
    """Losses against the truth, per clip and frame, where it was handed in."""


class BoundFunction(Protocol):
    """Compute the bound that is trained on; with the `truth` of the clips also the lesson's losses."""

    def __call__(
        self, video: Float[Tensor, "B T 3 H W"], noise: Noise, now: Annealed, truth: Truth | None = None
    ) -> Bound: ...


class Film(Protocol):
    """A seen or imagined video."""

    @property
    def frames(self) -> Float[Tensor, "B T 3 H W"]: ...


class TrackedFilm(Film, Protocol):
    """A seen or imagined video, and the objects in it."""

    @property
    def tracks(self) -> Tracks: ...


class Model(nn.Module, ABC):
    """Any system. Its training is a function of video, noise and annealed values alone, without a look at a value on
    the host: a GPU captures it as one graph."""

    config: SystemConfig
    run: Config[Any] | None = None
    """The whole configuration of the run that its weights were loaded from, if they were."""
    reported: tuple[str, ...]
    """Names of the numbers that a training step reports."""

    @abstractmethod
    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        """How many normal and uniform numbers a clip needs for a frame, at most."""

    @abstractmethod
    def bound(
        self, video: Float[Tensor, "B T 3 H W"], noise: Noise, now: Annealed, truth: Truth | None = None
    ) -> Bound:
        """The lower bound on the log-likelihood that is trained on; `truth` is for systems that take lessons."""

    def compiled_bound(self) -> BoundFunction:
        """`bound` as a GPU runs it fastest; here nothing is compiled."""
        return self.bound

    @abstractmethod
    def reconstruct(self, frames: object) -> Film:
        """The frames as the model sees them."""

    @abstractmethod
    def generate(
        self, frames: object, observe: int = 5, horizon: int = 5, *, estimator: Estimator | None = None
    ) -> Film:
        """`observe` frames seen, then `horizon` imagined: drawn at random, with `Mode()` the most likely ones."""

    @abstractmethod
    def log_likelihood(self, frames: object, samples: int = 10) -> Float[Tensor, " B"]:
        """Importance-weighted lower bound on log p(video), nats per clip; it rises with `samples`."""


class Tracker(Model):
    """A system that knows objects."""

    @abstractmethod
    def reconstruct(self, frames: object) -> TrackedFilm: ...

    @abstractmethod
    def generate(
        self, frames: object, observe: int = 5, horizon: int = 5, *, estimator: Estimator | None = None
    ) -> TrackedFilm: ...

    @abstractmethod
    def log_likelihood(self, frames: object, samples: int = 10, presence_prior: float = 1e-4) -> Float[Tensor, " B"]:
        """With the prior probability of a discovery that training ended with."""

    @abstractmethod
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Every object of every frame ([T, 3, H, W] or [B, T, 3, H, W] in [0, 1]), with its identity."""

    @abstractmethod
    def stream(self, frames: Iterable[object], masks: bool = False) -> Iterator[Tracks]:
        """Track frame by frame ([3, H, W] each): one `Tracks` a frame."""
