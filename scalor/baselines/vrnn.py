"""VRNN (Chung et al. 2015): a latent per frame, and an LSTM that has seen all frames and latents before it.

    prior        p(z_t | h_{t-1})
    likelihood   p(x_t | z_t, h_{t-1}), normal pixels of one sigma
    posterior    q(z_t | x_t, h_{t-1})
    recurrence   h_t = LSTM(x_t, z_t, h_{t-1})

Sizes as in the SCALOR paper's comparison: 128 for state and latent, convolutions before and after. There are no
objects in it: it sees and imagines frames whole.

Letters: B clips, T frames, H by W pixels.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.baselines.whole_frames import Rollout, WholeFrames, double, halve, normal
from scalor.config import require, setting
from scalor.nn.distributions import Estimator, Exact, Mode, Normal


@dataclass(frozen=True)
class VRNNConfig:
    """Sizes of a VRNN. Its weights are for frames of one size."""

    system: ClassVar[str] = "vrnn"
    frame: tuple[int, int] = setting((64, 64), "height and width of every frame, pixels")
    channels: tuple[int, ...] = setting(
        (32, 64, 128, 128), "channels of the encoder's layers, each of which halves the frame; the decoder goes back"
    )
    feature_dim: int = setting(256, "length of what the encoder makes of a frame, and of what is made of a latent")
    state_dim: int = setting(128, "length of the LSTM's state")
    latent_dim: int = setting(128, "length of the latent of a frame")
    sigma: float = setting(0.2, "standard deviation of the pixel noise, pixels in [0, 1]")

    def __post_init__(self) -> None:
        require(len(self.channels) > 0, "model.channels", self.channels, "at least one layer is needed")
        require(min(self.channels) > 0, "model.channels", self.channels, "all must be at least 1")
        for name in ("feature_dim", "state_dim", "latent_dim"):
            require(getattr(self, name) > 0, f"model.{name}", getattr(self, name), "it must be at least 1")
        shrunk = 2 ** len(self.channels)
        require(
            all(side > 0 and side % shrunk == 0 for side in self.frame),
            "model.frame",
            self.frame,
            f"the {len(self.channels)} layers of model.channels halve it, so both must be multiples of {shrunk}",
        )
        require(0 < self.sigma < math.inf, "model.sigma", self.sigma, "it must be positive and finite")

    @property
    def smallest(self) -> tuple[int, int]:
        """Height and width of the map between the convolutions and the vectors."""
        shrunk = 2 ** len(self.channels)
        return self.frame[0] // shrunk, self.frame[1] // shrunk

    def misfit(self, frame: tuple[int, int]) -> str | None:
        if frame != self.frame:
            return f"a VRNN sees frames of one size, here {self.frame[0]}x{self.frame[1]} (model.frame)"
        return None


class State(NamedTuple):
    """The LSTM's."""

    hidden: Float[Tensor, "B state"]
    cell: Float[Tensor, "B state"]


class Watched(NamedTuple):
    """Frames that were seen, and what the model made of them."""

    pictures: Float[Tensor, "T B 3 H W"]
    """The means of the pixels."""
    kl: Float[Tensor, "T B"]
    """What the latents cost, nats."""
    state: State
    """After the last frame."""


