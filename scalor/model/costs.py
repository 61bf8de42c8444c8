"""What latents cost against their priors, by kind."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Costs(NamedTuple):
    """Nats per clip."""

    presence: Float[Tensor, " B"]
    where: Float[Tensor, " B"]
    what: Float[Tensor, " B"]
    depth: Float[Tensor, " B"]


def split_costs(presence: Float[Tensor, " B"], latents: Float[Tensor, "B N latents"]) -> Costs:
    """The cost of each latent of each object, summed over objects and by kind."""
    each = latents.sum(1)
    return Costs(presence, each[:, :4].sum(-1), each[:, 4:-1].sum(-1), each[:, -1])
