"""VRNN (Chung et al. 2015): one latent per frame, and an LSTM over all earlier frames and latents.

    prior        p(z_t | h_{t-1})
    likelihood   p(x_t | z_t, h_{t-1}), normal pixels of one sigma
    posterior    q(z_t | x_t, h_{t-1})
    recurrence   h_t = LSTM(x_t, z_t, h_{t-1})

The sizes are those of the SCALOR paper's comparison (Section 5.2): 128 for state and latent, with a convolutional
encoder and decoder. It has no objects: it encodes and generates whole frames.

Letters: B clips, T frames, H by W pixels.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.baselines.whole_frames import Inference, WholeFrames, double, halve, normal
from scalor.errors import require
from scalor.nn.distributions import Estimator, Normal
from scalor.settings import Settings, setting


@dataclass(frozen=True)
class VRNNConfig(Settings):
    """Settings of a VRNN. Its weights are for frames of one size."""

    system: ClassVar[str] = "vrnn"
    frame: tuple[int, int] = setting((64, 64), "height and width of every frame, pixels", ge=1)
    channels: tuple[int, ...] = setting(
        (32, 64, 128, 128),
        "channels of the encoder's layers, each of which halves the frame; the decoder has them in reverse",
        ge=1,
        shortest=1,
    )
    feature_dim: int = setting(256, "length of the feature vectors of a frame and of a latent", ge=1)
    state_dim: int = setting(128, "length of the LSTM's state", ge=1)
    latent_dim: int = setting(128, "length of the latent of a frame", ge=1)
    sigma: float = setting(0.2, "standard deviation of the pixel noise, pixels in [0, 1]", gt=0)

    def check(self) -> None:
        """Check that the layers can halve the frame."""
        shrunk = 2 ** len(self.channels)
        require(
            all(side % shrunk == 0 for side in self.frame),
            "model.frame",
            self.frame,
            f"the {len(self.channels)} layers of model.channels halve it, so both must be multiples of {shrunk}",
        )

    @property
    def smallest(self) -> tuple[int, int]:
        """Return the height and width of the encoder's last feature map, which is also the decoder's first."""
        shrunk = 2 ** len(self.channels)
        return self.frame[0] // shrunk, self.frame[1] // shrunk

    def misfit(self, frame: tuple[int, int]) -> str | None:
        """Return why the model cannot see frames of a size, or None if it can."""
        if frame != self.frame:
            return f"a VRNN sees frames of one size, here {self.frame[0]}x{self.frame[1]} (model.frame)"
        return None


class State(NamedTuple):
    """State of the LSTM."""

    hidden: Float[Tensor, "B state"]
    cell: Float[Tensor, "B state"]


class VRNN(WholeFrames):
    """The variational recurrent neural network, on whole frames."""

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
        """Return how many normal and uniform numbers a frame needs: one normal for each number of the latent."""
        return self.config.latent_dim, 0

    def start(self, clips: int, like: Tensor) -> State:
        """Return the state before the first frame: zeros."""
        zeros = torch.zeros(clips, self.config.state_dim, device=like.device)
        return State(zeros, zeros)

    def infer(
        self, images: Float[Tensor, "T B 3 H W"], estimator: Estimator, cut_gradients: bool = False
    ) -> Inference[State]:
        """Infer the latents frame by frame; all but latents and LSTM state is computed for all frames at once."""
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
            state = self.update_state(look, z, state)
            if cut_gradients:
                state = State(*(part.detach() for part in state))
        before, z = torch.stack(hidden), torch.stack(latents)
        kl = estimator.normal_cost(Normal(torch.stack(means), torch.stack(stds)), normal(self.prior(before)), z)
        pictures = self.draw(z.flatten(0, 1), before.flatten(0, 1)).unflatten(0, images.shape[:2])
        return Inference(pictures, kl.sum(-1), state)

    def next_frame(
        self, state: State, frame: tuple[int, int], estimator: Estimator
    ) -> tuple[Float[Tensor, "B 3 H W"], State]:
        """Generate one frame from the prior; return it and the new state.

        The LSTM receives the mean of the generated frame in place of an observed frame.
        """
        z = estimator.normal(normal(self.prior(state.hidden)))
        picture = self.draw(z, state.hidden).clamp(0, 1)
        return picture, self.update_state(self.encoder(picture).float(), z, state)

    def update_state(self, look: Float[Tensor, "B feature"], z: Float[Tensor, "B latent"], state: State) -> State:
        """Return the state of the LSTM after a frame's features and latent."""
        hidden, cell = self.recurrence(torch.cat([look, self.latent_features(z)], -1), tuple(state))
        return State(hidden.float(), cell.float())

    def draw(self, z: Float[Tensor, "B latent"], hidden: Float[Tensor, "B state"]) -> Float[Tensor, "B 3 H W"]:
        """Return the means of the pixels.

        There is no sigmoid: on black scenes the first training steps would drive all pixels to where it saturates, and
        nothing would be learned (docs/log.md).
        """
        drawn: Tensor = self.decoder(torch.cat([self.latent_features(z), hidden], -1))
        return drawn.float()
