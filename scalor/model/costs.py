"""KL terms of object latents, summed by kind of latent."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Costs(NamedTuple):
    """KL divergence, or its one-sample estimate, of each kind of latent, nats per clip."""

    presence: Float[Tensor, " B"]
    where: Float[Tensor, " B"]
    what: Float[Tensor, " B"]
    depth: Float[Tensor, " B"]


def split_costs(presence: Float[Tensor, " B"], latents: Float[Tensor, "B N latents"]) -> Costs:
    """Sum the KL terms of the latents over objects, separately for z_where, z_what and z_depth.

    `presence` is already summed. `latents` holds one term for each element of each object's latent.
    """
    each = latents.sum(1)
    return Costs(presence, each[:, :4].sum(-1), each[:, 4:-1].sum(-1), each[:, -1])