class VRNN(WholeFrames):
    def __init__(self, config: VRNNConfig) -> None:
        super().__init__()
        self.config: VRNNConfig = config
        self.sigma = config.sigma
        feature, state, latent = config.feature_dim, config.state_dim, config.latent_dim
        (rows, columns), widths = config.smallest, config.channels
        flat = widths[-1] * rows * columns
        self.encoder = nn.Sequential(
            *(halve(width, out) for width, out in zip((3, *widths), widths, strict=False)),
            nn.Flatten(),
            nn.Linear(flat, feature),
            nn.CELU(),
        )
        self.prior = nn.Sequential(nn.Linear(state, feature), nn.CELU(), nn.Linear(feature, 2 * latent))
        self.posterior = nn.Sequential(nn.Linear(feature + state, feature), nn.CELU(), nn.Linear(feature, 2 * latent))
        self.latent_features = nn.Sequential(nn.Linear(latent, feature), nn.CELU())
        self.recurrence = nn.LSTMCell(2 * feature, state)
        backwards = widths[::-1]
        self.decoder = nn.Sequential(
            nn.Linear(feature + state, flat),
            nn.CELU(),
            nn.Unflatten(1, (widths[-1], rows, columns)),
            *(double(width, out) for width, out in zip(backwards, (*backwards[1:], widths[0]), strict=True)),
            nn.Conv2d(widths[0], 3, 3, padding=1),
        )

    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        return self.config.latent_dim, 0

    def start(self, clips: int, like: Tensor) -> State:
        """Before the first frame."""
        zeros = torch.zeros(clips, self.config.state_dim, device=like.device)
        return State(zeros, zeros)

    def watch(self, images: Float[Tensor, "T B 3 H W"], estimator: Estimator, cut_gradients: bool = False) -> Watched:
        """The posterior. Only latents and state go from frame to frame; all else is done for all frames at once."""
        looks = self.encoder(images.flatten(0, 1)).float().unflatten(0, images.shape[:2])
        state = self.start(images.shape[1], images)
        hidden, means, stds, latents = [], [], [], []
        for t, look in enumerate(looks):
            q = normal(self.posterior(torch.cat([look, state.hidden], -1)))
            z = estimator.at(t).normal(q)
            hidden.append(state.hidden)
            means.append(q.mean)
            stds.append(q.std)
            latents.append(z)
            state = self.remember(look, z, state)
            if cut_gradients:
                state = State(*(part.detach() for part in state))
        before, z = torch.stack(hidden), torch.stack(latents)
        kl = estimator.normal_cost(Normal(torch.stack(means), torch.stack(stds)), normal(self.prior(before)), z)
        pictures = self.draw(z.flatten(0, 1), before.flatten(0, 1)).unflatten(0, images.shape[:2])
        return Watched(pictures, kl.sum(-1), state)

    def dream(self, state: State, estimator: Estimator) -> tuple[Float[Tensor, "B 3 H W"], State]:
        """The prior: a frame that nobody has seen. The LSTM takes its mean for what was seen."""
        z = estimator.normal(normal(self.prior(state.hidden)))
        picture = self.draw(z, state.hidden).clamp(0, 1)
        return picture, self.remember(self.encoder(picture).float(), z, state)

    def remember(self, look: Float[Tensor, "B feature"], z: Float[Tensor, "B latent"], state: State) -> State:
        hidden, cell = self.recurrence(torch.cat([look, self.latent_features(z)], -1), tuple(state))
        return State(hidden.float(), cell.float())

    def draw(self, z: Float[Tensor, "B latent"], hidden: Float[Tensor, "B state"]) -> Float[Tensor, "B 3 H W"]:
        """The mean of the pixels. It is not squeezed into [0, 1]: over black scenes nothing would be learned, as the
        first steps drive all pixels to where a sigmoid is flat."""
        drawn: Tensor = self.decoder(torch.cat([self.latent_features(z), hidden], -1))
        return drawn.float()

    @torch.inference_mode()
    def generate(
        self, frames: object, observe: int = 5, horizon: int = 5, *, estimator: Estimator | None = None
    ) -> Rollout:
        """`observe` frames seen, then `horizon` imagined: drawn at random, with `Mode()` the most likely ones."""
        images = self.observed(frames, observe, horizon)
        watched = self.watch(images, Mode())
        pictures, state = list(watched.pictures), watched.state
        for _ in range(horizon):
            picture, state = self.dream(state, estimator or Exact())
            pictures.append(picture)
        return Rollout(torch.stack(pictures, 1).clamp(0, 1))
