"""Boxes and glimpses: z_where to a box, a glimpse to its encoding, z_what to a drawn glimpse."""

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.baselines.sqair.config import SQAIRConfig
from scalor.kernels import crop
from scalor.nn.distributions import Normal, positive


def mlp(*widths: int) -> nn.Sequential:
    """Return linear layers with ELUs between them; the last layer is linear."""
    layers: list[nn.Module] = []
    for i, o in pairwise(widths):
        layers += [nn.Linear(i, o), nn.ELU()]
    return nn.Sequential(*layers[:-1])


def normal(raw: Tensor, around: Tensor, sharp: float = 0.0) -> Normal:
    """Return a normal from a network's output: the mean is `around` plus the output; `sharp` lowers the initial std."""
    mean, spread = raw.float().chunk(2, -1)
    return Normal(around + mean, positive(spread - sharp))


class Appearance(nn.Module):
    """Conversions between latents and pixels: z_where to a box, glimpse to encoding, z_what to a drawn glimpse."""

    extent: Tensor
    expected: Tensor

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        self.glimpse, hidden, pixels = config.glimpse, config.hidden_dim, 3 * config.glimpse**2
        self.size_range, self.reach, self.darkness = config.size_range, config.reach, config.darkness
        self.encoder = nn.Sequential(mlp(pixels, hidden, hidden), nn.ELU())
        self.what = nn.Linear(hidden, 2 * config.what_dim)
        self.decoder = mlp(config.what_dim, hidden, hidden, pixels)
        self.register_buffer("extent", torch.tensor(config.frame[::-1]).float(), persistent=False)
        self.register_buffer("expected", torch.tensor(config.object_size[::-1]), persistent=False)

    def box(self, z_where: Float[Tensor, "*shape 4"]) -> Float[Tensor, "*shape 4"]:
        """Return the boxes of z_where, (x, y, w, h) in pixels."""
        centre = self.extent * (0.5 + 0.5 * self.reach * z_where[..., :2].tanh())
        return torch.cat([centre, self.expected * (1 + self.size_range * z_where[..., 2:].tanh())], -1)

    def crop(self, image: Float[Tensor, "B 3 H W"], z_where: Float[Tensor, "R n 4"]) -> Float[Tensor, "R n 3 P P"]:
        """Return the glimpses of the image inside the boxes of z_where."""
        rows, boxes = z_where.shape[:2]
        glimpses = crop(image, self.box(z_where).view(len(image), -1, 4), self.glimpse)
        return glimpses.reshape(rows, boxes, *glimpses.shape[2:])

    def draw(self, z_what: Float[Tensor, "*shape what"]) -> Float[Tensor, "*shape 3 P P"]:
        """Return the glimpses that z_what decodes to, pixels in [0, 1]."""
        pixels = (self.decoder(z_what).float() - self.darkness).sigmoid()
        glimpses: Tensor = pixels.unflatten(-1, (3, self.glimpse, self.glimpse))
        return glimpses
