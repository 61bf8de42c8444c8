"""Interface of a system (SCALOR or a baseline) for training, saving and evaluation.

Letters: B clips, T frames, H by W pixels.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import Config, SystemConfig
from scalor.data.clip import Truth
from scalor.data.observation import Observation
from scalor.nn.distributions import Estimator, Noise
from scalor.tracks import Tracks


class Annealed(NamedTuple):
    """Scheduled values at one training step."""

    temperature: Float[Tensor, ""]
    """Temperature of relaxed presence."""
    presence_prior: Float[Tensor, ""]
    """Prior probability of a discovery."""
    cut_gradients: bool
    """True where gradients between frames are cut."""
    clip_object: float = 0.0
    """Largest gradient that an object's place and latents get from later frames, in multiples of the usual gradient.

    The usual gradient is the geometric mean over the objects of a batch (`scalor.nn.gradients.even`). 0 disables this.
    It has no effect where `cut_gradients` is True. It is constant during training.
    """
    colour_counts: float | Tensor = 1.0
    """How far colour counts in what propagated objects explain, 0 to 1 (`World.explained`)."""
    parts_alone: bool = False
    """True where the background and the appearance of glimpses are learned apart, without objects."""


class Bound(NamedTuple):
    """The objective to maximise, and the metrics to log."""

    elbo: Float[Tensor, " B"]
    """Nats per clip. Training follows the gradient of this value, so a system may use a special gradient estimator."""
    numbers: dict[str, Float[Tensor, " B"]]
    """Metrics by name: those in `Model.reported`, and the supervised losses where there are any."""
    lesson: Float[Tensor, " B"] | None = None
    """Supervised loss of each clip, as a mean over frames; None where no truth was given."""


class BoundFunction(Protocol):
    """Function that computes the training objective, and the supervised losses where `truth` is given."""

    def __call__(self, video: Observation, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
        """Compute the objective as `Model.bound` does."""
        ...


class Film(Protocol):
    """A reconstructed or generated video."""

    @property
    def frames(self) -> Float[Tensor, "B T 3 H W"]:
        """The frames, in [0, 1]."""
        ...


class Rollout(NamedTuple):
    """A reconstructed or generated video: its frames in [0, 1], its background and its objects."""

    frames: Float[Tensor, "B T 3 H W"]
    background: Float[Tensor, "B T 3 H W"]
    tracks: Tracks


@dataclass
class TrackerMemory:
    """What a model remembers between two frames of a stream, to save and to restore it."""

    state: Any = None
    """A record of tensors, valid until the next frame; None before the first frame."""


class Model(nn.Module, ABC):
    """Base class of all systems.

    The training objective is a function of video, noise and annealed values only, and it reads no value back to the
    host. So a training step can be captured as a CUDA graph.
    """

    config: SystemConfig
    """Settings of the system."""
    run: Config[Any] | None = None
    """Full configuration of the run that the weights were loaded from, or of the preset that the model was built by."""
    origin: Mapping[str, Any] | None = None
    """Provenance of the weights; None if they were not loaded."""
    reported: tuple[str, ...]
    """Names of the metrics that a training step reports."""

    @abstractmethod
    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        """Return the largest number of normal and of uniform random numbers that a clip needs for one frame."""

    @abstractmethod
    def bound(self, video: Observation, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
        """Compute the training objective, a lower bound on the log-likelihood.

        `video` is [B, T]. `truth` is used only by systems with supervised losses.
        """

    def compiled_bound(self) -> BoundFunction:
        """Return the fastest version of `bound` on a GPU. The base class compiles nothing."""
        return self.bound

    @abstractmethod
    def reconstruct(self, frames: object) -> Film:
        """Return the reconstruction of the frames."""

    @abstractmethod
    def generate(
        self, frames: object, observe: int = 5, horizon: int = 5, *, estimator: Estimator | None = None
    ) -> Film:
        """Reconstruct the first frames and generate the following ones.

        Parameters
        ----------
        frames
            Floats in [0, 1], [T, 3, H, W] or [B, T, 3, H, W].
        observe
            Number of frames that the model observes.
        horizon
            Number of frames to generate.
        estimator
            How the future is drawn: at random by default, the most likely one with `Mode()`.
        """

    @abstractmethod
    def log_likelihood(self, frames: object, samples: int = 10) -> Float[Tensor, " B"]:
        """Estimate log p(video) by an importance-weighted lower bound, nats per clip.

        The bound gets tighter with more `samples` per clip.
        """


class Tracker(Model):
    """Base class of systems that represent and track objects."""

    @abstractmethod
    def reconstruct(self, frames: object) -> Rollout:
        """Return the reconstruction of the frames, with its objects."""

    @abstractmethod
    def generate(
        self, frames: object, observe: int = 5, horizon: int = 5, *, estimator: Estimator | None = None
    ) -> Rollout:
        """Reconstruct the first frames and generate the following ones, with their objects (see `Model.generate`)."""

    @abstractmethod
    def log_likelihood(self, frames: object, samples: int = 10, presence_prior: float = 1e-4) -> Float[Tensor, " B"]:
        """Estimate log p(video) by an importance-weighted lower bound, nats per clip.

        `presence_prior` is the prior probability of a discovery; pass the value at the end of training.
        """

    @abstractmethod
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Track all objects.

        Parameters
        ----------
        frames
            Numpy array or torch tensor of floats in [0, 1], [T, 3, H, W] or [B, T, 3, H, W].
        masks
            Also return the visible mask of every object.
        """

    @abstractmethod
    def stream(self, frames: Iterable[object], masks: bool = False) -> Iterator[Tracks]:
        """Track objects frame by frame ([3, H, W] each, floats in [0, 1]). Yield one `Tracks` per frame."""
