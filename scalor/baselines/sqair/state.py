"""Records of one frame: the objects and what is carried between frames, candidates, settings of the prior, costs."""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from scalor.nn.distributions import Normal
from scalor.nn.gradients import even


@dataclass(frozen=True)
class SQAIRState:
    """State of the objects, carried between frames. Occupied slots come before empty ones."""

    latent: Float[Tensor, "R N L"]
    """z_where and z_what, concatenated."""
    present: Float[Tensor, "R N 1"]
    """1 for an object, 0 for an empty slot."""
    presence: Float[Tensor, "R N 1"]
    """Probability of presence when the object was last propagated or discovered."""
    tracker: Float[Tensor, "R N hidden"]
    """Hidden state of the temporal RNN."""
    memory: Float[Tensor, "R N hidden"]
    """Hidden state of the RNN of the prior."""
    discovered: Float[Tensor, "R N 1"]
    """1 for an object discovered in the last frame."""
    id: Int[Tensor, "R N"]
    """Identity of the object; -1 for an empty slot."""
    next_id: Int[Tensor, " R"]
    """Identity of the next object to be discovered."""

    def detach(self) -> "SQAIRState":
        """Return the same objects without their history, so that no gradient flows to earlier frames."""
        return SQAIRState(*(getattr(self, field.name).detach() for field in fields(self)))

    def evened(self, times: float) -> "SQAIRState":
        """Return the same scene; in the backward pass, clip the gradients of its latents.

        An object's gradient is limited to `times` the geometric mean over all objects (see `even`); 0 turns this off.
        """
        return replace(self, latent=even(self.latent, times)) if times else self


class Candidates(NamedTuple):
    """Result of propagation or discovery in one frame: n candidate objects."""

    logits: Float[Tensor, "R n 1"]
    """Presence logits."""
    taken: Float[Tensor, "R n 1"]
    """1 for an object that is present, else 0."""
    q: Normal
    """Distribution from which the latents were drawn, [R, n, L]."""
    latent: Float[Tensor, "R n L"]
    """z_where and z_what, concatenated."""


class EncodedFrame(NamedTuple):
    """A frame and its encoding."""

    image: Float[Tensor, "B 3 H W"]
    code: Float[Tensor, "R hidden"]
    """Output of the image encoder, repeated for the particles of a clip."""


class DiscoveryPrior(NamedTuple):
    """Settings of the discovery prior.

    One compiled graph works for all values of a tensor; a plain number is compiled in as a constant.
    """

    presence_prior: float | Tensor
    """Probability of one more discovery in the first frame."""
    eagerness: float = 1.0
    """Factor of the log odds of `presence_prior`."""
    newcomers: float | Tensor = 1.0
    """1 if objects can be discovered after the first frame, else 0; applies to prior and posterior alike."""


class Costs(NamedTuple):
    """log q - log p of the latents of a frame, nats per row: KL divergences estimated from one sample."""

    discovered_presence: Float[Tensor, " R"]
    discovered_where: Float[Tensor, " R"]
    discovered_what: Float[Tensor, " R"]
    propagated_presence: Float[Tensor, " R"]
    propagated_where: Float[Tensor, " R"]
    propagated_what: Float[Tensor, " R"]


class StepResult(NamedTuple):
    """Result of one inference step."""

    scene: SQAIRState
    """State after the frame."""
    log_choices: Float[Tensor, " R"]
    """Log probability of the choices of presence under the posterior."""
    costs: Costs
