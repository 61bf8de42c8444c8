"""The latents of an object beside its presence: their names, sizes and order, defined once.

Networks and records hold them concatenated (`Latents.pack`), so that one operation handles all of them. To add a
latent, add a field to `Latents`, its size to `Latents.unpack` and `ModelConfig.latents`, and its posterior to discovery
and propagation; states, priors, KL terms and logs follow.

Letters: B clips, N objects.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.nn.distributions import Normal


class Latents(NamedTuple):
    """z_where, z_what and z_depth of objects."""

    where: Float[Tensor, "*shape 4"]
    """Displacement in x and y, then width and height, all before tanh.

    The displacement is that from the centre of a cell in discovery, and that from the last place in propagation.
    """
    what: Float[Tensor, "*shape what"]
    """Appearance."""
    depth: Float[Tensor, "*shape 1"]
    """Smaller is nearer to the camera."""

    def pack(self) -> Float[Tensor, "*shape latents"]:
        """Concatenate the latents."""
        return torch.cat(list(self), -1)

    @staticmethod
    def unpack(packed: Float[Tensor, "*shape latents"]) -> "Latents":
        """Split concatenated latents."""
        return Latents(*packed.split([4, packed.shape[-1] - 5, 1], -1))


LATENTS = Latents._fields
"""Names of the latents, in order."""


def pack_normals(where: Normal, what: Normal, depth: Normal) -> Normal:
    """Return the distribution of the concatenated latents."""
    each = (where, what, depth)
    return Normal(Latents(*(q.mean for q in each)).pack(), Latents(*(q.std for q in each)).pack())


def kl_by_latent(
    presence: Float[Tensor, " B"], latents: Float[Tensor, "B N latents"]
) -> dict[str, Float[Tensor, " B"]]:
    """Sum KL terms over objects, separately for presence and for each latent, nats per clip.

    `presence` is already summed. `latents` holds one term for each element of each object's latents.
    """
    each = Latents.unpack(latents.sum(1))
    return {"presence": presence, **{name: terms.sum(-1) for name, terms in each._asdict().items()}}
